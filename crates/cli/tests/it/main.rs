//! The `windlass` command as a user meets it: its output, its files and its exit code.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod backup;
mod cluster;
mod command;
mod crd;
mod deploy;
mod dev;
mod envtest;
mod package;
mod page;
mod restart;
mod scaffold;
mod server;
// It needs util-linux for a terminal of its own.
#[cfg(target_os = "linux")]
mod terminal;
