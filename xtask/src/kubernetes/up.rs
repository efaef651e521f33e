//! `up`: from nothing to a cluster that is ready to be used.
//!
//! Enters a name and a mode; leaves a running testbed, its kubeconfig, and a few lines on how to use it. What a
//! crash of an earlier one left under the same name is removed first.

mod ready;

use fs_err::os::unix::fs::OpenOptionsExt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::certs::Authority;
use super::layout::Layout;
use super::plan::{self, ConfigFile, Endpoints, Plan};
use super::process::{self, Identity};
use super::release::Release;
use super::state::{self, Mode, State};
use super::{build, cgroup, down, images, network, requirements};

pub(super) fn up(name: &str, mode: Mode, release: Release, copy: Option<PathBuf>) -> Result<()> {
    let _lock = state::lock_name(name)?;
    let layout = Layout::of(name)?;
    match State::read(&layout) {
        Some(state) if state.running() && state.ready && state.mode == mode && state.release == release => {
            anstream::println!("testbed `{name}` is already up");
            return finish(&layout, &state, copy);
        }
        Some(state) if state.running() && state.ready => bail!(
            "testbed `{name}` is up in another mode or version: end it with `cargo xtask kubernetes down --name {name}`, \
             or choose another --name"
        ),
        _ => {}
    }
    let wanted: &[_] = match mode {
        Mode::Node => &build::ALL,
        Mode::ControlPlane => &build::CONTROL_PLANE,
        Mode::ApiServer => &build::API_SERVER,
    };
    requirements::check(mode, !build::missing(&super::layout::binaries(release)?, wanted).is_empty())?;
    let binaries = build::ensure(release, wanted)?;
    down::remove(&layout).context("failed to remove the remains of an earlier testbed")?;
    let begin = Instant::now();
    let started = match mode {
        Mode::Node => start_box(&layout, &binaries, release),
        Mode::ControlPlane | Mode::ApiServer => start_control_plane(&layout, &binaries, mode, release),
    };
    let state = started.and_then(|state| ready::wait(&layout, &binaries, state, begin));
    match state {
        Ok(state) => {
            anstream::println!("ready after {:.1} s", begin.elapsed().as_secs_f64());
            finish(&layout, &state, copy)
        }
        Err(error) => {
            // The first error is the one to report; the logs stay for reading.
            if let Err(second) = down::end(&layout) {
                anstream::eprintln!("warning: {second:#}");
            }
            Err(error.context(format!(
                "failed to start testbed `{name}`; its logs are in {}",
                layout.run.display()
            )))
        }
    }
}

/// Starts an API server alone and returns at once, with the moment at which its first process began.
pub(super) fn launch_api_server(name: &str) -> Result<Instant> {
    let _lock = state::lock_name(name)?;
    let layout = Layout::of(name)?;
    let release = Release::Newest;
    let missing = build::missing(&super::layout::binaries(release)?, &build::API_SERVER);
    requirements::check(Mode::ApiServer, !missing.is_empty())?;
    let binaries = build::ensure(release, &build::API_SERVER)?;
    down::remove(&layout).context("failed to remove the remains of an earlier testbed")?;
    let begin = Instant::now();
    start_control_plane(&layout, &binaries, Mode::ApiServer, release)?;
    Ok(begin)
}

fn finish(layout: &Layout, state: &State, copy: Option<PathBuf>) -> Result<()> {
    let kubeconfig = match copy {
        Some(copy) => {
            write_private(&copy, &fs::read_to_string(layout.kubeconfig())?)?;
            copy
        }
        None => layout.kubeconfig(),
    };
    let kubectl = super::layout::kubectl()?;
    anstream::println!("Kubernetes {} at {}", state.release, state.server);
    anstream::println!();
    anstream::println!("  export KUBECONFIG={}", kubeconfig.display());
    anstream::println!("  {} get all --all-namespaces", kubectl.display());
    anstream::println!();
    anstream::println!("end it with: cargo xtask kubernetes down --name {}", layout.name);
    Ok(())
}

/// Starts a box with a node, as root.
fn start_box(layout: &Layout, binaries: &Path, release: Release) -> Result<State> {
    let network = state::lock_network()?;
    let link = network::free_link()?;
    let endpoints = Endpoints { address: link.inside, api: 6443, etcd_client: 2379, etcd_peer: 2380 };
    let plugins = requirements::cni_directory().context("failed to find the CNI plugins")?;
    let authority = Authority::new()?;
    let mut files = plan::control_plane_files(layout, &authority, &endpoints)?;
    files.extend(plan::node_files(layout, &authority, &endpoints, plugins, release)?);
    write_files(layout, &files)?;
    let mut components = plan::control_plane(layout, binaries, &endpoints, true);
    components.extend(plan::node(layout, binaries, link.inside));
    components.push(plan::storage(layout, &std::env::current_exe()?));
    let archive = layout.path("images.tar");
    images::write_base(&archive)?;
    let images = vec![archive];
    write_plan(
        layout,
        &Plan { kubectl: binaries.join("kubectl"), components, inside: Some(link.inside), images },
    )?;
    let mut state = State {
        mode: Mode::Node,
        release,
        server: endpoints.server(),
        address: link.inside,
        interface: Some(link.interface.clone()),
        outer: None,
        inner: None,
        ready: false,
    };
    // Written before anything exists, so that a crash from here on leaves a trail to clean up by.
    state.write(layout)?;
    cgroup::create(layout)?;
    let outer = spawn(layout, "__box")?;
    state.outer = Some(outer);
    let inner = process::await_child(outer.pid, Duration::from_secs(10)).with_context(|| box_log(layout))?;
    state.inner = Some(inner);
    state.write(layout)?;
    network::connect(&link, inner.pid)?;
    drop(network);
    Ok(state)
}

/// Starts a control plane on loopback, as anyone.
fn start_control_plane(layout: &Layout, binaries: &Path, mode: Mode, release: Release) -> Result<State> {
    let [api, etcd_client, etcd_peer] = free_ports()?;
    let endpoints = Endpoints { address: Ipv4Addr::LOCALHOST, api, etcd_client, etcd_peer };
    let authority = Authority::new()?;
    write_files(layout, &plan::control_plane_files(layout, &authority, &endpoints)?)?;
    let mut components = plan::control_plane(layout, binaries, &endpoints, false);
    if mode == Mode::ApiServer {
        components.retain(|component| build::API_SERVER.iter().any(|program| program.name == component.name));
        for server in components.iter_mut().filter(|component| component.name == "kube-apiserver") {
            // It is there to be measured, and this would put requests into a queue.
            server.args.push("--enable-priority-and-fairness=false".to_owned());
        }
    }
    write_plan(
        layout,
        &Plan { kubectl: binaries.join("kubectl"), components, inside: None, images: Vec::new() },
    )?;
    let outer = spawn(layout, "__supervise")?;
    let state = State {
        mode,
        release,
        server: endpoints.server(),
        address: endpoints.address,
        interface: None,
        outer: Some(outer),
        inner: None,
        ready: false,
    };
    state.write(layout)?;
    Ok(state)
}

/// Starts this program again as a part of the testbed, cut loose from this terminal.
fn spawn(layout: &Layout, part: &str) -> Result<Identity> {
    let log = fs::File::create(layout.log("box"))?.into_parts().0;
    let child = Command::new(std::env::current_exe()?)
        .args(["kubernetes", part])
        .arg(&layout.run)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("failed to start the testbed's first process")?;
    Identity::of(child.id().cast_signed()).with_context(|| box_log(layout))
}

fn box_log(layout: &Layout) -> String {
    format!("the testbed's first process ended at once:\n{}", super::logs::tail(&layout.log("box")))
}

fn write_plan(layout: &Layout, plan: &Plan) -> Result<()> {
    write_private(&layout.path("plan.json"), &serde_json::to_string_pretty(plan)?)
}

fn write_files(layout: &Layout, files: &[ConfigFile]) -> Result<()> {
    for file in files {
        let path = layout.path(&file.path);
        fs::create_dir_all(path.parent().expect("a file of the testbed must lie in its run directory"))?;
        write_private(&path, &file.content)?;
    }
    Ok(())
}

/// Keys and kubeconfigs are for this user's eyes only.
fn write_private(path: &Path, content: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    std::io::Write::write_all(&mut file, content.as_bytes())?;
    Ok(())
}

/// Ports that are free now. All are held at once, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c);
    }
}
