//! What Windlass packs, held against those who read it: Helm, kustomize, the Operator Framework and the Operator Lifecycle
//! Manager, each of a pinned version and built from source by way of the Go modules in `xtask/packaging`.
//!
//! Enters a subcommand; leaves the programs in the cache, or the outcome of the tests that use them.

mod lifecycle;
mod tools;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};

use crate::kubernetes;

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the programs that are missing: helm, kustomize, opm and the validators
    Build,
    /// Run the tests that need them: on the embedded cluster, or on a testbed that is up
    Test {
        /// Which testbed; the embedded cluster without it
        #[arg(long)]
        name: Option<String>,
        /// Charts, one life with Helm and the validators, without what opm takes to build
        #[arg(long)]
        quick: bool,
        /// Passed on to the tests
        #[arg(last = true, value_name = "ARGS")]
        arguments: Vec<String>,
    },
    /// Let the Operator Lifecycle Manager install an operator from a catalogue, and upgrade it
    Olm {
        /// Which testbed; the embedded cluster without it
        #[arg(long)]
        name: Option<String>,
    },
    /// The same, inside a network namespace
    #[command(name = "__olm", hide = true)]
    OlmInside { tools: PathBuf, kubectl: PathBuf, windlass: PathBuf },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Build => {
            let folder = tools::ensure(&tools::JUDGES)?;
            anstream::println!("the programs are in {}", folder.display());
            Ok(())
        }
        Command::Test { name, quick, arguments } => test(name.as_deref(), *quick, arguments),
        Command::Olm { name } => lifecycle::run(name.as_deref()),
        Command::OlmInside { tools, kubectl, windlass } => lifecycle::inside(tools, kubectl, windlass),
    }
}

/// The tests that need no more than the quick ones' programs.
const QUICK: [&str; 3] = ["charts::", "cluster::", "olm::the_validators"];

fn test(name: Option<&str>, quick: bool, arguments: &[String]) -> Result<()> {
    let folder = tools::ensure(if quick { &tools::JUDGES[..tools::QUICK] } else { &tools::JUDGES })?;
    let mut cargo = kubernetes::cargo();
    cargo.args(["test", "--package", "windlass-cli", "--test", "packaging", "--"]).args(arguments);
    if quick {
        cargo.args(QUICK);
    }
    cargo.env("WINDLASS_PACKAGING_TOOLS", folder);
    if let Some(name) = name {
        cargo.env("WINDLASS_PACKAGING_KUBECONFIG", kubernetes::kubeconfig(name)?);
    }
    if !cargo.status().context("failed to start `cargo test`")?.success() {
        bail!("the tests of what is packed failed");
    }
    Ok(())
}
