//! `down`: ends a testbed and removes all it left, whatever state a crash has left it in.
//!
//! Enters a name; leaves no process, mount, interface, iptables rule, cgroup or file of that testbed. Mounts and
//! iptables rules live in the box's namespaces and end with its last process.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::layout::{self, Layout};
use super::state::{self, Mode, State};
use super::{cgroup, network};

pub(super) fn run(name: &str, all: bool) -> Result<()> {
    let names = if all { known()? } else { vec![name.to_owned()] };
    if all && names.is_empty() {
        anstream::println!("no testbed is up");
    }
    for name in names {
        let _lock = state::lock_name(&name)?;
        let layout = Layout::of(&name)?;
        if !layout.run.exists() && !cgroup::exists(&layout) {
            anstream::println!("testbed `{name}` is not up");
            continue;
        }
        let begin = Instant::now();
        remove(&layout)?;
        anstream::println!("testbed `{name}` is down ({:.1} s)", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Every testbed that has a run directory or a cgroup.
fn known() -> Result<Vec<String>> {
    let mut names = layout::names()?;
    names.extend(cgroup::names(&Layout::of("any")?));
    names.sort();
    names.dedup();
    Ok(names)
}

/// Ends the testbed and removes its files. Hold its lock.
pub(super) fn remove(layout: &Layout) -> Result<()> {
    end(layout)?;
    if layout.run.exists() {
        fs::remove_dir_all(&layout.run).context("failed to remove the run directory")?;
    }
    Ok(())
}

/// Ends the testbed and keeps its files, so that the logs of a failed start can be read.
pub(super) fn end(layout: &Layout) -> Result<()> {
    let state = State::read(layout);
    if let Some(state) = &state {
        match state.mode {
            Mode::Node => [state.inner, state.outer].into_iter().flatten().for_each(|process| process.kill()),
            Mode::ControlPlane | Mode::ApiServer => {
                state.outer.into_iter().for_each(|process| process.kill_group());
            }
        }
    }
    if cgroup::exists(layout) {
        cgroup::remove(layout)?;
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while state.as_ref().is_some_and(still_running) {
        if Instant::now() > deadline {
            bail!("testbed `{}` did not end within 10 s of being killed", layout.name);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if let Some(interface) = state.and_then(|state| state.interface) {
        network::disconnect(&interface);
        if network::exists(&interface) {
            bail!("failed to remove the interface {interface}");
        }
    }
    Ok(())
}

fn still_running(state: &State) -> bool {
    [state.outer, state.inner].into_iter().flatten().any(|process| process.alive())
}
