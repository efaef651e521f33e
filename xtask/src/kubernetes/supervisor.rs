//! Starts the components of a plan, in the box or on loopback, and keeps them running.
//!
//! Enters `plan.json`; leave processes, a log file each, and a line in `exits` for each one that ends. It runs
//! until it is killed, and everything it started ends with it: in a box by the pid namespace, outside by the
//! parent-death signal.

use std::io::Write;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::kubectl::Kubectl;
use super::layout::Layout;
use super::plan::{CONTAINERD_SOCKET, Component, Plan, Stage};
use super::state::State;
use super::tools::tool;
use super::{images, inside};

/// How long the API server may take; a machine that compiles at the same time is slow.
const API_PATIENCE: Duration = Duration::from_mins(2);
/// Between the end of a component and its next start.
const RESTART_DELAY: Duration = Duration::from_secs(1);

pub(super) fn run(run: &Path) -> Result<()> {
    let layout = Arc::new(Layout::at(run)?);
    let plan: Plan = serde_json::from_slice(&fs::read(layout.path("plan.json"))?)
        .context("failed to understand plan.json")?;
    match plan.inside {
        Some(address) => inside::prepare(&layout, address)?,
        None => {
            // A session of its own: a closed terminal ends nothing, and the group can be killed as one.
            rustix::process::setsid().context("failed to start a session")?;
            await_registration(&layout)?;
        }
    }
    let outside = plan.inside.is_none();
    let start = |stage| {
        for component in plan.components.iter().filter(|component| component.stage == stage) {
            let (layout, component) = (Arc::clone(&layout), component.clone());
            // The thread lives as long as this process: the parent-death signal follows the thread.
            thread::spawn(move || keep_running(&layout, &component, outside));
        }
    };
    start(Stage::First);
    let loading = (!plan.images.is_empty()).then(|| {
        let (layout, archives) = (Arc::clone(&layout), plan.images.clone());
        thread::spawn(move || load_images(&layout, &archives))
    });
    await_api(&Kubectl::new(&plan.kubectl, &layout.kubeconfig()))?;
    start(Stage::AfterApi);
    if let Some(loading) = loading {
        loading.join().map_err(|_| anyhow::anyhow!("the thread that loads images panicked"))??;
    }
    loop {
        thread::park();
    }
}

/// Waits until `up` has written down who we are: what nobody knows of, `down` could not end.
fn await_registration(layout: &Layout) -> Result<()> {
    let own = std::process::id().cast_signed();
    let deadline = Instant::now() + Duration::from_secs(10);
    while State::read(layout).and_then(|state| state.outer).is_none_or(|outer| outer.pid != own) {
        if Instant::now() > deadline {
            bail!("`up` ended before it wrote the testbed's state");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Runs one component for ever. A real node's init system would start it again, and so do we.
fn keep_running(layout: &Layout, component: &Component, outside: bool) {
    loop {
        let outcome = run_once(layout, component, outside);
        if let Err(error) = record_exit(layout, &component.name, &outcome) {
            anstream::eprintln!("{error:#}");
        }
        thread::sleep(RESTART_DELAY);
    }
}

fn run_once(layout: &Layout, component: &Component, outside: bool) -> Result<ExitStatus> {
    let log = fs::File::options().create(true).append(true).open(layout.log(&component.name))?.into_parts().0;
    let mut command = if outside {
        let mut command = tool("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&component.program);
        command
    } else {
        tool(&component.program)
    };
    let mut child = command
        .args(&component.args)
        .current_dir(&layout.run)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("failed to start {}", component.program.display()))?;
    child.wait().with_context(|| format!("failed to wait for {}", component.name))
}

fn record_exit(layout: &Layout, component: &str, outcome: &Result<ExitStatus>) -> Result<()> {
    let how = match outcome {
        Ok(status) => status.to_string(),
        Err(error) => format!("{error:#}"),
    };
    anstream::eprintln!("{component} ended: {how}");
    let mut exits = fs::File::options().create(true).append(true).open(layout.exits())?;
    writeln!(exits, "{component}\t{how}")?;
    Ok(())
}

fn await_api(kubectl: &Kubectl) -> Result<()> {
    let deadline = Instant::now() + API_PATIENCE;
    while kubectl.output(&["get", "--raw", "/readyz", "--request-timeout=5s"]).is_err() {
        if Instant::now() > deadline {
            bail!("the API server was not ready within {} s", API_PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn load_images(layout: &Layout, archives: &[std::path::PathBuf]) -> Result<()> {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !Path::new(CONTAINERD_SOCKET).exists() {
        if Instant::now() > deadline {
            bail!("containerd did not listen within 60 s");
        }
        thread::sleep(Duration::from_millis(50));
    }
    for archive in archives {
        images::import(tool("ctr"), archive)?;
    }
    fs::write(layout.path("images-loaded"), "")?;
    Ok(())
}
