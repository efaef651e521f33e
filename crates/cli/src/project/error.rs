//! What can be wrong with a project, and what to do about it.

use std::{io, path::PathBuf, process::ExitStatus as ProcessStatus};

use windlass::kube;

use crate::exit_status::ExitStatus;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to find the working folder")]
    WorkingFolder(#[source] io::Error),
    #[error(transparent)]
    Scaffold(#[from] windlass_scaffold::Error),
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to read {}", path.display())]
    Parse { path: PathBuf, source: Box<serde_saphyr::Error> },
    #[error("--only chooses among the seven operators, and this is the project {name}")]
    Only { name: String },
    #[error("failed to run cargo ({})", program.display())]
    NoCargo { program: PathBuf, source: io::Error },
    #[error("failed to build {name}: cargo ended with {status}")]
    Build { name: String, status: ProcessStatus },
    #[error("failed to build {name}: there is no program among what cargo has built")]
    NoProgram { name: String },
    #[error("failed to build {name}: cargo has built several programs ({})", programs.join(", "))]
    Programs { name: String, programs: Vec<String> },
    #[error("failed to run {}", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("`{command}` failed{}", last_line(said))]
    Failed { command: String, said: String },
    #[error("failed to read what `{command}` printed")]
    Printed { command: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{name} has no service account in what its `manifests` prints")]
    NoAccount { name: String },
    #[error("failed to apply {what}")]
    Apply { what: String, source: Refused },
    #[error("the API server does not know {what}")]
    UnknownKind { what: String, source: Refused },
    #[error("failed to read the sample {}", path.display())]
    Sample { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("failed to get a token for {account}")]
    Token { account: String, source: Refused },
    #[error("failed to reach the API server at {url}: {why}")]
    Unreachable { url: String, why: String },
    #[error("the operator {name} ended by itself ({status})")]
    Ended { name: String, status: String },
    #[error("failed to find a free port")]
    Port(#[source] io::Error),
}

/// What an API server said, without what a client wraps around it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    message: String,
    /// Whether others own what was to be changed.
    pub(crate) conflict: bool,
}

impl From<kube::Error> for Refused {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self { conflict: status.code == 409, message: status.message },
            error => Self { message: error.to_string(), conflict: false },
        }
    }
}

fn last_line(said: &str) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(String::new, |line| format!(": {line}"))
}

impl Error {
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Scaffold(error) => return error.hint(),
            Self::Only { .. } => "leave it out, or run `windlass dev` outside a project".into(),
            Self::NoCargo { .. } => {
                "install Rust from https://rustup.rs, or set CARGO to where cargo is".into()
            }
            Self::Build { .. } => "cargo has said why, above".into(),
            Self::NoProgram { .. } => "a project needs src/main.rs, or a [[bin]] in Cargo.toml".into(),
            Self::Programs { name, .. } => format!("one of them must be called {name}, as in PROJECT"),
            Self::Failed { .. } => "run it by itself to see all that it says".into(),
            Self::NoAccount { .. } => "main must end with `operator().main()`".into(),
            Self::UnknownKind { .. } => "is its CRD among those of the operator?".into(),
            Self::Unreachable { .. } => {
                "is it up? `windlass cluster up --detach` starts one here, --context names another".into()
            }
            Self::Ended { .. } => "what it said last is above; -v shows more".into(),
            _ => return None,
        })
    }

    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            Self::Scaffold(error) if !error.is_the_users() => ExitStatus::Error,
            Self::WorkingFolder(_) | Self::Port(_) | Self::Token { .. } => ExitStatus::Error,
            _ => ExitStatus::Failure,
        }
    }
}
