//! Benchmarks beside the peers, in one run on one machine, so that ratios can be read off.
//!
//! Enters which one; leaves a table on stdout. Nothing here is a test: the machine's noise decides no outcome.

mod operator;
mod table;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One operator on three frameworks, on a real API server without controllers
    Operator(operator::Args),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Operator(args) => operator::run(args),
    }
}
