//! This program under other names: `kube-apiserver`, `etcd` and `kubectl`, as `KUBEBUILDER_ASSETS` holds them.
//!
//! Whoever starts those programs for tests (envtest of controller-runtime, jenvtest and others) starts this one, with the
//! flags of the real ones. `windlass envtest` makes the directory ([`assets`]).
//!
//! All objects are in the process that is called kube-apiserver, in memory. The one that is called etcd answers whoever asks
//! whether it is well, and keeps nothing.

pub(crate) mod assets;
mod certificates;
mod etcd;
mod flags;
mod kube_apiserver;
mod kubectl;

use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use crate::{platform, printer::chain};

/// How often it is looked whether whoever started this process is still there.
const LOOK: Duration = Duration::from_millis(500);

/// What keeps a process running whose parent is gone.
const OUTLIVE: &str = "WINDLASS_ENVTEST_OUTLIVE";

/// What can go wrong before it runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to understand --{flag} {value:?}: {why}")]
    Flag { flag: &'static str, value: String, why: String },
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("failed to write {}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Server(#[from] crate::server::Error),
    #[error("failed to make a certificate")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("failed to reach etcd at {address} within {} s", limit.as_secs())]
    NoEtcd { address: String, limit: Duration },
    #[error("failed to start the API server")]
    Start(#[source] Box<windlass_cluster::Error>),
    #[error("failed to listen on {address}")]
    Listen { address: String, source: std::io::Error },
    #[error("failed to start")]
    Runtime(#[source] std::io::Error),
    #[error("failed to find kubectl: there is none in the PATH beside this one")]
    NoKubectl,
    #[error("failed to run {}", program.display())]
    Kubectl { program: PathBuf, source: std::io::Error },
    #[error("failed to find a place for the programs: neither XDG_CACHE_HOME nor a home directory is known")]
    NoHome,
    #[error("failed to find this program")]
    NoProgram(#[source] std::io::Error),
}

impl Error {
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoKubectl => "install kubectl; nothing else of envtest needs it".into(),
            Self::NoHome => "name a directory with --dir".into(),
            Self::NoEtcd { .. } => {
                "start `etcd` of the same directory first, with --listen-client-urls as in --etcd-servers"
                    .into()
            }
            _ => return None,
        })
    }
}

/// Which program this is called as, if it is one of the three.
pub(crate) fn called_as(program: Option<&OsString>) -> Option<&'static str> {
    let stem = Path::new(program?).file_stem()?.to_str()?.to_owned();
    assets::PROGRAMS.into_iter().find(|name| *name == stem)
}

/// Runs as one of the three.
pub(crate) fn run(name: &str, program: &Path, arguments: Vec<OsString>) -> ExitCode {
    let arguments = arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
    let done = match name {
        "kubectl" => kubectl::run(program, arguments),
        "etcd" => etcd::run(arguments),
        _ => kube_apiserver::run(program, arguments),
    };
    done.unwrap_or_else(|error| {
        let mut stderr = std::io::stderr().lock();
        // Nothing is left to tell when stderr is closed.
        let _ = writeln!(stderr, "error: {}", chain(&error));
        if let Some(hint) = error.hint() {
            let _ = writeln!(stderr, "hint: {hint}");
        }
        ExitCode::FAILURE
    })
}

/// Runs something until a signal comes, or whoever started this process is gone: a test that was killed stops nothing.
/// Nothing is kept, so nothing is waited for either.
fn until_the_end(work: impl Future<Output = Result<(), Error>>) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    let ended = runtime.block_on(async {
        let mut requests = platform::StopRequests::listen().map_err(Error::Runtime)?;
        tokio::select! {
            done = work => done,
            () = requests.next() => Ok(()),
            () = orphaned() => Ok(()),
        }
    });
    // Connections that are open end with the process.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

/// Waits until the process that started this one is gone. Where no system tells that, for ever.
async fn orphaned() {
    let Some(parent) = platform::parent().filter(|_| std::env::var_os(OUTLIVE).is_none()) else {
        return std::future::pending().await;
    };
    while platform::parent() == Some(parent) {
        tokio::time::sleep(LOOK).await;
    }
}

/// What is said once, for whoever reads a log.
fn warn(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "warning: {text}");
}
