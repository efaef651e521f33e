//! `windlass dev`: the embedded cluster, the operators and their samples, until Ctrl-C.
//!
//! The operators run in this process, with clients that reach the API server without a socket; kubectl comes in
//! through the port.

mod progress;

use std::time::Instant;

use tokio_util::sync::CancellationToken;
use windlass::{RunError, kube::Client};
use windlass_operators::{Entry, catalogue, install, operator};

use super::cluster::{ACCOUNT, Reach, Running};
use crate::{args::DevArgs, error::Error, printer::Printer, signals::Signals};

pub(super) async fn run(args: &DevArgs, printer: Printer) -> Result<(), Error> {
    let mut signals = Signals::new()?;
    let mut running = tokio::select! {
        running = Running::start(&args.cluster, printer) => running?,
        () = signals.received() => return Ok(()),
    };
    let stop = CancellationToken::new();
    let mut operators = None;
    let reach = running.reach();
    let result = tokio::select! {
        result = work(args, &reach, &stop, &mut operators, printer) => result,
        error = running.failed() => Err(error),
        () = signals.received() => Ok(()),
    };
    signals.lose_patience();
    // First the operators, while the API server still answers them.
    stop.cancel();
    let stopped = match operators {
        Some(task) => joined(task).await,
        None => Ok(()),
    };
    let ended = running.stop().await;
    result.and(stopped).and(ended)?;
    printer.aside("stopped")
}

type Operators = tokio::task::JoinHandle<Result<(), RunError>>;

/// Installs, runs and shows. Returns only when something fails.
async fn work(
    args: &DevArgs,
    reach: &Reach,
    stop: &CancellationToken,
    operators: &mut Option<Operators>,
    printer: Printer,
) -> Result<(), Error> {
    let chosen: Vec<&Entry> = catalogue()
        .iter()
        .filter(|entry| args.only.is_empty() || args.only.iter().any(|name| name == entry.name))
        .collect();
    let client = reach.client.clone();
    let operator = operator("windlass", chosen.iter().copied());
    install::crds(&client, operator.crds()).await.map_err(|error| Error::Install(error.into()))?;
    let kinds: Vec<String> =
        chosen.iter().map(|entry| entry.resource().plural + "." + group(entry)).collect();
    printer.fact("crds", kinds.join(", "))?;

    // As in a real cluster, the operators may do what their own rules say and nothing else.
    let (namespace, account) = ACCOUNT;
    let permitted = install::permissions(&client, namespace, account, operator.rbac(), true).await;
    permitted.map_err(|error| Error::Install(error.into()))?;
    let limited = reach.limited.clone();
    let task = operators.insert(tokio::spawn(operator.run(limited, stop.clone().cancelled_owned())));
    let names: Vec<&str> = chosen.iter().map(|entry| entry.name).collect();
    printer.fact("operators", names.join(", "))?;

    let begin = Instant::now();
    let samples = if args.no_samples { Vec::new() } else { apply_samples(&client, &chosen).await? };
    if !samples.is_empty() {
        printer.fact("samples", samples.join(", "))?;
    }
    let plurals: Vec<&str> = chosen.iter().map(|entry| entry.plural).collect();
    reach.suggest(printer, &[&format!("kubectl get {}", plurals.join(","))])?;
    tokio::select! {
        result = progress::show(&client, &chosen, begin, printer) => result,
        ended = task => {
            *operators = None;
            flatten(ended)
        }
    }
}

fn group(entry: &Entry) -> &'static str {
    entry.api_version.split_once('/').map_or("", |(group, _)| group)
}

async fn apply_samples(client: &Client, chosen: &[&Entry]) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in chosen {
        let name =
            install::sample(client, entry, "default").await.map_err(|error| Error::Install(error.into()))?;
        names.push(format!("{}/{name}", entry.name));
    }
    Ok(names)
}

async fn joined(task: Operators) -> Result<(), Error> {
    flatten(task.await)
}

fn flatten(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), Error> {
    match ended {
        Ok(result) => result.map_err(|error| Error::Operators(error.into())),
        Err(error) => Err(Error::OperatorsPanicked(error)),
    }
}
