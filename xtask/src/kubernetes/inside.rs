//! The box: its outermost process, its process 1, its mounts, and how a command gets in from outside.
//!
//! `up` starts [`enter`], which becomes `unshare`, which starts [`init`] in new namespaces, which starts the
//! supervisor. Killing any of the three ends all of the box.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use rustix::process::{WaitOptions, wait};

use super::layout::Layout;
use super::process::Identity;
use super::tools::{run, tool};
use super::{cgroup, network, state};

/// Enters the box's cgroups and becomes `unshare`, in a session of its own.
pub(super) fn enter(run: &Path) -> Result<()> {
    let layout = Layout::at(run)?;
    rustix::process::setsid().context("failed to start a session")?;
    cgroup::enter(&layout)?;
    let error = tool("unshare")
        .args(["--pid", "--mount", "--net", "--uts", "--ipc", "--cgroup"])
        .args(["--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe()?)
        .args(["kubernetes", "__init"])
        .arg(run)
        .exec();
    Err(error).context("failed to become `unshare`")
}

/// Process 1: starts the supervisor and buries whatever is orphaned, such as the shims of ended containers.
///
/// It is apart from the supervisor, because a process that waits for every child cannot also wait for one.
pub(super) fn init(run: &Path) -> Result<()> {
    let supervisor = Command::new(std::env::current_exe()?)
        .args(["kubernetes", "__supervise"])
        .arg(run)
        .spawn()
        .context("failed to start the supervisor")?;
    let supervisor = supervisor.id().cast_signed();
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == supervisor => {
                bail!("the supervisor ended: {status:?}");
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for the box's processes"),
        }
    }
}

/// Mounts and network, from inside the new namespaces.
pub(super) fn prepare(layout: &Layout, address: Ipv4Addr) -> Result<()> {
    run("mount", &["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])?;
    fs::create_dir("/run/netns")?;
    // Some paths cannot be configured: the kubelet's /var/log/containers and /var/lib/kubelet/device-plugins,
    // the CNI library's /var/lib/cni. What is written there goes to the run directory instead.
    for directory in ["log", "lib"] {
        let own = layout.path(&format!("var/{directory}"));
        let (upper, work) = (own.join("upper"), own.join("work"));
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        let lower = format!("/var/{directory}");
        let options = format!("lowerdir={lower},upperdir={},workdir={}", upper.display(), work.display());
        run("mount", &["-t", "overlay", "-o", &options, "overlay", &lower])?;
    }
    cgroup::remount_inside()?;
    run("hostname", &[super::plan::NODE_NAME])?;
    network::configure_inside(address)
}

/// `nsenter` into the network (and, if asked, the mounts) of a box. The caller adds program and arguments.
pub(super) fn nsenter(inner: Identity, mounts: bool, program: impl AsRef<OsStr>) -> Command {
    let mut command = tool("nsenter");
    command.arg(format!("--target={}", inner.pid)).arg("--net");
    if mounts {
        command.arg("--mount");
    }
    command.arg("--").arg(program);
    command
}

/// Runs a command inside a testbed's network and passes its exit code on.
pub(super) fn exec(name: &str, command: &[String]) -> Result<ExitCode> {
    let (program, args) = command.split_first().context("a command must be given after `--`")?;
    let (layout, state) = state::require_ready(name)?;
    let mut child = match state.inner {
        Some(inner) => nsenter(inner, false, program),
        // A control plane is on the host's own loopback.
        None => Command::new(program),
    };
    let status = child
        .args(args)
        .env("KUBECONFIG", layout.kubeconfig())
        .status()
        .with_context(|| format!("failed to start `{program}`"))?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}
