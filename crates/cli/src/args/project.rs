//! Commands that are about the project around the working folder.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{dev::DebuggerArgs, output::OutputArgs};

const RUN_EXAMPLES: &str = "\
Examples:
  windlass run
  windlass run --context staging --no-crds
  windlass run --webhook-url https://10.0.0.7:9443
  windlass run --debugger 127.0.0.1:2345
  windlass run -- --watch-namespaces a,b";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct ProjectRunArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Expect the CRDs to be there, rather than install them
    #[arg(long)]
    pub(crate) no_crds: bool,

    /// Serve webhooks at this https://HOST:PORT of this machine, where the API server reaches it
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,

    /// No colours, as for a pipe
    #[arg(long)]
    pub(crate) plain: bool,

    #[command(flatten)]
    pub(crate) debugger: DebuggerArgs,

    /// Arguments for the `run` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

/// Which cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectionArgs {
    /// The kubeconfig; if unset, $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context; if unset, the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass explain-rbac
  windlass explain-rbac -o json")]
pub(crate) struct ExplainRbacArgs {
    /// How the rules are printed
    #[arg(long, short, value_enum, default_value_t = ExplainFormat::Text)]
    pub(crate) output: ExplainFormat,

    /// Arguments for the `explain-rbac` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    Text,
    Json,
    Yaml,
}

impl ExplainFormat {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass doctor
  windlass doctor -o json | jq .ok")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
