//! From arguments to the command that carries them out.

mod cluster;
mod dev;
mod operators;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::CommandFactory;
use tracing_subscriber::EnvFilter;

use crate::{
    args::{Cli, ClusterCommand, Command, OperatorsCommand},
    error::Error,
    printer::Printer,
};

/// The Kubernetes whose API is served, as k8s-openapi has it.
const KUBERNETES: &str = "1.37";

/// How long what a command has begun may take to end after it.
const LAST: Duration = Duration::from_secs(1);

pub(crate) fn run(cli: Cli, printer: Printer) -> Result<(), Error> {
    match cli.command {
        Command::Dev(args) => {
            start_logging(cli.verbose)?;
            block_on(dev::run(&args, printer))
        }
        Command::Cluster(ClusterCommand::Up(args)) => {
            start_logging(cli.verbose)?;
            block_on(cluster::up(&args, printer))
        }
        Command::Operators(OperatorsCommand::Run(args)) => {
            start_logging(cli.verbose)?;
            block_on(operators::run(&args, printer))
        }
        Command::Operators(OperatorsCommand::Manifests { out }) => operators::manifests(&out, printer),
        Command::Version => {
            let version = env!("CARGO_PKG_VERSION");
            printer.answer(format!("windlass {version}\nkubernetes {KUBERNETES}\n").as_bytes())
        }
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut script);
            printer.answer(&script)
        }
    }
}

/// Runs a command to its end, and not until everything has ended that it has begun: what still blocks a thread by then
/// goes with the process.
fn block_on(command: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    let result = runtime.block_on(command);
    runtime.shutdown_timeout(LAST);
    result
}

/// Logs go to stderr: warnings unless more is asked for.
fn start_logging(verbose: u8) -> Result<(), Error> {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = filter.unwrap_or_else(|| level.to_owned());
    let parsed = EnvFilter::try_new(&filter).map_err(|source| Error::LogFilter(filter, source))?;
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr).with_ansi(colours).init();
    Ok(())
}
