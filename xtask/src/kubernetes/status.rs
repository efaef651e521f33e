//! `status`: which testbeds there are, and what runs in them.

use anyhow::Result;
use fs_err as fs;

use super::layout::{self, Layout};
use super::state::{Mode, State};

pub(super) fn print() -> Result<()> {
    let names = layout::names()?;
    if names.is_empty() {
        anstream::println!("no testbed is up: start one with `cargo xtask kubernetes up`");
    }
    for name in names {
        let layout = Layout::of(&name)?;
        let Some(state) = State::read(&layout) else {
            anstream::println!("{name}: the remains of a failed start, in {}", layout.run.display());
            continue;
        };
        let mode = match state.mode {
            Mode::Node => "with a node",
            Mode::ControlPlane => "control plane only",
            Mode::ApiServer => "API server only",
        };
        let condition = match (state.running(), state.ready) {
            (true, true) => "ready",
            (true, false) => "starting",
            (false, _) => "ended; `up` starts it anew, `down` removes what is left",
        };
        anstream::println!("{name}: {condition}, {mode}, {}", state.server);
        if state.mode == Mode::Node {
            anstream::println!("  node ports at {}", state.address);
        }
        anstream::println!("  kubeconfig {}", layout.kubeconfig().display());
        for (component, times) in restarts(&layout) {
            anstream::println!("  {component} ended {times} times; see {}", layout.log(&component).display());
        }
    }
    Ok(())
}

/// How often each component has ended since the start.
fn restarts(layout: &Layout) -> std::collections::BTreeMap<String, usize> {
    let mut count = std::collections::BTreeMap::new();
    for line in fs::read_to_string(layout.exits()).unwrap_or_default().lines() {
        if let Some((component, _)) = line.split_once('\t') {
            *count.entry(component.to_owned()).or_default() += 1;
        }
    }
    count
}
