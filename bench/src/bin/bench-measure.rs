//! Measures one operator, or the floor, on the API server of KUBECONFIG. Leaves one line of JSON.

use std::io::Write;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use kube::Client;
use windlass_bench::measure::{self, Plan};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Converge, settle, change, restart
    Operator {
        #[arg(long)]
        objects: usize,
        #[arg(long)]
        changes: usize,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Fill a cache and write nothing
    Cache {
        #[arg(long)]
        objects: usize,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// The writes alone
    Bare {
        #[arg(long)]
        objects: usize,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await.context("failed to make a client")?;
    let line = match Args::parse().command {
        Command::Operator { objects, changes, command } => {
            measure::prepare(&client, objects).await?;
            let report = measure::measure(&client, Plan { objects, changes }, &command).await?;
            serde_json::to_string(&report)?
        }
        Command::Cache { objects, command } => {
            measure::prepare(&client, objects).await?;
            serde_json::to_string(&measure::measure_cache(objects, &command).await?)?
        }
        Command::Bare { objects } => {
            measure::prepare(&client, objects).await?;
            serde_json::to_string(&measure::bare(&client, objects).await?)?
        }
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
