//! `windlass top`.

use clap::{Args, ValueEnum};
use windlass_ui::{health::Health, top::Filter};

use super::{page::here, project::ConnectionArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass top
  windlass top --context staging -n shop --kind deploy
  windlass top --health failed
  windlass top --all-kinds | grep ConfigMap")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Objects of this namespace only, and what leads to them
    #[arg(long, short)]
    namespace: Option<String>,

    /// Objects of this kind only, such as pods, deploy or webservers.example.org
    #[arg(long)]
    kind: Option<String>,

    /// Objects in this state only
    #[arg(long, value_enum)]
    health: Option<State>,

    /// Also kinds that nobody runs things with, such as Secrets
    #[arg(long)]
    all_kinds: bool,

    /// Show the reconciles of the operator whose metrics are at this address of this machine, such as one that `kubectl
    /// port-forward` has opened
    #[arg(long, value_name = "URL", value_parser = here)]
    pub(crate) runs: Option<http::Uri>,
}

/// How an object is.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Current,
    InProgress,
    Failed,
    Terminating,
}

impl TopArgs {
    /// What is shown at first.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            text: String::new(),
            kind: self.kind.clone().unwrap_or_default(),
            namespace: self.namespace.clone().unwrap_or_default(),
            health: self.health.map(|state| match state {
                State::Current => Health::Current,
                State::InProgress => Health::InProgress,
                State::Failed => Health::Failed,
                State::Terminating => Health::Terminating,
            }),
            everything: self.all_kinds,
        }
    }
}
