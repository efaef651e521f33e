//! `install`, `uninstall`, `deploy` and `undeploy`: from arguments to what `windlass-deploy` does with a release.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use windlass::kube::Client;
use windlass_deploy::{Deployer, Loss, Options, Release};

use crate::{
    args::{ConnectionArgs, DeployArgs, InstallArgs, SafetyArgs, UndeployArgs, UninstallArgs},
    connection,
    error::Error,
    printer::Printer,
};

pub(crate) mod project;
pub(crate) mod seven;

/// A client whose API server answers.
async fn client(args: &ConnectionArgs, printer: Printer) -> Result<Client, Error> {
    let config = connection::config(args.kubeconfig.as_ref(), args.context.as_deref()).await?;
    let url = config.cluster_url.clone();
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    super::run::reachable(&client, &url).await?;
    printer.fact("cluster", &url)?;
    Ok(client)
}

fn options(safety: &SafetyArgs, wait: Duration) -> Options {
    Options {
        force_conflicts: safety.force_conflicts,
        allow_breaking: safety.allow_breaking,
        wait: (!wait.is_zero()).then_some(wait),
    }
}

async fn install(args: &InstallArgs, release: &Release, printer: Printer) -> Result<(), Error> {
    let client = client(&args.connection, printer).await?;
    let tell = |line: &str| drop(printer.line(line));
    let deployer = Deployer::new(client, options(&args.safety, Duration::ZERO), &tell);
    if args.dry_run {
        deployer.preview(release, true).await?;
    } else {
        deployer.install(release).await?;
    }
    Ok(())
}

async fn uninstall(args: &UninstallArgs, release: &Release, printer: Printer) -> Result<(), Error> {
    let client = client(&args.connection, printer).await?;
    let tell = |line: &str| drop(printer.line(line));
    let options =
        Options { force_conflicts: args.force_conflicts, wait: Some(args.wait), ..Options::default() };
    let consent = |loss: &Loss| agreed(loss, args.delete_objects);
    Deployer::new(client, options, &tell).uninstall(release, &consent, args.dry_run).await?;
    Ok(())
}

async fn deploy(args: &DeployArgs, release: &Release, printer: Printer) -> Result<(), Error> {
    let client = client(&args.connection, printer).await?;
    let tell = |line: &str| drop(printer.line(line));
    let deployer = Deployer::new(client, options(&args.safety, args.wait), &tell);
    if args.undo {
        deployer.undo(&release.name, &release.namespace, args.to_revision).await?;
    } else if args.dry_run {
        deployer.preview(release, false).await?;
    } else {
        deployer.deploy(release).await?;
    }
    Ok(())
}

async fn undeploy(args: &UndeployArgs, release: &Release, printer: Printer) -> Result<(), Error> {
    let client = client(&args.connection, printer).await?;
    let tell = |line: &str| drop(printer.line(line));
    let options = Options { wait: Some(args.wait), ..Options::default() };
    let deployer = Deployer::new(client, options, &tell);
    let consent = |loss: &Loss| args.delete_objects == Some(loss.total);
    let asked = args.delete_objects.is_some();
    deployer.undeploy(release, asked.then_some(&consent), args.dry_run).await?;
    Ok(())
}

/// Whether objects may be lost: whoever gave their number agreed; a person at a terminal types it.
fn agreed(loss: &Loss, given: Option<usize>) -> bool {
    if let Some(given) = given {
        return given == loss.total;
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return false;
    }
    let mut stdout = anstream::stdout().lock();
    let these = if loss.total == 1 { "this object".into() } else { format!("these {} objects", loss.total) };
    let question = format!("type {} to delete {these}: ", loss.total);
    if write!(stdout, "{question}").and_then(|()| stdout.flush()).is_err() {
        return false;
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line).is_ok() && line.trim() == loss.total.to_string()
}
