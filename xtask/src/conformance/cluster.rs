//! The cluster under test: `windlass cluster up` of this checkout, on a free port, gone with its handle.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::kubernetes;

/// How long the cluster may take until its kubeconfig is there. It takes less than a second.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A cluster that runs.
pub(super) struct Cluster {
    kubeconfig: PathBuf,
    /// What must end with it; `None` if it is someone else's.
    _own: Option<Own>,
}

/// A cluster of ours.
struct Own {
    process: Child,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// One that is up.
    pub(super) fn at(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { kubeconfig: fs::canonicalize(kubeconfig)?, _own: None })
    }

    /// Builds and starts one.
    pub(super) fn start() -> Result<Self> {
        let built = kubernetes::cargo().args(["build", "--package", "windlass-cli"]).status();
        if !built.context("failed to start `cargo build`")?.success() {
            bail!("failed to build windlass");
        }
        let folder = tempfile::Builder::new().prefix("windlass-conformance-").tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let log = fs::File::create(folder.path().join("cluster.log"))?.into_parts().0;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        // Some specs need two nodes.
        let process = Command::new(target.join("debug/windlass"))
            .args(["cluster", "up", "--nodes", "2", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("failed to start `windlass cluster up`")?;
        let mut own = Own { process, folder };
        own.wait_for(&kubeconfig)?;
        Ok(Self { kubeconfig, _own: Some(own) })
    }

    /// How to reach it.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Own {
    fn wait_for(&mut self, kubeconfig: &Path) -> Result<()> {
        let begin = Instant::now();
        while !kubeconfig.exists() {
            if self.process.try_wait()?.is_some() || begin.elapsed() > TIMEOUT {
                let log = fs::read_to_string(self.folder.path().join("cluster.log"))?;
                bail!("`windlass cluster up` did not become ready:\n{}", log.trim_end());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie in the workspace")
}
