//! From arguments to the command that carries them out.

mod cluster;
pub(crate) mod crd;
mod create;
mod deploy;
mod dev;
mod doctor;
pub(crate) mod image;
mod init;
mod operators;
pub(crate) mod package;
mod page;
mod past;
mod run;
mod scaffold;
mod subcommand;
// A test there ends a process by a signal, which other systems have no way to send.
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod top;
mod upgrade;

use std::time::Duration;

use clap::CommandFactory;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    args::{
        Cli, ClusterCommand, ClusterGroup, Command, CrdCommand, ImageCommand, OperatorsCommand,
        scaffold::{CreateCommand, DeleteCommand},
    },
    diverted,
    envtest::assets,
    error::Error,
    printer::Printer,
};

/// The Kubernetes whose API is served, as k8s-openapi has it.
const KUBERNETES: &str = "1.37";

/// How long what a command has begun may take to end after it.
const LAST: Duration = Duration::from_secs(1);

pub(crate) fn execute(cli: Cli, printer: Printer) -> Result<(), Error> {
    match cli.command {
        Command::Init(args) => init::run(&args, printer),
        Command::Create(CreateCommand::Api(args)) => create::api(*args, printer),
        Command::Create(CreateCommand::Webhook(args)) => create::webhook(&args, printer),
        Command::Delete(DeleteCommand::Api(args)) => create::remove_api(&args, printer),
        Command::Delete(DeleteCommand::Webhook(args)) => create::remove_webhook(&args, printer),
        Command::Upgrade(args) => upgrade::run(&args, printer),
        Command::Dev(args) => {
            start_logging(cli.verbose)?;
            if args.plain {
                anstream::ColorChoice::Never.write_global();
            }
            block_on(dev::run(&args, cli.verbose, printer))
        }
        Command::Run(args) => {
            start_logging(cli.verbose)?;
            if args.plain {
                anstream::ColorChoice::Never.write_global();
            }
            block_on(run::run(&args, cli.verbose, printer))
        }
        Command::Manifests(args) => block_on(package::manifests(&args, printer)),
        Command::Bundle(args) => block_on(package::bundle(&args, printer)),
        Command::Catalog(command) => package::catalog(&command, printer),
        Command::Install(args) => block_on(deploy::project::install(&args, printer)),
        Command::Uninstall(args) => block_on(deploy::project::uninstall(&args, printer)),
        Command::Deploy(args) => block_on(deploy::project::deploy(&args, printer)),
        Command::Undeploy(args) => block_on(deploy::project::undeploy(&args, printer)),
        Command::ExplainRbac(args) => block_on(subcommand::explain_rbac(&args)),
        Command::Image(ImageCommand::Build(args)) => block_on(image::build(&args, printer)),
        Command::Image(ImageCommand::Push(args)) => block_on(image::push(&args, printer)),
        Command::Image(ImageCommand::Load(args)) => image::load(&args, printer),
        Command::Doctor(args) => block_on(doctor::run(&args, printer)),
        Command::Ui(args) => {
            start_logging(cli.verbose)?;
            block_on(page::ui(&args, printer))
        }
        Command::Top(args) => {
            start_logging(cli.verbose)?;
            block_on(top::run(&args, printer))
        }
        Command::History(args) => block_on(past::of(&args, printer)),
        Command::Diff(args) => block_on(past::since(&args, printer)),
        Command::Cluster(ClusterGroup { command }) => match command {
            ClusterCommand::Up(args) => {
                start_logging(cli.verbose)?;
                block_on(cluster::up(&args, cli.verbose, printer))
            }
            ClusterCommand::Down(args) => cluster::down(&args, printer),
            ClusterCommand::Status(args) => cluster::status(&args, printer),
            ClusterCommand::Kubeconfig(args) => cluster::kubeconfig(&args, printer),
            ClusterCommand::Reset(args) => block_on(cluster::reset(&args, cli.verbose, printer)),
            ClusterCommand::Backup(args) => cluster::backup(&args, printer),
            ClusterCommand::Restore(args) => block_on(cluster::restore(&args, printer)),
            ClusterCommand::Import(args) => block_on(cluster::import(&args, printer)),
        },
        Command::Envtest(args) => {
            let folder = assets::prepare(args.dir.as_deref(), args.controllers)?;
            printer.answer(format!("{}\n", folder.display()).as_bytes())
        }
        Command::Operators(OperatorsCommand::Run(args)) => {
            start_logging(cli.verbose)?;
            block_on(operators::run(&args, printer))
        }
        Command::Operators(OperatorsCommand::Install(args)) => {
            block_on(deploy::seven::install(&args, printer))
        }
        Command::Operators(OperatorsCommand::Uninstall(args)) => {
            block_on(deploy::seven::uninstall(&args, printer))
        }
        Command::Operators(OperatorsCommand::Deploy(args)) => block_on(deploy::seven::deploy(&args, printer)),
        Command::Operators(OperatorsCommand::Undeploy(args)) => {
            block_on(deploy::seven::undeploy(&args, printer))
        }
        Command::Operators(OperatorsCommand::Manifests(args)) => {
            block_on(package::operators_manifests(&args, printer))
        }
        Command::Operators(OperatorsCommand::Bundle(args)) => {
            block_on(package::operators_bundle(&args, printer))
        }
        Command::Crd(CrdCommand::Diff(args)) => crd::diff(&args, printer),
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
    let lines = tracing_subscriber::fmt::layer().with_writer(|| diverted::Stderr).with_ansi(colours);
    tracing_subscriber::registry().with(lines.with_filter(parsed)).with(windlass::runs::layer()).init();
    Ok(())
}
