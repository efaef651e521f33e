//! What can go wrong in a command, what the user can do about it, and the exit code that it gives.

use std::{error::Error as StdError, io, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use crate::args::ClusterArgs;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// It did what was asked.
    Success,
    /// What was asked cannot be done here: the user can change that.
    Failure,
    /// Windlass itself failed.
    Error,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::Error => 2,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    #[error("failed to read the log filter {0:?}")]
    LogFilter(String, #[source] tracing_subscriber::filter::ParseError),
    #[error("failed to listen for signals")]
    Signals(#[source] io::Error),
    #[error("failed to stop within {} s", .0.as_secs())]
    NotStopped(Duration),
    #[error("failed to write to the terminal")]
    Print(#[source] io::Error),
    #[error("failed to start the cluster")]
    StartCluster(#[source] Box<windlass_cluster::Error>),
    #[error("failed to open the data directory {}", path.display())]
    DataDirectory { path: PathBuf, source: Box<windlass_cluster::Error> },
    #[error("failed to keep the cluster running")]
    RunCluster(#[source] Box<windlass_cluster::Error>),
    #[error("the node was not ready within {} s", .0.as_secs())]
    NodeNotReady(Duration),
    #[error("failed to serve the API on {address}")]
    Listen { address: SocketAddr, source: Box<windlass_cluster::Error> },
    #[error("failed to write the kubeconfig {}", path.display())]
    WriteKubeconfig { path: PathBuf, source: io::Error },
    #[error("failed to read the kubeconfig {}", path.display())]
    ReadKubeconfig { path: PathBuf, source: Box<windlass::kube::config::KubeconfigError> },
    #[error("failed to find a cluster")]
    FindCluster(#[source] Box<windlass::kube::config::InferConfigError>),
    #[error("failed to make a client for the cluster")]
    Client(#[source] Box<windlass::kube::Error>),
    #[error("failed to generate the manifests")]
    Generate(#[source] Box<windlass_operators::manifests::Error>),
    #[error("failed to write the manifest {}", path.display())]
    WriteManifest { path: PathBuf, source: io::Error },
    #[error("failed to install the operators")]
    Install(#[source] Box<windlass_operators::install::Error>),
    #[error("failed to find a port for the webhooks")]
    WebhookPort(#[source] io::Error),
    #[error("failed to use {0:?} as the URL of the webhooks")]
    WebhookUrl(String),
    #[error("failed to run the operators")]
    Operators(#[source] Box<windlass::RunError>),
    #[error("failed to keep the operators running")]
    OperatorsPanicked(#[source] tokio::task::JoinError),
}

impl Error {
    /// What a cluster that did not start with these arguments means.
    pub(crate) fn starting(error: windlass_cluster::Error, args: &ClusterArgs) -> Self {
        use windlass_cluster::Error as Cluster;
        match (&args.data_dir, error) {
            (
                Some(path),
                error @ (Cluster::DataDirectory(_) | Cluster::Store(_) | Cluster::Certificates(_)),
            ) => Self::DataDirectory { path: path.clone(), source: error.into() },
            (_, error) => Self::StartCluster(error.into()),
        }
    }

    /// What the user can do.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::LogFilter(..) => {
                Some("RUST_LOG takes a level, or directives such as info,kube=debug".into())
            }
            Self::Listen { address, .. } => match self.io_kind() {
                Some(io::ErrorKind::AddrInUse) => Some(format!(
                    "something else listens on port {}; choose another with --port, or leave it out for any",
                    address.port()
                )),
                Some(io::ErrorKind::PermissionDenied) => {
                    Some("ports below 1024 need privileges; choose another with --port".into())
                }
                _ => None,
            },
            Self::DataDirectory { .. } => {
                self.io_kind().map(|_| "choose a directory that can be written with --data-dir DIR".into())
            }
            Self::ReadKubeconfig { .. } | Self::FindCluster(_) => Some(
                "name a kubeconfig with --kubeconfig FILE, or start a cluster with `windlass cluster up`"
                    .into(),
            ),
            Self::WebhookUrl(_) => {
                Some("write https://HOST:PORT, where HOST is this machine as the API server sees it".into())
            }
            Self::NotStopped(_) => {
                Some("a request or a reconcile did not end; RUST_LOG=debug shows which ones began".into())
            }
            Self::WriteManifest { .. } => Some("choose another place with --out DIR".into()),
            Self::WriteKubeconfig { .. } => Some("choose another place with --kubeconfig FILE".into()),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            Self::LogFilter(..)
            | Self::Print(_)
            | Self::Listen { .. }
            | Self::DataDirectory { .. }
            | Self::WriteKubeconfig { .. }
            | Self::ReadKubeconfig { .. }
            | Self::FindCluster(_)
            | Self::Client(_)
            | Self::WebhookUrl(_)
            | Self::WriteManifest { .. }
            | Self::Install(_) => ExitStatus::Failure,
            _ => ExitStatus::Error,
        }
    }

    /// What the system said, wherever in the chain that is.
    fn io_kind(&self) -> Option<io::ErrorKind> {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return Some(io.kind());
            }
            cause = error.source();
        }
        None
    }
}
