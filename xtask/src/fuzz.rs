//! Inputs that nobody thought of.
//!
//! Enters how many; leaves new recorded cases for what differs from a real kube-apiserver, or a failure with the bytes that
//! a parser did not stand. The work is done by the API server's own tests, told by the environment how long to go on.

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
    /// Send drawn requests to ours and to a testbed's kube-apiserver, and record where they differ
    Differential {
        /// How long to go on
        #[arg(long, default_value_t = 10.0)]
        minutes: f64,
        /// What to draw from; the same seed draws the same requests
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Stop after so many requests
        #[arg(long)]
        requests: Option<u64>,
        /// Only kinds whose group, version and plural contain this, such as `apps/v1` or `custom`
        #[arg(long, default_value = "")]
        kinds: String,
        /// The testbed to ask; started, with an API server only, if it is not up
        #[arg(long, default_value = "fuzz")]
        name: String,
    },
    /// Bend the inputs of every parser that meets bytes from outside
    Parsers {
        /// How many inputs to try
        #[arg(long, default_value_t = 100_000)]
        inputs: u64,
        /// What to draw from
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut cargo = kubernetes::cargo();
    cargo.args(["test", "--package=windlass-apiserver", "--test=it", "--", "--nocapture"]);
    match &args.command {
        Command::Differential { minutes, seed, requests, kinds, name } => {
            cargo
                .args(["--ignored", "fidelity::fuzz::live"])
                .env("WINDLASS_FUZZ_KUBECONFIG", kubernetes::api_server(name)?)
                .env("WINDLASS_FUZZ_MINUTES", minutes.to_string())
                .env("WINDLASS_FUZZ_SEED", seed.to_string())
                .env("WINDLASS_FUZZ_FILTER", kinds);
            if let Some(requests) = requests {
                cargo.env("WINDLASS_FUZZ_REQUESTS", requests.to_string());
            }
        }
        Command::Parsers { inputs, seed } => {
            cargo
                .arg("parsers::")
                .env("WINDLASS_FUZZ_INPUTS", inputs.to_string())
                .env("WINDLASS_FUZZ_SEED", seed.to_string());
        }
    }
    let status = cargo.status().context("failed to start `cargo test`")?;
    if !status.success() {
        bail!("something was found: see the output of the test above");
    }
    Ok(())
}
