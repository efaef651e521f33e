//! controller-runtime's own suites, with the real etcd and kube-apiserver and with `windlass envtest` in their place.
//!
//! Enter names of packages; leaves a table of what has passed and how long it took. Its sources come from the Go module
//! proxy and each suite is compiled once, so that both columns run the same program.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;

use crate::kubernetes;

const MODULE: &str = "sigs.k8s.io/controller-runtime";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The packages below pkg/
    #[arg(default_values = ["builder", "manager", "controller", "cache", "client", "webhook", "envtest"])]
    packages: Vec<String>,

    /// The version of controller-runtime
    #[arg(long, default_value = "v0.25.2")]
    version: String,
}

/// What became of a suite.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    passed: u32,
    ran: u32,
    time: Duration,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let place = tempfile::tempdir().context("failed to make a folder")?;
    let real = kubernetes::assets()?;
    let ours = place.path().join("assets");
    let mut prepare = kubernetes::cargo();
    prepare.args(["run", "--quiet", "--package=windlass-cli", "--", "envtest", "--dir"]).arg(&ours);
    succeed(prepare.stdout(Stdio::null()))?;
    let source = place.path().join("controller-runtime");
    succeed(
        Command::new("cp").args(["-r", "--no-preserve=mode"]).arg(download(&args.version)?).arg(&source),
    )?;
    anstream::println!("{:12} {:>20} {:>20}", "package", "kube-apiserver", "windlass");
    let mut worse = Vec::new();
    for package in &args.packages {
        let program = place.path().join(format!("{package}.test"));
        let folder = source.join("pkg").join(package);
        let mut compile = Command::new("go");
        succeed(compile.args(["test", "-c", "-o"]).arg(&program).arg(".").current_dir(&folder))?;
        let [real, ours] = [&real, &ours].map(|assets| suite(&program, &folder, assets));
        let (real, ours) = (real?, ours?);
        anstream::println!("{package:12} {:>20} {:>20}", real.told(), ours.told());
        if ours.passed < real.passed {
            worse.push(package.as_str());
        }
    }
    if !worse.is_empty() {
        bail!("fewer tests pass with windlass: {}", worse.join(", "));
    }
    Ok(())
}

impl Outcome {
    /// Reads what ginkgo says at the end.
    fn read(output: &str, time: Duration) -> Option<Self> {
        let number = |before: &str, after: &str| -> Option<u32> {
            let line = output.lines().rev().find(|line| line.contains(before) && line.contains(after))?;
            let text = line.split(after).next()?;
            text.rsplit(|letter: char| !letter.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
        };
        Some(Self { passed: number("", " Passed")?, ran: number("Ran ", " of ")?, time })
    }

    fn told(&self) -> String {
        format!("{}/{} {:7.1} s", self.passed, self.ran, self.time.as_secs_f64())
    }
}

/// Where the Go module is, downloaded if it is not there.
fn download(version: &str) -> Result<PathBuf> {
    let mut command = Command::new("go");
    let output = command.args(["mod", "download", "-json", &format!("{MODULE}@{version}")]).output();
    let output = output.context("failed to start go")?;
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("failed to read what `go mod download` says")?;
    match answer["Dir"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => bail!("failed to download {MODULE}@{version}: {}", answer["Error"]),
    }
}

fn suite(program: &Path, folder: &Path, assets: &Path) -> Result<Outcome> {
    let begin = Instant::now();
    let mut command = Command::new(program);
    command.args(["-ginkgo.no-color", "-test.timeout=20m"]).current_dir(folder);
    let output = command.env("KUBEBUILDER_ASSETS", assets).output().context("failed to start a suite")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Outcome::read(&text, begin.elapsed())
        .with_context(|| format!("a suite of {} ended without a summary:\n{text}", folder.display()))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("failed to start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} failed", command.get_program().display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_ginkgo_is_read() {
        let output = "a\nRan 28 of 30 Specs in 12.345 seconds\nFAIL! -- 27 Passed | 1 Failed | 0 Pending | 2 Skipped\n";
        let read = Outcome::read(output, Duration::from_secs(3)).unwrap();
        assert_eq!(read, Outcome { passed: 27, ran: 28, time: Duration::from_secs(3) });
        assert_eq!(read.told(), "27/28     3.0 s");
        assert_eq!(Outcome::read("panic", Duration::ZERO), None);
    }
}
