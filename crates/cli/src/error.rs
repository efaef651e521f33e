//! What can go wrong in a command, what the user can do about it, and the exit code that it gives.

use std::{error::Error as StdError, fmt, io, net::SocketAddr, path::PathBuf, time::Duration};

use crate::{args::ClusterArgs, clusters, exit_status::ExitStatus, project};

/// An error of one command's own, of which this room knows no more than what every error says.
pub(crate) trait Explained: StdError + Send + Sync + 'static {
    /// What the user can do.
    fn hint(&self) -> Option<String>;

    fn status(&self) -> ExitStatus;
}

/// Such an error, as the command reported it.
#[derive(Debug)]
pub(crate) struct OfCommand(Box<dyn Explained>);

impl fmt::Display for OfCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl StdError for OfCommand {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Scaffold(#[from] windlass_scaffold::Error),
    #[error("the following flags are missing: {}", .0.join(", "))]
    MissingFlags(Vec<&'static str>),
    #[error("failed to merge {}: what you changed and what is new touch the same lines", paths.join(", "))]
    Conflicts { paths: Vec<String>, written: bool },
    #[error("failed to read the CRD {}", path.display())]
    ReadCrd { path: PathBuf, source: io::Error },
    #[error("failed to generate config/")]
    Config(#[source] Box<windlass::ConfigError>),
    #[error("failed to read from the terminal")]
    Ask(#[source] io::Error),
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
    #[error("failed to reach the cluster")]
    Reach(#[source] Box<windlass::kube::Error>),
    #[error("failed to read the {kind} of the other cluster")]
    ReadOther { kind: String, source: Box<windlass::kube::Error> },
    #[error("failed to wait for the disk of {}", path.display())]
    SyncImport { path: PathBuf, source: io::Error },
    #[error("the new cluster refuses {count} objects, and was not made: {first}")]
    Refused { count: usize, first: String },
    #[error(transparent)]
    Server(#[from] crate::server::Error),
    #[error(transparent)]
    Page(windlass_ui::Error),
    #[error("failed to show the cluster in the terminal")]
    Terminal(#[source] std::io::Error),
    #[error(transparent)]
    History(windlass_ui::history::Error),
    #[error("the cluster serves no kind {0:?}")]
    NoKind(String),
    #[error("there is no {kind} {name:?}, and the cluster remembers none")]
    NoVersions { kind: String, name: String },
    #[error("no version of the object has a field {0:?}")]
    NoField(String),
    #[error("failed to generate the manifests")]
    Generate(#[source] Box<windlass_operators::manifests::Error>),
    #[error("failed to install the operators")]
    Install(#[source] Box<windlass_operators::install::Error>),
    #[error(transparent)]
    Clusters(#[from] clusters::Error),
    #[error(transparent)]
    Project(#[from] project::Error),
    /// A program that ran in the place of this one has said why.
    #[error("the program ended with {0}")]
    Passed(u8),
    #[error("{0} of the checks failed")]
    Unwell(usize),
    #[error("failed to write the answer as data")]
    Encode(#[source] Box<dyn StdError + Send + Sync>),
    #[error("failed to find a port for the webhooks")]
    WebhookPort(#[source] io::Error),
    #[error("failed to use {0:?} as the URL of the webhooks")]
    WebhookUrl(String),
    #[error("failed to run the operators")]
    Operators(#[source] Box<windlass::RunError>),
    #[error("failed to keep the operators running")]
    OperatorsPanicked(#[source] tokio::task::JoinError),
    #[error(transparent)]
    Deploy(#[from] windlass_deploy::Error),
    #[error("failed to find the operator's image")]
    NoImage,
    #[error("failed to read {}", path.display())]
    ReadObjects { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Envtest(#[from] crate::envtest::Error),
    #[error(transparent)]
    Command(OfCommand),
}

impl<E: Explained> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Command(OfCommand(Box::new(error)))
    }
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
            Self::Scaffold(error) => error.hint(),
            Self::ReadCrd { .. } => {
                Some("name a file with a CRD in it, as `kubectl get crd NAME -o yaml` prints it".into())
            }
            Self::Conflicts { written: true, .. } => {
                Some("edit what is between the marks <<<<<<< and >>>>>>>".into())
            }
            Self::Conflicts { .. } => {
                Some("these files stay as they were; --conflict-markers writes both sides into them".into())
            }
            Self::MissingFlags(_) => {
                Some("windlass asks for them when a terminal is there; see --help".into())
            }
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
            Self::Page(windlass_ui::Error::Listen(..)) => {
                Some("choose another port, or 0 for any that is free".into())
            }
            Self::Refused { .. } => Some("--keep-going leaves them out; -n and --kind choose".into()),
            Self::ReadOther { .. } => {
                Some("the user of the kubeconfig must be allowed to list it; --kind and -n choose".into())
            }
            Self::NoKind(_) => {
                Some("write it as `kubectl api-resources` lists it, such as deployments.apps".into())
            }
            Self::NoVersions { .. } => Some("it may be in another namespace: -n NAMESPACE".into()),
            Self::NoField(_) => Some("write it as in spec.template.spec.containers[web].image".into()),
            Self::Clusters(error) => error.hint(),
            Self::Project(error) => error.hint(),
            Self::WebhookUrl(_) => {
                Some("write https://HOST:PORT, where HOST is this machine as the API server sees it".into())
            }
            Self::NotStopped(_) => {
                Some("a request or a reconcile did not end; RUST_LOG=debug shows which ones began".into())
            }
            Self::Deploy(error) => error.hint(),
            Self::NoImage => Some(
                "name it with --image, or write config/ with one: windlass manifests -- --image IMAGE".into(),
            ),
            Self::Envtest(error) => error.hint(),
            Self::Command(OfCommand(error)) => error.hint(),
            Self::WriteKubeconfig { .. } => Some("choose another place with --kubeconfig FILE".into()),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            Self::Clusters(error) => error.status(),
            Self::Project(error) => error.status(),
            Self::Command(OfCommand(error)) => error.status(),
            Self::Passed(2) => ExitStatus::Error,
            Self::Scaffold(error) if !error.is_the_users() => ExitStatus::Error,
            Self::Scaffold(_)
            | Self::MissingFlags(_)
            | Self::Conflicts { .. }
            | Self::ReadCrd { .. }
            | Self::Ask(_)
            | Self::LogFilter(..)
            | Self::Passed(_)
            | Self::Unwell(_)
            | Self::Print(_)
            | Self::Envtest(_)
            | Self::Listen { .. }
            | Self::DataDirectory { .. }
            | Self::WriteKubeconfig { .. }
            | Self::ReadKubeconfig { .. }
            | Self::FindCluster(_)
            | Self::Client(_)
            | Self::Reach(_)
            | Self::Page(_)
            | Self::Terminal(_)
            | Self::History(_)
            | Self::ReadOther { .. }
            | Self::Server(_)
            | Self::Refused { .. }
            | Self::NoKind(_)
            | Self::NoVersions { .. }
            | Self::NoField(_)
            | Self::WebhookUrl(_)
            | Self::Deploy(_)
            | Self::NoImage
            | Self::ReadObjects { .. }
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
