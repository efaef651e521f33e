//! `windlass ui`, `windlass history` and `windlass diff`: what is in a cluster, and what was.

use clap::Args;
use windlass::jiff::SignedDuration;

use super::project::ConnectionArgs;

/// The flags of the page that a cluster of ours serves.
#[derive(Clone, Debug, Args)]
pub(crate) struct PageArgs {
    /// The port of the page on 127.0.0.1; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) page_port: u16,

    /// Serve no page
    #[arg(long, conflicts_with = "page_port")]
    pub(crate) no_page: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass ui
  windlass ui --context staging --port 8123
  windlass ui --edit
  windlass ui --runs http://127.0.0.1:8080")]
pub(crate) struct UiArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// The port of the page on 127.0.0.1; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Let the page change objects, with the rights of the kubeconfig
    #[arg(long)]
    pub(crate) edit: bool,

    /// Show the reconciles of the operator whose metrics are at this address of this machine, such as one that `kubectl
    /// port-forward` has opened
    #[arg(long, value_name = "URL", value_parser = here)]
    pub(crate) runs: Option<http::Uri>,
}

/// The URL of something on this machine: a token is sent there.
pub(super) fn here(text: &str) -> Result<http::Uri, String> {
    let hint = "write http://127.0.0.1:PORT or https://127.0.0.1:PORT";
    let url: http::Uri = text.parse().map_err(|_| hint.to_owned())?;
    let known = matches!(url.scheme_str(), Some("http" | "https"));
    let local = matches!(url.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    if known && local { Ok(url) } else { Err(hint.into()) }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass history deployment/web
  windlass history webserver/demo -n shop --patch
  windlass history deploy/web --field spec.replicas")]
pub(crate) struct HistoryArgs {
    /// Which object
    #[arg(value_name = "KIND/NAME", value_parser = object)]
    pub(crate) object: (String, String),

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// The namespace; if unset, that of the context
    #[arg(long, short)]
    pub(crate) namespace: Option<String>,

    /// Show what each version has changed
    #[arg(long, short)]
    pub(crate) patch: bool,

    /// Show the writes of one field, such as spec.replicas, and of those below it
    #[arg(long, value_name = "PATH", conflicts_with = "patch")]
    pub(crate) field: Option<String>,
}

fn object(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        _ => Err("write KIND/NAME, such as deployment/web".into()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass diff --since 5m
  windlass diff --since 30s -n shop
  windlass diff --since 1h --kind pods --name-only")]
pub(crate) struct SinceArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// How far to look back
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: SignedDuration,

    /// Objects of this namespace only
    #[arg(long, short)]
    pub(crate) namespace: Option<String>,

    /// These kinds only; if unset, all but Leases and Events
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,

    /// Only the names of what has changed
    #[arg(long)]
    pub(crate) name_only: bool,
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let duration: Result<SignedDuration, _> = text.parse();
    let positive = duration.ok().filter(SignedDuration::is_positive);
    positive.ok_or_else(|| "write a time such as 30s, 5m or 1h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_a_kind_and_a_name() {
        assert_eq!(object("pods/web"), Ok(("pods".into(), "web".into())));
        for text in ["web", "/web", "pods/", "a/b/c"] {
            assert!(object(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_positive_and_a_token_stays_here() {
        assert_eq!(duration("5m"), Ok(SignedDuration::from_mins(5)));
        assert!(duration("-5m").is_err() && duration("soon").is_err() && duration("0s").is_err());
        assert!(here("http://127.0.0.1:8080").is_ok() && here("https://localhost:8443").is_ok());
        for text in ["http://10.0.0.1:80", "ftp://127.0.0.1", "127.0.0.1:80", "http://127.0.0.1.evil.example"]
        {
            assert!(here(text).is_err(), "{text}");
        }
    }
}
