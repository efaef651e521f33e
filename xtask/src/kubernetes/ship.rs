//! `ship`: the whole road of operators into a real cluster, as their authors would go it. They are packed into an image
//! without Docker, pushed to a real registry, pulled by containerd, deployed, upgraded, taken out and deployed again; no
//! object is lost on the way. [`project`] goes it with a new project, [`operators`] with the seven, by way of a registry
//! that asks for a password.
//!
//! Enters a testbed with a node; leaves it as it was. The registries listen on the loopback inside the testbed's box.

mod operators;
mod project;
mod registry;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::kubectl::Kubectl;
use super::layout::{self, Layout};
use super::process::Identity;
use super::{cargo, inside, state};

/// What goes the road.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cargo {
    /// A new project
    Project,
    /// The seven operators; their software must be loaded
    Operators,
}

pub(super) fn run(name: &str, only: Option<Cargo>) -> Result<()> {
    let (layout, inner) = state::require_node(name)?;
    let begin = Instant::now();
    let road = Road::prepare(&layout, inner)?;
    if only != Some(Cargo::Operators) {
        project::ship(&layout, road.clone())?;
    }
    if only != Some(Cargo::Project) {
        operators::ship(&layout, &road)?;
    }
    anstream::println!("shipped in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The command, the folder that it works in, and the cluster that it is for.
#[derive(Clone)]
struct Road {
    windlass: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    inner: Identity,
    kubectl: Kubectl,
}

impl Road {
    fn prepare(layout: &Layout, inner: Identity) -> Result<Self> {
        ensure!(
            cargo().args(["build", "--quiet", "--package", "windlass-cli"]).status()?.success(),
            "failed to build windlass"
        );
        let kubeconfig = layout.kubeconfig();
        let kubectl = Kubectl::new(&layout::kubectl()?, &kubeconfig);
        let windlass = target().join("debug/windlass");
        Ok(Self { windlass, folder: layout::checkout().to_owned(), kubeconfig, inner, kubectl })
    }

    /// Runs `windlass`, and returns what it said.
    fn windlass(&self, line: &str) -> Result<String> {
        finished(line, self.arguments(Command::new(&self.windlass), line), "")
    }

    /// The same in the network of the box, whose loopback the registries are on.
    fn windlass_inside(&self, line: &str) -> Result<String> {
        self.windlass_told(line, "")
    }

    /// The same with something on its standard input.
    fn windlass_told(&self, line: &str, input: &str) -> Result<String> {
        finished(line, self.arguments(inside::nsenter(self.inner, false, &self.windlass), line), input)
    }

    /// What it said when it failed, as it should.
    fn fails(&self, line: &str) -> Result<String> {
        failed(line, self.arguments(Command::new(&self.windlass), line))
    }

    fn fails_inside(&self, line: &str) -> Result<String> {
        failed(line, self.arguments(inside::nsenter(self.inner, false, &self.windlass), line))
    }

    fn arguments(&self, mut command: Command, line: &str) -> Command {
        command.args(line.split(' ')).current_dir(&self.folder).env("KUBECONFIG", &self.kubeconfig);
        // What the user has logged in to is none of its business.
        command.env("DOCKER_CONFIG", target().join("ship-docker")).env_remove("REGISTRY_AUTH_FILE");
        command
    }

    /// Does something while an object is changed again and again; returns how often that was. Each change goes through
    /// the webhooks of its kind.
    fn while_changing(&self, object: &str, work: impl FnOnce() -> Result<String>) -> Result<usize> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| -> Result<usize> {
                for count in 1.. {
                    let note = format!("count={count}");
                    self.kubectl.output(&["annotate", object, "--overwrite", &note])?;
                    if over.load(Ordering::Relaxed) {
                        return Ok(count);
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
                bail!("the numbers came to an end")
            });
            let worked = work();
            over.store(true, Ordering::Relaxed);
            let changes =
                changing.join().map_err(|_| anyhow::anyhow!("whoever changed the object panicked"))?;
            worked?;
            changes.context("a change during the upgrade failed")
        })
    }
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(layout::checkout().join("target"), PathBuf::from)
}

/// An empty folder below cargo's.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&folder)?;
    Ok(folder)
}

fn finished(line: &str, mut command: Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("failed to start windlass")?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end without reading: what it says then is worth more than a broken pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().context("failed to wait for windlass")?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "`windlass {line}` ended with {}:\n{said}", output.status);
    Ok(said)
}

fn failed(line: &str, mut command: Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().context("failed to start windlass")?;
    ensure!(output.status.code() == Some(1), "`windlass {line}` ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn step(what: &str) {
    anstream::println!("  ok  {what}");
}
