//! The testbed: a real Kubernetes of a pinned version, built from source and run on this machine.
//!
//! Enters a subcommand; leaves a running (or removed) testbed and a kubeconfig. The rooms below are, in
//! the order of a start: `requirements` and `build` (what must exist), `release`, `layout` and `state` (which it
//! is and where things lie), `certs`, `kubeconfig` and `plan` (what will run), `cgroup`, `network`, `inside` and `supervisor`
//! (the box and the processes in it), `storage` (its volumes), `up`, `down`, `restart`, `status` (the commands),
//! `images`, `smoke` and `real_tests` (using it); `process`, `tools`, `kubectl` and `logs` are what these lean on.

mod build;
mod certs;
mod cgroup;
mod down;
mod images;
mod inside;
mod kubeconfig;
mod kubectl;
mod layout;
mod logs;
mod network;
mod plan;
mod process;
mod real_tests;
mod release;
mod requirements;
mod restart;
mod ship;
mod smoke;
mod state;
mod status;
mod storage;
mod supervisor;
mod tools;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Subcommand};
use fs_err as fs;

use release::Release;
use state::Mode;

/// The version that everything here is built from unless an older one is asked for; `xtask/testbed/go.mod` pins the same.
pub(crate) const VERSION: &str = "1.37.1";

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(ClapArgs)]
struct Name {
    /// Which testbed, when several stand side by side
    #[arg(long, default_value = "default", value_parser = layout::parse_name)]
    name: String,
}

#[derive(Subcommand)]
enum Command {
    /// Build what is missing, start a testbed and wait until it is ready
    Up {
        #[command(flatten)]
        name: Name,
        /// Only etcd, the API server, the controllers and the scheduler: no node, no root
        #[arg(long)]
        control_plane: bool,
        /// Only etcd and the API server: nothing acts by itself, so that every request is yours
        #[arg(long, conflicts_with = "control_plane")]
        api_server: bool,
        /// Which Kubernetes
        #[arg(long, value_enum, default_value_t, value_name = "VERSION")]
        version: Release,
        /// Write a copy of the kubeconfig to this file as well
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
    /// End a testbed and remove everything it left on this machine
    Down {
        #[arg(long, default_value = "default", value_parser = layout::parse_name, conflicts_with = "all")]
        name: String,
        /// End every testbed of this user
        #[arg(long)]
        all: bool,
    },
    /// Kill the API server of a testbed, and wait until it is back
    Restart {
        #[command(flatten)]
        name: Name,
    },
    /// List the testbeds and what runs in them
    Status,
    /// Build the Kubernetes programs that are missing, and start nothing
    Build {
        /// Which Kubernetes
        #[arg(long, value_enum, default_value_t, value_name = "VERSION")]
        version: Release,
    },
    /// Load docker-archive files into a testbed's node
    LoadImage {
        #[command(flatten)]
        name: Name,
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Load nginx, memcached and PostgreSQL into a testbed's node, built from packages on first use
    LoadSoftware {
        #[command(flatten)]
        name: Name,
    },
    /// Build the operators' image from this checkout and load it into a testbed's node
    LoadOperators {
        #[command(flatten)]
        name: Name,
    },
    /// Pack one static binary into a docker-archive
    Image(images::Args),
    /// Run a command inside a testbed's network, with KUBECONFIG set
    Exec {
        #[command(flatten)]
        name: Name,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Prove a testbed: a Deployment with a local image, its Service, logs and exec
    Smoke {
        #[command(flatten)]
        name: Name,
    },
    /// Ship a new project and the seven operators into a testbed: image, registry, deploy, upgrade, out and in again
    Ship {
        #[command(flatten)]
        name: Name,
        /// One of the two
        #[arg(long, value_enum)]
        only: Option<ship::Cargo>,
    },
    /// Run the tests that need a real cluster
    Test {
        /// Which testbed; without it `default`, or the cluster of KUBECONFIG when no testbed is up
        #[arg(long, value_parser = layout::parse_name)]
        name: Option<String>,
        /// Passed on to `cargo test`
        #[arg(last = true, value_name = "CARGO ARGS")]
        cargo: Vec<String>,
    },
    /// Enters the box's cgroups, then becomes `unshare`
    #[command(name = "__box", hide = true)]
    EnterBox { run: PathBuf },
    /// Process 1 of the box
    #[command(name = "__init", hide = true)]
    Init { run: PathBuf },
    /// Starts the components of a plan and keeps them running
    #[command(name = "__supervise", hide = true)]
    Supervise { run: PathBuf },
    /// Provides volumes for the claims of a testbed
    #[command(name = "__storage", hide = true)]
    Storage { run: PathBuf },
    /// Prints the body of an HTTP GET, from whatever network it is started in
    #[command(name = "__http-get", hide = true)]
    HttpGet { address: std::net::SocketAddr },
}

pub(crate) use kubectl::Kubectl;
/// The kubeconfig of a testbed with nothing but an API server, started if it is not up.
pub(crate) fn api_server(name: &str) -> Result<PathBuf> {
    up::up(name, Mode::ApiServer, Release::Newest, None)?;
    let (layout, _) = state::require_ready(name)?;
    Ok(layout.kubeconfig())
}

/// The directory that holds etcd, kube-apiserver and kubectl, built if they are not there.
pub(crate) fn assets() -> Result<PathBuf> {
    build::ensure(Release::Newest, &build::API_SERVER)
}

/// The directory that holds the end-to-end suite and kubectl, both built if they are not there.
pub(crate) fn suite() -> Result<PathBuf> {
    build::ensure(Release::Newest, &build::SUITE)
}

/// The root of what is worth keeping between checkouts.
pub(crate) fn cache_root() -> Result<PathBuf> {
    layout::cache_root()
}

/// Waits for whoever else builds into the same place.
pub(crate) fn lock(path: &std::path::Path, holder: &str) -> Result<std::fs::File> {
    state::lock(path, holder)
}

/// A kubectl: that of the testbeds, or the machine's own; built if there is neither.
pub(crate) fn kubectl() -> Result<PathBuf> {
    let wanted = [build::API_SERVER[2]];
    let directory = layout::binaries(Release::Newest)?;
    match tools::find("kubectl").filter(|_| !build::missing(&directory, &wanted).is_empty()) {
        Some(own) => Ok(own),
        None => Ok(build::ensure(Release::Newest, &wanted)?.join("kubectl")),
    }
}

/// The kubeconfig of a testbed that is up.
pub(crate) fn kubeconfig(name: &str) -> Result<PathBuf> {
    let (layout, _) = state::require_ready(name)?;
    Ok(layout.kubeconfig())
}

/// A `cargo` that does not see what `cargo run` says about xtask.
pub(crate) fn cargo() -> std::process::Command {
    real_tests::cargo()
}

/// A testbed without a node, which is gone when this is dropped: an API server alone, or with the controllers.
pub(crate) struct ApiServer {
    name: String,
}

impl ApiServer {
    /// Starts one, in place of an earlier one of the same name.
    pub(crate) fn start(name: &str) -> Result<Self> {
        down::run(name, false)?;
        up::up(name, Mode::ApiServer, Release::Newest, None)?;
        Ok(Self { name: name.to_owned() })
    }

    /// The same, without waiting until it is ready. The clock starts when its first process does.
    pub(crate) fn launch(name: &str) -> Result<(Self, std::time::Instant)> {
        down::run(name, false)?;
        let begin = up::launch_api_server(name)?;
        Ok((Self { name: name.to_owned() }, begin))
    }

    /// One with the controllers and the scheduler.
    pub(crate) fn start_with_controllers(name: &str) -> Result<Self> {
        down::run(name, false)?;
        up::up(name, Mode::ControlPlane, Release::Newest, None)?;
        Ok(Self { name: name.to_owned() })
    }

    /// The processes of etcd, the API server and what runs beside them.
    pub(crate) fn processes(&self) -> Result<Vec<i32>> {
        let layout = layout::Layout::of(&self.name)?;
        let outer = state::State::read(&layout).and_then(|state| state.outer);
        let plan: plan::Plan = serde_json::from_slice(&fs::read(layout.path("plan.json"))?)?;
        let mut processes = process::children(outer.context("the testbed has no processes")?.pid)?;
        // The supervisor also has short-lived ones, with which it asks whether the server is ready.
        processes.retain(|pid| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            program.is_ok_and(|program| plan.components.iter().any(|component| component.program == program))
        });
        Ok(processes)
    }

    pub(crate) fn kubeconfig(&self) -> Result<PathBuf> {
        Ok(layout::Layout::of(&self.name)?.kubeconfig())
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let Err(error) = down::run(&self.name, false) {
            anstream::eprintln!("warning: {error:#}");
        }
    }
}

/// A client of a testbed that is up.
pub(crate) fn client(name: &str) -> Result<Kubectl> {
    let (layout, _) = state::require_ready(name)?;
    Ok(Kubectl::new(&layout::kubectl()?, &layout.kubeconfig()))
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Up { name, control_plane, api_server, version, kubeconfig } => {
            let mode = match (control_plane, api_server) {
                (true, _) => Mode::ControlPlane,
                (_, true) => Mode::ApiServer,
                _ => Mode::Node,
            };
            up::up(&name.name, mode, version, kubeconfig)?;
        }
        Command::Down { name, all } => down::run(&name, all)?,
        Command::Restart { name } => restart::api_server(&name.name)?,
        Command::Status => status::print()?,
        Command::Build { version } => build::all(version)?,
        Command::LoadImage { name, files } => images::load(&name.name, &files)?,
        Command::LoadSoftware { name } => images::load_software(&name.name)?,
        Command::LoadOperators { name } => images::load_operators(&name.name)?,
        Command::Image(args) => images::pack(&args)?,
        Command::Exec { name, command } => return inside::exec(&name.name, &command),
        Command::Smoke { name } => smoke::run(&name.name)?,
        Command::Ship { name, only } => ship::run(&name.name, only)?,
        Command::Test { name, cargo } => real_tests::run(name.as_deref(), &cargo)?,
        Command::EnterBox { run } => inside::enter(&run)?,
        Command::Init { run } => inside::init(&run)?,
        Command::Supervise { run } => supervisor::run(&run)?,
        Command::Storage { run } => storage::run(&run)?,
        Command::HttpGet { address } => smoke::http_get(address)?,
    }
    Ok(ExitCode::SUCCESS)
}
