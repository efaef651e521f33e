//! The operator under measurement, as a process.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// The kernel counts CPU time in these, on every Linux that Rust's standard library supports.
const TICKS_PER_SECOND: u64 = 100;
/// An operator that takes longer is broken.
const LIMIT: Duration = Duration::from_mins(10);

pub(super) struct Operator {
    child: Child,
    pid: u32,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Operator {
    pub(super) fn start(command: &[String], objects: usize) -> Result<Self> {
        let (program, args) = command.split_first().context("the operator's command is empty")?;
        let mut child = Command::new(program)
            .args(args)
            .env("BENCH_OBJECTS", objects.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {program}"))?;
        let pid = child.id().context("a process that just started must have an id")?;
        let stdout = child.stdout.take().context("stdout must be piped")?;
        Ok(Self { child, pid, lines: BufReader::new(stdout).lines() })
    }

    /// Resolves, with the reason, if the process ends by itself.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => anyhow!("the operator ended with {status}"),
            Err(error) => anyhow::Error::new(error).context("failed to wait for the operator"),
        }
    }

    /// Returns when it said that it has a client and nothing else yet.
    pub(super) async fn connected(&mut self) -> Result<()> {
        self.line("connected").await.map(drop)
    }

    /// When it said that it has reconciled everything.
    pub(super) async fn all_reconciled(&mut self) -> Result<Instant> {
        self.line("reconciled ").await?;
        Ok(Instant::now())
    }

    async fn line(&mut self, prefix: &str) -> Result<String> {
        let read = async {
            while let Some(line) = self.lines.next_line().await? {
                if let Some(rest) = line.strip_prefix(prefix) {
                    return Ok(rest.to_owned());
                }
            }
            bail!("the operator ended without saying {prefix:?}")
        };
        tokio::time::timeout(LIMIT, read)
            .await
            .with_context(|| format!("the operator did not say {prefix:?}"))?
    }

    /// Ends the process as a cluster would, and returns the order of first reconciles.
    pub(super) async fn stop(mut self) -> Result<Vec<String>> {
        let killed = Command::new("kill").args(["-TERM", &self.pid.to_string()]).status().await?;
        if !killed.success() {
            bail!("failed to end the operator: kill said {killed}");
        }
        let order = self.line("order").await?.split_whitespace().map(str::to_owned).collect();
        self.child.wait().await.context("failed to wait for the operator")?;
        Ok(order)
    }

    /// CPU time used so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The second field is the program's name in parentheses, which may hold anything.
        let (_, fields) = stat.rsplit_once(") ").context("failed to read /proc/PID/stat")?;
        let ticks: Vec<u64> = fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
    }

    /// A figure of the kernel about its memory, in bytes: `VmRSS` for all, `RssAnon` for the heap and the stacks.
    pub(super) fn memory(&self, figure: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: f64 = kilobytes.with_context(|| format!("failed to read {figure}"))?.trim().parse()?;
        Ok(kilobytes * 1024.0)
    }
}
