//! kubectl of the testbed's own version, as the one client of the API that xtask has.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(program: &Path, kubeconfig: &Path) -> Self {
        Self { program: program.to_owned(), kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs kubectl and returns what it printed.
    pub(crate) fn output(&self, args: &[&str]) -> Result<String> {
        self.with_input(args, "")
    }

    /// A kubectl that is yet to be started.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            // Discovery is cached by address, and the next testbed may have the address of the last.
            .arg("--cache-dir")
            .arg(self.kubeconfig.with_file_name("kubectl-cache"))
            .args(args);
        command
    }

    /// Runs kubectl with `input` on its standard input.
    pub(crate) fn with_input(&self, args: &[&str], input: &str) -> Result<String> {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // kubectl may end without reading: its own message then says more than a broken pipe.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().context("failed to wait for kubectl")?;
        if !output.status.success() {
            bail!(
                "failed to run `kubectl {}`: {}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
