//! Recorded fidelity: the scripts in crates/apiserver/tests/fidelity, played at a real kube-apiserver.
//!
//! Enters a filter; leave the recordings beside the scripts. The player is the API server's own test, told by
//! the environment to play at a testbed and to write instead of comparing: one player, two servers.

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};

use crate::kubernetes;

/// Names the kubeconfig of the server to record from; the test looks for it.
const RECORD: &str = "WINDLASS_FIDELITY_RECORD";
/// Narrows the scripts to those whose path contains it.
const FILTER: &str = "WINDLASS_FIDELITY";

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play scripts at a testbed's kube-apiserver and store its answers
    Record {
        /// Only scripts whose path contains this; `rights` is the table of who may do what
        #[arg(default_value = "")]
        filter: String,
        /// The testbed to record from; started, with an API server only, if it is not up
        #[arg(long, default_value = "fidelity")]
        name: String,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let Command::Record { filter, name } = &args.command;
    let kubeconfig = kubernetes::api_server(name)?;
    let test = match filter.as_str() {
        "" => "fidelity::",
        "rights" => "fidelity::rights::",
        _ => "fidelity::every",
    };
    let status = kubernetes::cargo()
        .args(["test", "--package=windlass-apiserver", "--test=it", "--", "--nocapture", test])
        .env(RECORD, kubeconfig)
        .env(FILTER, filter)
        .status()
        .context("failed to start `cargo test`")?;
    if !status.success() {
        bail!("failed to record: see the output of the test above");
    }
    Ok(())
}
