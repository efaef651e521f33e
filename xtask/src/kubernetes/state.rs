//! What is known about a testbed on disk: its mode, its processes, and the locks that keep two commands apart.
//!
//! Enters a layout; leaves the state of that testbed, which outlives a crash of anything.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, run_root};
use super::process::Identity;
use super::release::Release;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    /// A box of namespaces with a node.
    Node,
    /// Processes on loopback, without a node.
    ControlPlane,
    /// etcd and the API server on loopback: nothing that acts by itself.
    ApiServer,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) mode: Mode,
    #[serde(default)]
    pub(super) release: Release,
    pub(super) server: String,
    /// The address at which the host reaches the API server and node ports.
    pub(super) address: Ipv4Addr,
    /// The host's end of the veth pair.
    pub(super) interface: Option<String>,
    /// The process whose end ends everything: `unshare`, or the supervisor of a control plane.
    pub(super) outer: Option<Identity>,
    /// Process 1 of the box, whose namespaces `exec` enters.
    pub(super) inner: Option<Identity>,
    /// Set once everything was seen to work.
    pub(super) ready: bool,
}

impl State {
    /// The state of a testbed, or none if there is nothing (or nothing readable) there.
    pub(super) fn read(layout: &Layout) -> Option<Self> {
        serde_json::from_slice(&fs::read(layout.path("state.json")).ok()?).ok()
    }

    pub(super) fn write(&self, layout: &Layout) -> Result<()> {
        let unfinished = layout.path(".state.json");
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, layout.path("state.json"))?;
        Ok(())
    }

    pub(super) fn running(&self) -> bool {
        let inner_lives = self.mode != Mode::Node || self.inner.is_some_and(Identity::alive);
        self.outer.is_some_and(Identity::alive) && inner_lives
    }
}

/// The layout and state of a testbed that is up, or an error that says how to get one.
pub(super) fn require_ready(name: &str) -> Result<(Layout, State)> {
    let layout = Layout::of(name)?;
    match State::read(&layout).filter(|state| state.running() && state.ready) {
        Some(state) => Ok((layout, state)),
        None => bail!("no testbed `{name}` is up: start it with `cargo xtask kubernetes up --name {name}`"),
    }
}

/// The same, for what only a testbed with a node can do.
pub(super) fn require_node(name: &str) -> Result<(Layout, Identity)> {
    let (layout, state) = require_ready(name)?;
    match state.inner {
        Some(inner) => Ok((layout, inner)),
        None => bail!("testbed `{name}` has no node: it was started with --control-plane"),
    }
}

/// Takes a lock that the kernel gives back when this process ends, however it ends.
pub(super) fn lock(path: &Path, holder: &str) -> Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("failed to open the lock file {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            anstream::println!("waiting for {holder} to finish");
            file.lock().with_context(|| format!("failed to lock {}", path.display()))?;
        }
        Err(std::fs::TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("failed to lock {}", path.display()));
        }
    }
    Ok(file)
}

/// Keeps two `up` or `down` of one testbed apart.
pub(super) fn lock_name(name: &str) -> Result<File> {
    lock(&run_root()?.join(format!(".{name}.lock")), &format!("another command on testbed `{name}`"))
}

/// Keeps two `up` from choosing the same subnet.
pub(super) fn lock_network() -> Result<File> {
    lock(&run_root()?.join(".network.lock"), "another testbed's network")
}
