//! What can go wrong with a named cluster, and what to do about it.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::exit_status::ExitStatus;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to find a folder for the state of clusters")]
    NoHome,
    #[error("failed to {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("there is no cluster {name:?}")]
    Unknown { name: String, known: Vec<String> },
    #[error("the cluster {0:?} is not running")]
    NotRunning(String),
    #[error("the cluster {0:?} is still starting")]
    Starting(String),
    #[error("the cluster {name:?} is already running{}", pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    AlreadyRunning { name: String, pid: Option<u32> },
    #[error("failed to start the cluster {name:?} in the background: {why}")]
    NotStarted { name: String, why: String, hint: Option<String> },
    #[error("failed to stop the cluster {name:?} within {} s", patience.as_secs())]
    NotStopped { name: String, pid: Option<u32>, patience: Duration },
    #[error("failed to start another process")]
    Spawn(#[source] io::Error),
    #[error(
        "the cluster {name:?} runs in the foreground (pid {pid}), which only its terminal can start anew"
    )]
    Foreground { name: String, pid: u32 },
    #[error("the cluster {name:?} keeps its objects in {}, which is not thrown away", path.display())]
    OwnDirectory { name: String, path: PathBuf },
    #[error("the cluster {0:?} exists already, and is not replaced")]
    Exists(String),
    #[error("the cluster {0:?} keeps its objects in memory, where no backup finds them")]
    InMemory(String),
    #[error("failed to back up {name:?}")]
    Backup { name: String, source: windlass_cluster::BackupError },
    #[error("failed to restore {name:?}")]
    Restore { name: String, source: windlass_cluster::BackupError },
}

impl Error {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::NoHome => Some("set WINDLASS_HOME to a folder that can be written".into()),
            Self::Io { .. } => Some("set WINDLASS_HOME to another folder, or make this one writable".into()),
            Self::Unknown { known, .. } if known.is_empty() => {
                Some("start one in the background with `windlass cluster up --detach`".into())
            }
            Self::Unknown { known, .. } => Some(format!("there are {}", known.join(", "))),
            Self::NotRunning(name) => {
                Some(format!("start it with `windlass cluster up --detach{}`", named(name)))
            }
            Self::Starting(_) => Some("try again in a moment; `windlass cluster status` tells".into()),
            Self::AlreadyRunning { name, .. } => Some(format!(
                "stop it with `windlass cluster down{}`, or give the new one another --name",
                named(name)
            )),
            Self::NotStarted { hint, .. } => hint.clone(),
            Self::NotStopped { pid: Some(pid), .. } => Some(format!(
                "its log may say why; `kill -9 {pid}` ends it, and what was acknowledged is kept"
            )),
            Self::Foreground { .. } => Some("stop it with Ctrl-C there, then reset it".into()),
            Self::OwnDirectory { path, .. } => {
                Some(format!("stop it, and remove {} yourself", path.display()))
            }
            Self::Exists(name) => Some(format!(
                "choose another --name, or throw this one away: `windlass cluster reset{}`",
                named(name)
            )),
            Self::InMemory(name) => Some(format!(
                "read them while it runs: `windlass cluster import --kubeconfig $(windlass cluster kubeconfig{}) \
                 --name OTHER`",
                named(name)
            )),
            Self::Backup { source: windlass_cluster::BackupError::Exists { .. }, .. } => {
                Some("choose another file, or remove this one".into())
            }
            Self::Backup { .. }
            | Self::Restore { .. }
            | Self::NotStopped { pid: None, .. }
            | Self::Spawn(_) => None,
        }
    }

    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            Self::NotStopped { .. } | Self::Spawn(_) => ExitStatus::Error,
            _ => ExitStatus::Failure,
        }
    }
}

/// The flag that names a cluster, where one is needed.
fn named(name: &str) -> String {
    if name == super::home::DEFAULT { String::new() } else { format!(" --name {name}") }
}

pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
