//! The machine's own programs (`ip`, `mount`, `nsenter`, …): finding them, starting them, reporting their failure.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A command that finds its program even when PATH lacks root's directories, as it does after a plain `su`;
/// and so do the programs that it starts.
pub(super) fn tool(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // A directory that cannot be joined has a colon in its name; PATH as it is must then do.
    if let Ok(path) = env::join_paths(search_path()) {
        command.env("PATH", path);
    }
    command
}

/// Runs a program to its end and returns what it printed.
pub(super) fn run(program: &str, args: &[&str]) -> Result<Vec<u8>> {
    let output = tool(program).args(args).output().with_context(|| format!("failed to start `{program}`"))?;
    if !output.status.success() {
        bail!(
            "failed to run `{program} {}`: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(output.stdout)
}

/// Where a program lies, if this machine has it.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    search_path().map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

/// PATH, and where Debian keeps root's programs when PATH lacks that.
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let named: Vec<_> = env::split_paths(&path).collect();
    named.into_iter().chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
}
