//! The project's own chores, run as `cargo xtask …`.
//!
//! Enters a command line; leaves an exit code. Each chore is a module; this file only parses and reports.

mod bench;
mod conformance;
mod fidelity;
mod generate;
mod kubernetes;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about, disable_version_flag = true)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// A real Kubernetes on this machine, to be judged by
    Kubernetes(kubernetes::Args),
    /// Measure Windlass beside its peers
    Bench(bench::Args),
    /// What a real API server answers, as the measure of ours
    Fidelity(fidelity::Args),
    /// Kubernetes' own end-to-end suite against the embedded cluster
    Conformance(conformance::Args),
    /// Write the tables of the API server from a real one
    Generate(generate::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Kubernetes(args) => kubernetes::run(args),
        Chore::Bench(args) => bench::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Fidelity(args) => fidelity::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Conformance(args) => conformance::run(&args),
        Chore::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
