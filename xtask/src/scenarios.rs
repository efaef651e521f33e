//! `scenarios`: the built-in controllers beside those of Kubernetes.
//!
//! The scenarios, what Kubernetes made of them, and whoever plays them are in `crates/cluster/tests/scenarios`. Enters
//! which of them to play, and where; leaves what `cargo test` said. On the real side this starts a control plane of its
//! own, with KWOK for its nodes ([`kwok`]).

mod kwok;

use anyhow::{Context, Result, ensure};
use clap::{Args as ClapArgs, Subcommand};

use crate::kubernetes;

/// The testbed of a recording; it is gone afterwards.
const TESTBED: &str = "scenarios";

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only scenarios whose names contain this
    #[arg(long, value_name = "NAME", default_value = "", global = true)]
    only: String,
    /// Play them on the embedded cluster, and compare with what is recorded; this is done unless --real is given
    #[arg(long)]
    ours: bool,
    /// Play them on a real control plane, and compare with what is recorded
    #[arg(long)]
    real: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Play them on a real control plane, and record what it does
    Record {
        /// How often each is played: what is not alike every time is not compared
        #[arg(long, default_value_t = 2)]
        plays: usize,
        /// Count what is recorded as one of the plays
        #[arg(long)]
        again: bool,
    },
    /// Kill the embedded cluster's controllers at every write, and compare what stands in the end
    Deaths,
    /// Write the table of what is equal and what is not
    Table,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let only = ("WINDLASS_SCENARIOS_ONLY", args.only.clone());
    match &args.command {
        Some(Command::Record { plays, again }) => {
            let mut settings = vec![only, ("WINDLASS_SCENARIOS_PLAYS", plays.to_string())];
            settings.extend(again.then(|| ("WINDLASS_SCENARIOS_AGAIN", "yes".to_owned())));
            real("WINDLASS_SCENARIOS_RECORD", settings)
        }
        Some(Command::Deaths) => {
            test("ends_alike_after_a_death", vec![only, ("WINDLASS_SCENARIOS_EVERY_WRITE", "yes".to_owned())])
        }
        Some(Command::Table) => {
            test("the_table_is_of_today", vec![("WINDLASS_SCENARIOS_TABLE", "yes".to_owned())])
        }
        None => {
            if args.ours || !args.real {
                test("does_what_kubernetes_does", vec![only.clone()])?;
            }
            if args.real {
                real("WINDLASS_SCENARIOS_REAL", vec![only])?;
            }
            Ok(())
        }
    }
}

/// Plays on a control plane that is gone afterwards, whose kubeconfig is in a variable.
fn real(variable: &'static str, mut settings: Vec<(&'static str, String)>) -> Result<()> {
    let program = kwok::program()?;
    let server = kubernetes::ApiServer::start_with_controllers(TESTBED)?;
    let kubeconfig = server.kubeconfig()?;
    let _nodes = kwok::Kwok::start(&program, &kubeconfig)?;
    settings.push((variable, kubeconfig.display().to_string()));
    test("recordings_are_of_these_scenarios", settings)
}

/// Runs tests of the scenarios.
fn test(name: &str, settings: Vec<(&'static str, String)>) -> Result<()> {
    let mut cargo = kubernetes::cargo();
    // With the command beside it, whose features are those of every other build.
    cargo.args(["test", "--package", "windlass-cli", "--package", "windlass-cluster", "--test", "scenarios"]);
    cargo.args(["--", name, "--nocapture"]).envs(settings);
    let status = cargo.status().context("failed to start `cargo test`")?;
    ensure!(status.success(), "a scenario differs");
    Ok(())
}
