//! What can go wrong on the command line, and what to do about it.

use std::{net::SocketAddr, path::PathBuf};

use crate::{
    leader::LeaderError,
    operator::{ConfigError, InstallError, NotSynced, RunError, logging, settings},
    webhook::ServeError,
};

/// An error with advice.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Logging(#[from] logging::Error),
    #[error("failed to find a cluster")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("failed to read the kubeconfig")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    #[error("failed to make a client")]
    Client(#[source] Box<kube::Error>),
    #[error("failed to reach the API server at {0}")]
    Unreachable(String, #[source] Box<kube::Error>),
    #[error(transparent)]
    Settings(#[from] settings::Error),
    #[error("failed to load the certificate of the metrics: {0}")]
    MetricsCertificate(String),
    #[error("failed to listen on {0}")]
    Bind(SocketAddr, #[source] std::io::Error),
    #[error("failed to write YAML")]
    Yaml(#[source] serde_saphyr::ser_error::Error),
    #[error("failed to write JSON")]
    Json(#[source] serde_json::Error),
    #[error("failed to write to stdout")]
    Stdout(#[source] std::io::Error),
    #[error(transparent)]
    Files(#[from] ConfigError),
    #[error("{} is not what the code says: files that differ: {files}", folder.display())]
    Stale { files: usize, folder: PathBuf, command: String },
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("{0} objects would be lost with the CRDs, and nothing was deleted")]
    Objects(usize),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the operator does not run as it should: {}", .0.join("; "))]
    NotRunning(Vec<String>),
}

impl CliError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Settings(error) => return error.hint(),
            Self::Objects(total) => {
                return Some(format!("to lose them, say how many: --delete-objects={total}"));
            }
            Self::Stale { command, .. } => return Some(format!("write it anew: {command}")),
            _ => {}
        }
        self.advice().map(ToOwned::to_owned)
    }

    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some("set KUBECONFIG or --kubeconfig, or run inside a cluster"),
            Self::Kubeconfig(_) => Some("see --kubeconfig and --context"),
            Self::Unreachable(..) => Some("is the cluster up, and does the kubeconfig name it?"),
            Self::Bind(..) => Some("choose another address, or 0 to turn the endpoint off"),
            Self::Run(RunError::Webhooks(ServeError::Bind { .. })) => {
                Some("choose another --webhook-port, or --enable-webhooks=false")
            }
            Self::NotRunning(_) => Some("the logs of its Deployment say more"),
            Self::MetricsCertificate(_) | Self::Run(RunError::Webhooks(ServeError::Files(_))) => {
                Some("the directory must hold a certificate and its key, as PEM")
            }
            Self::Logging(error) => Some(error.advice()),
            Self::Run(
                RunError::NotSynced { cause: NotSynced::Forbidden, .. }
                | RunError::Leader(LeaderError::Refused { code: 403, .. }),
            ) => Some("grant what the `rbac` command prints"),
            Self::Run(RunError::Leader(LeaderError::Refused { .. })) => {
                Some("does the namespace exist? --leader-election-namespace names another")
            }
            Self::Run(RunError::Leader(LeaderError::Times { .. })) => Some(
                "see --leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period",
            ),
            Self::Run(RunError::NotSynced { cause: NotSynced::NotServed, .. }) => {
                Some("are its CRDs installed? The `install` command applies them")
            }
            _ => None,
        }
    }
}
