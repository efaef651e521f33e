//! Processes by identity: a pid together with its start time, so that a reused pid is never taken for ours.
//!
//! Enter pids; leave identities that can be asked and ended.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// One process, even after its pid has been given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Clock ticks between boot and the process's start.
    started: u64,
}

impl Identity {
    /// The process that has `pid` now.
    pub(super) fn of(pid: i32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, started) =
            parse_stat(&stat).with_context(|| format!("failed to understand /proc/{pid}/stat"))?;
        Ok(Self { pid, started })
    }

    /// Whether the process still runs. A zombie does not.
    pub(super) fn alive(self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).is_ok_and(|stat| {
            !is_zombie(&stat) && parse_stat(&stat).is_some_and(|(_, started)| started == self.started)
        })
    }

    /// Ends the process, if it is still the same one.
    pub(super) fn kill(self) {
        if self.alive() {
            signal(self.pid, kill_process);
        }
    }

    /// Ends the whole process group that this process leads.
    pub(super) fn kill_group(self) {
        if self.alive() {
            signal(self.pid, kill_process_group);
        }
    }
}

/// Sends SIGKILL. A process that has just ended is what was wanted, so its absence is no error.
fn signal(pid: i32, send: impl Fn(Pid, Signal) -> rustix::io::Result<()>) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = send(pid, Signal::KILL);
    }
}

/// Ends a process known only by its pid, as read from a cgroup that is ours.
pub(super) fn kill_pid(pid: i32) {
    signal(pid, kill_process);
}

/// The first child of `parent`, once it has one.
pub(super) fn await_child(parent: i32, patience: Duration) -> Result<Identity> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(child) = children(parent)?.first() {
            return Identity::of(*child);
        }
        if Instant::now() > deadline {
            bail!("process {parent} started no child within {} s", patience.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn children(parent: i32) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end between the listing and the reading.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        if parse_stat(&stat).is_some_and(|(ppid, _)| ppid == parent) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The children of a process, their children, and so on.
pub(super) fn descendants(root: i32) -> Result<Vec<i32>> {
    let mut found = children(root)?;
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(parent)?);
        next += 1;
    }
    Ok(found)
}

/// The parent's pid and the start time. The command's name may hold spaces and brackets, so fields are
/// counted from the last bracket.
fn parse_stat(stat: &str) -> Option<(i32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, started))
}

fn is_zombie(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a b) c) S 7 42 42 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 98765 1 2 3";

    #[test]
    fn a_bracket_in_the_name_does_not_shift_the_fields() {
        assert_eq!(parse_stat(STAT), Some((7, 98765)));
        assert!(!is_zombie(STAT));
        assert!(is_zombie(&STAT.replace(") S ", ") Z ")));
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let own = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.alive());
        assert!(!Identity { started: own.started + 1, ..own }.alive());
    }
}
