//! `test`: runs the tests that need a real cluster, and only those.
//!
//! The convention: such a test lives in a crate's `tests/` directory, carries
//! `#[ignore = "needs a real cluster"]`, finds its cluster by KUBECONFIG, and works in namespaces of its own. One
//! that would harm the others starts a testbed of its own, with the program that WINDLASS_XTASK names.
//! Enters a testbed or the user's KUBECONFIG; leave the counts, and an error when a test failed or none ran.

mod convention;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::layout::{self, Layout};
use super::state::{self, State};

/// Counts as libtest prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

pub(super) fn run(name: Option<&str>, cargo: &[String]) -> Result<()> {
    convention::check(layout::checkout())?;
    let kubeconfig = choose_cluster(name)?;
    let mut command = self::cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--test=*"])
        .args(cargo)
        // Those start control planes of their own and take as long as all others together: `just operators-real`.
        .args(["--", "--ignored", "--skip", "real_control_plane"])
        .args(convention::ELSEWHERE.iter().flat_map(|(_, name)| ["--skip", name]))
        .env("KUBECONFIG", kubeconfig)
        // For tests that need a testbed of their own, because they break it.
        .env("WINDLASS_XTASK", std::env::current_exe().context("failed to find this program")?)
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start `cargo test`")?;
    let output = child.stdout.take().context("failed to read from `cargo test`")?;
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("failed to read from `cargo test`")?;
        anstream::println!("{line}");
        if let Some(found) = parse_result(&line) {
            counts.passed += found.passed;
            counts.failed += found.failed;
        }
    }
    let status = child.wait().context("failed to wait for `cargo test`")?;
    anstream::println!("real-cluster tests: {} passed, {} failed", counts.passed, counts.failed);
    if !status.success() || counts.failed > 0 {
        bail!("the real-cluster tests failed");
    }
    if counts.passed == 0 {
        bail!("no real-cluster test ran: expected tests with #[ignore = \"{}\"]", convention::REASON);
    }
    Ok(())
}

/// `cargo` in the checkout, as a person would start it there.
pub(super) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(layout::checkout());
    // `cargo run` describes xtask in these; a build script that watches them would take them for its own and run
    // again, with everything that depends on it.
    for (variable, _) in
        std::env::vars_os().filter(|(variable, _)| describes_a_package(&variable.to_string_lossy()))
    {
        command.env_remove(variable);
    }
    command
}

fn describes_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// The testbed that was named or stands ready; else the cluster that the user has chosen.
fn choose_cluster(name: Option<&str>) -> Result<PathBuf> {
    if let Some(name) = name {
        let (layout, _) = state::require_ready(name)?;
        return Ok(layout.kubeconfig());
    }
    let testbed = Layout::of("default")?;
    if State::read(&testbed).is_some_and(|state| state.running() && state.ready) {
        anstream::println!("testing on testbed `default`");
        return Ok(testbed.kubeconfig());
    }
    let Some(own) = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) else {
        bail!(
            "no cluster to test on: start a testbed with `cargo xtask kubernetes up`, or set KUBECONFIG to a \
             cluster of your own"
        );
    };
    anstream::println!("testing on the cluster of KUBECONFIG={}", PathBuf::from(&own).display());
    Ok(own.into())
}

fn parse_result(line: &str) -> Option<Counts> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(word))
            .and_then(|number| number.trim().parse().ok())
    };
    Some(Counts { passed: number("passed")?, failed: number("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtests_summary_is_understood() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s";
        assert_eq!(parse_result(line), Some(Counts { passed: 12, failed: 3 }));
        assert_eq!(parse_result("test a::b ... ok"), None);
    }
}
