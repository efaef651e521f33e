//! The programs that are measured, and what the system says about them while they run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

/// The root of the checkout.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie in the workspace")
}

/// Builds packages as they are shipped, unless they are `built`, and returns where their programs lie.
pub(super) fn build(built: Option<&Path>, packages: &[&str]) -> Result<PathBuf> {
    if let Some(built) = built {
        return Ok(fs::canonicalize(built)?);
    }
    let mut rust = cargo();
    rust.current_dir(root()).args(["build", "--profile", "dist"]).args(packages);
    succeed(rust, "cargo build")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("dist"))
}

/// The cargo that started this, without what it says of xtask itself: that would make build scripts run again.
pub(super) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("CARGO_PKG_") {
            cargo.env_remove(&variable);
        }
    }
    cargo
}

/// Runs a command that must succeed.
pub(super) fn succeed(mut command: Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("failed to start `{what}`"))?;
    if !status.success() {
        bail!("`{what}` ended with {status}");
    }
    Ok(())
}

/// A process that is killed when this is dropped.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(
            command.stdin(Stdio::null()).spawn().with_context(|| format!("failed to start {command:?}"))?,
        ))
    }

    pub(super) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A load generator on the server of one kubeconfig.
pub(super) struct Load {
    pub(super) programs: PathBuf,
    pub(super) kubeconfig: PathBuf,
}

impl Load {
    fn command(&self, phases: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("bench-load"));
        command.arg(&self.kubeconfig).args(phases).stdout(Stdio::piped());
        command
    }

    /// Runs phases, one after the other; returns the figures of each.
    pub(super) fn run(&self, phases: &[&str]) -> Result<Vec<Value>> {
        let output =
            self.command(phases).stderr(Stdio::inherit()).output().context("failed to start bench-load")?;
        if !output.status.success() {
            bail!("bench-load ended with {} in one of {phases:?}", output.status);
        }
        output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).context("failed to read the figures of bench-load"))
            .collect()
    }

    /// A generator that waits for the server to be ready: start it before the server.
    pub(super) fn await_ready(&self) -> Result<Waiting> {
        let mut process = Running::start(&mut self.command(&["ready"]))?;
        let stdout = process.0.stdout.take().context("failed to read from bench-load")?;
        // The generator's own start must not count.
        std::thread::sleep(std::time::Duration::from_millis(100));
        Ok(Waiting { _process: process, stdout: BufReader::new(stdout) })
    }
}

/// A generator that waits.
pub(super) struct Waiting {
    _process: Running,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    /// Milliseconds from `begin` until the server had answered.
    pub(super) fn milliseconds(mut self, begin: Instant) -> Result<f64> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let passed = begin.elapsed().as_secs_f64() * 1000.0;
        if line.is_empty() {
            bail!("the server never became ready");
        }
        Ok(passed)
    }
}

/// Megabytes that the processes hold in memory.
pub(super) fn resident(pids: &[i32]) -> Result<f64> {
    let mut kilobytes = 0.0;
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        kilobytes += line.trim().trim_end_matches(" kB").parse::<f64>()?;
    }
    Ok(kilobytes * 1024.0 / 1e6)
}

/// Seconds of processor time that a process has used.
pub(crate) fn processor_seconds(pid: i32) -> Result<f64> {
    ticks(&format!("/proc/{pid}/stat"), 11)
}

/// Seconds of processor time that the processes have used that this one started and that have ended, and theirs.
pub(super) fn processor_seconds_of_children() -> Result<f64> {
    ticks("/proc/self/stat", 13)
}

/// The sum of two neighbouring fields, counted from behind the name, in seconds.
fn ticks(file: &str, first: usize) -> Result<f64> {
    let stat = fs::read_to_string(file)?;
    let fields = stat.rsplit_once(')').context("failed to understand /proc/PID/stat")?.1;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(first).take(2).filter_map(|field| field.parse().ok()).collect();
    #[expect(clippy::cast_precision_loss, reason = "a hundred ticks a second")]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok(ticks.iter().sum::<f64>() / per_second)
}
