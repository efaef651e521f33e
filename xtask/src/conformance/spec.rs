//! One spec: a process of the suite with a limit, its output kept in a file, and what it came to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fs_err as fs;

/// How long beyond its limit a spec may take to clean up, before it is killed.
const GRACE: Duration = Duration::from_secs(40);

/// What a spec came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// With the first line of the reason.
    Failed(String),
    /// The suite itself found that it does not apply here.
    Skipped(String),
    /// The run ended before its turn.
    NotRun,
}

/// A spec that has had its turn.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) spec: String,
    pub(super) outcome: Outcome,
    pub(super) time: Duration,
    pub(super) log: PathBuf,
}

/// Runs a spec to its end.
pub(super) fn run(spec: &str, mut command: Command, log: PathBuf, limit: Duration) -> Run {
    let begin = Instant::now();
    let ended = finish(&mut command, &log, limit + GRACE);
    let output = fs::read(&log).unwrap_or_default();
    let outcome = match ended {
        Ok(Some(status)) => judge(status, &String::from_utf8_lossy(&output)),
        Ok(None) => Outcome::Failed(format!("took longer than {} s", limit.as_secs())),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    };
    Run { spec: spec.to_owned(), outcome, time: begin.elapsed(), log }
}

/// Waits for the end of a process, or kills it at its limit.
fn finish(command: &mut Command, log: &Path, limit: Duration) -> Result<Option<ExitStatus>> {
    let file = fs::File::create(log)?.into_parts().0;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut process = Ended(command.spawn().context("failed to start e2e.test")?);
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = process.0.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(None)
}

/// A process that does not outlive this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the outcome from what the suite printed. Success needs one spec that ran and passed: a suite that ran
/// nothing also ends well.
fn judge(status: ExitStatus, output: &str) -> Outcome {
    let ran_one = output.lines().any(|line| line.starts_with("Ran 1 of "));
    if status.success() && ran_one {
        return Outcome::Passed;
    }
    if let Some(reason) = reason(output, "[SKIPPED]") {
        return Outcome::Skipped(reason);
    }
    if let Some(reason) =
        ["[FAILED]", "[TIMEDOUT]", "[PANICKED]", "[INTERRUPTED]"].iter().find_map(|mark| reason(output, mark))
    {
        return Outcome::Failed(reason);
    }
    Outcome::Failed(format!("e2e.test ended with {status} and no verdict"))
}

/// The first line that says why, where a line begins with `mark`.
fn reason(output: &str, mark: &str) -> Option<String> {
    let mut lines = output.lines().map(str::trim_start);
    // The same mark also stands before a duration and before the place of a failure.
    let says_why = |rest: &&str| !rest.starts_with(" [") && !rest.starts_with(" in [");
    let line = lines.find_map(|line| line.strip_prefix(mark).filter(says_why))?;
    let reason = line.trim();
    // A reason may begin on the line below its mark.
    let reason = if reason.is_empty() { lines.next().unwrap_or_default().trim() } else { reason };
    Some(reason.chars().take(240).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const BAD: i32 = 1 << 8;

    #[test]
    fn a_suite_that_ran_nothing_has_not_passed() {
        let nothing = judge(ExitStatus::from_raw(0), "Ran 0 of 7000 Specs in 0.1 seconds\n");
        assert!(matches!(nothing, Outcome::Failed(_)), "{nothing:?}");
        assert_eq!(judge(ExitStatus::from_raw(0), "Ran 1 of 7000 Specs in 3 seconds\n"), Outcome::Passed);
    }

    #[test]
    fn the_reason_of_a_failure_is_its_first_line() {
        let output = "  [FAILED] in [It] - x.go:1 @ 1/1/26\n• [FAILED] [2.1 seconds]\n  [FAILED] pod never ran: timeout\n  In [It] at: x.go:1\nRan 1 of 9\n";
        assert_eq!(
            judge(ExitStatus::from_raw(BAD), output),
            Outcome::Failed("pod never ran: timeout".to_owned())
        );
    }

    #[test]
    fn a_spec_that_leaves_itself_out_is_skipped() {
        let output = "S [SKIPPED] [0.3 seconds]\n  [SKIPPED] Requires at least 2 nodes (not 1)\nRan 0 of 9\n";
        assert_eq!(
            judge(ExitStatus::from_raw(0), output),
            Outcome::Skipped("Requires at least 2 nodes (not 1)".to_owned())
        );
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("600");
        let ended = finish(&mut command, &folder.path().join("log"), Duration::from_millis(200)).unwrap();
        assert!(ended.is_none());
    }
}
