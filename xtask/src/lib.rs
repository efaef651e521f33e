//! The project's own chores, run as `cargo xtask …`.
//!
//! Enters a command line; leaves an exit code. Each chore is a module; this file only parses and reports.
//!
//! All of them stand on a testbed of namespaces, mounts and `/proc`, so there is nothing here on other systems.

#![cfg(target_os = "linux")]

mod api;
mod attack;
mod bench;
mod conformance;
mod docs;
mod envtest;
mod features;
mod fidelity;
mod fuzz;
mod generate;
mod kubernetes;
mod packaging;
mod scenarios;
mod sim;
mod tidy;

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
    /// What somebody might do to the control plane, done to the built program on loopback
    Attack(attack::Args),
    /// Measure Windlass beside its peers
    Bench(bench::Args),
    /// What a real API server answers, as the measure of ours
    Fidelity(fidelity::Args),
    /// Requests and bytes that nobody thought of
    Fuzz(fuzz::Args),
    /// Kubernetes' own end-to-end suite against the embedded cluster
    Conformance(conformance::Args),
    /// What is packed for Helm and OLM, held against those who read it
    Packaging(packaging::Args),
    /// controller-runtime's own suites with `windlass envtest` and with the real programs
    Envtest(envtest::Args),
    /// The operators through many bad days, each from a seed
    Sim(sim::Args),
    /// The built-in controllers beside those of Kubernetes, scenario by scenario
    Scenarios(scenarios::Args),
    /// Check that no command compiles a crate of others' that another has compiled
    Features,
    /// Check the order of modules, the size of files, unused dependencies, and that ARCHITECTURE.md names every crate
    Tidy,
    /// Write what the libraries offer to others, one line an item
    Api(api::Args),
    /// Write the tables of the API server from a real one
    Generate(generate::Args),
    /// Write the generated pages of docs/: the guide and the reference of every command
    Docs,
}

/// Does the chore of the process' arguments.
pub fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Kubernetes(args) => kubernetes::run(args),
        Chore::Attack(args) => attack::run(&args),
        Chore::Bench(args) => bench::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Fidelity(args) => fidelity::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Fuzz(args) => fuzz::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Conformance(args) => conformance::run(&args),
        Chore::Packaging(args) => packaging::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Envtest(args) => envtest::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Sim(args) => sim::run(&args),
        Chore::Scenarios(args) => scenarios::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Features => features::run().map(|()| ExitCode::SUCCESS),
        Chore::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Chore::Api(args) => api::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
        Chore::Docs => docs::run().map(|()| ExitCode::SUCCESS),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
