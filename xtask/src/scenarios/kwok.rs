//! KWOK: built from the Go module in `xtask/kwok`, kept in the cache, and run beside a control plane.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::kubernetes;

/// The version of which `xtask/kwok/go.mod` has the modules.
const VERSION: &str = "0.8.0";
const PACKAGE: &str = "sigs.k8s.io/kwok/cmd/kwok";

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kwok")
}

/// The program, built if it is not there.
pub(super) fn program() -> Result<PathBuf> {
    let folder = kubernetes::cache_root()?.join(format!("kwok-v{VERSION}"));
    fs::create_dir_all(&folder)?;
    let _lock = kubernetes::lock(&folder.join(".lock"), "another build of KWOK")?;
    let program = folder.join("kwok");
    if program.is_file() {
        return Ok(program);
    }
    anstream::println!("building KWOK {VERSION}; the first build takes some minutes");
    let unfinished = folder.join(format!(".kwok.{}", std::process::id()));
    let built = Command::new("go")
        .current_dir(module())
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(&unfinished)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
        .context("failed to start `go`: install Go 1.26 or later (https://go.dev/doc/install)")?;
    if !built.status.success() {
        // The file may not exist; what matters is go's own message.
        let _ = fs::remove_file(&unfinished);
        bail!("failed to build KWOK:\n{}", String::from_utf8_lossy(&built.stderr).trim_end());
    }
    fs::rename(&unfinished, &program)?;
    Ok(program)
}

/// KWOK as it runs; it ends with this.
pub(super) struct Kwok {
    process: Child,
}

impl Kwok {
    /// Plays the nodes of a cluster that ask for it by annotation.
    pub(super) fn start(program: &Path, kubeconfig: &Path) -> Result<Self> {
        let process = Command::new(program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--config")
            .arg(module().join("stages.yaml"))
            .args(["--manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake"])
            .args(["--cidr", "10.244.0.0/16", "--node-ip", "192.0.2.1"])
            // Without a lease a node is given up after less than a minute.
            .args(["--node-lease-duration-seconds", "40", "--server-address", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("failed to start KWOK")?;
        Ok(Self { process })
    }
}

impl Drop for Kwok {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_go_module_pins_the_version_of_the_constant() {
        let pinned = fs::read_to_string(module().join("go.mod")).unwrap();
        assert!(pinned.contains(&format!("sigs.k8s.io/kwok v{VERSION}\n")));
    }
}
