//! Benchmarks beside the peers, in one run on one machine, so that ratios can be read off.
//!
//! Enters which one; leaves a table on stdout. Nothing here is a test: the machine's noise decides no outcome.

mod apiserver;
mod build;
mod cluster;
mod operator;
mod program;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

pub(crate) use self::program::processor_seconds;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Measure the programs in this folder, built before, in place of new ones
    #[arg(long, global = true, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One operator on three frameworks, on a real API server without controllers
    Operator(operator::Args),
    /// The API server, on disk and in memory, beside etcd and kube-apiserver
    Apiserver(apiserver::Args),
    /// What a new checkout costs to build, and an edit
    Build(build::Args),
    /// The embedded cluster: start, a thousand Deployments, and what it costs when nothing happens
    Cluster(cluster::Args),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let built = args.programs.as_deref();
    match &args.command {
        Command::Operator(args) => operator::run(args, built),
        Command::Apiserver(args) => apiserver::run(args, built),
        Command::Build(args) => build::run(args),
        Command::Cluster(args) => cluster::run(args, built),
    }
}
