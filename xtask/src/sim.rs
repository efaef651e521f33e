//! The operators through many bad days: their simulation in a build that is optimised, with a rate for each.

use std::process::{Command, ExitCode};

use anyhow::Context;

/// Options of `cargo xtask sim`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many days each operator lives
    #[arg(long, default_value_t = 1000)]
    days: u64,
    /// The seed of the first day
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// One kind of the catalogue, such as `webserver`; all of them unless given
    #[arg(long)]
    only: Option<String>,
    /// Use the build of `cargo test`, which is there sooner and lives slower
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--package", "windlass-operators", "--test", "sim"]);
    if !args.debug {
        command.arg("--release");
    }
    let kind = args.only.as_deref().unwrap_or_default();
    command.args(["--", "--nocapture", "--exact"]);
    let kinds = ["webserver", "memcached", "helloworld", "podmanager", "imoocpod", "webapp", "database"];
    let chosen: Vec<&str> = kinds.into_iter().filter(|name| kind.is_empty() || *name == kind).collect();
    anyhow::ensure!(!chosen.is_empty(), "there is no operator {kind:?}: write one of {}", kinds.join(", "));
    command.args(chosen.iter().map(|name| format!("{name}::it_lives_through_bad_days")));
    command.env("SIM_DAYS", args.days.to_string()).env("SIM_FIRST", args.first.to_string());
    let status = command.status().context("failed to run cargo test")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
