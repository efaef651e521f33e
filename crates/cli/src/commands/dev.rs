//! `windlass dev`: the embedded cluster, the operators and their samples, until Ctrl-C.
//!
//! In a project these are the project's operator and samples (`project.rs`); elsewhere the seven operators, which run in this process, with clients that reach the API server without a socket; kubectl comes in
//! through the port.

pub(super) mod progress;
mod project;

use std::{net::Ipv4Addr, time::Instant};

use futures::future::try_join;
use tokio_util::sync::CancellationToken;
use windlass::{
    Operator, RunError,
    kube::{Client, api::ApiResource},
    webhook::Server,
};
use windlass_operators::{Entry, catalogue, install, operator, webhooks};

use super::{
    cluster::{ACCOUNT, Reach, Running},
    top::{self, Beside},
};
use crate::{args::DevArgs, error::Error, printer::Printer, project::Project, signals::Signals};

pub(super) async fn run(args: &DevArgs, verbose: u8, printer: Printer) -> Result<(), Error> {
    if let Some(project) = Project::find()? {
        return Box::pin(project::run(args, project, verbose, printer)).await;
    }
    if args.debugger.debugger.is_some() || !args.arguments.is_empty() {
        // They are for a project's operator.
        Project::here()?;
    }
    let signals = Signals::new()?;
    let mut running = tokio::select! {
        running = Running::start(&args.cluster, printer) => running?,
        () = signals.received() => return Ok(()),
    };
    let stop = CancellationToken::new();
    let (mut operators, mut beside) = (None, None);
    let reach = running.reach();
    let shown = top::is_wanted(args.plain, printer).then(|| signals.ask());
    let result = tokio::select! {
        result = work(args, &reach, &stop, (&mut operators, &mut beside), shown, printer) => result,
        error = running.failed() => Err(error),
        () = signals.received() => Ok(()),
    };
    let result = Beside::ended(beside, result).await;
    // First the operators, while the API server still answers them.
    stop.cancel();
    let stopped = signals.stopping(async {
        let stopped = match operators {
            Some(task) => joined(task).await,
            None => Ok(()),
        };
        let ended = running.stop().await;
        stopped.and(ended)
    });
    result.and(stopped.await)?;
    printer.aside("stopped")
}

pub(super) type Operators = tokio::task::JoinHandle<Result<(), RunError>>;

/// What it takes to serve the webhooks of some kinds: a client that may tell the API server where they are.
pub(super) struct Hooks {
    pub(super) client: Client,
    pub(super) server: Server,
    pub(super) entries: Vec<&'static Entry>,
}

/// Starts the operators and, beside them, their webhooks. When one of the two ends, both do.
pub(super) fn start(
    operator: Operator,
    client: Client,
    hooks: Option<Hooks>,
    stop: &CancellationToken,
) -> Operators {
    let operators = operator.run(client, stop.clone().cancelled_owned());
    let Some(Hooks { client, server, entries }) = hooks else { return tokio::spawn(operators) };
    let hooks = windlass_operators::webhooks("windlass", entries).serve_webhooks(server);
    let hooks = hooks.run(client, stop.clone().cancelled_owned());
    tokio::spawn(async move { Box::pin(try_join(operators, hooks)).await.map(|_| ()) })
}

/// Installs, runs and shows. Returns only when something fails.
async fn work(
    args: &DevArgs,
    reach: &Reach,
    stop: &CancellationToken,
    (operators, beside): (&mut Option<Operators>, &mut Option<Beside>),
    shown: Option<impl FnOnce() + Send + 'static>,
    printer: Printer,
) -> Result<(), Error> {
    let chosen = chosen(&args.only);
    let client = reach.client.clone();
    let operator = operator("windlass", chosen.iter().copied());
    reach.operators.add(operator.handle());
    install::crds(&client, operator.crds()).await.map_err(|error| Error::Install(error.into()))?;
    printer.fact("crds", crd_names(&chosen))?;

    // As in a real cluster, the operators may do what their own rules say and nothing else.
    let (namespace, account) = ACCOUNT;
    let permitted = install::permissions(&client, namespace, account, operator.rbac(), true).await;
    permitted.map_err(|error| Error::Install(error.into()))?;
    let server = webhooks::server(Ipv4Addr::LOCALHOST.into(), namespace).map_err(Error::WebhookPort)?;
    let hooks = Hooks { client: client.clone(), server: server.clone(), entries: chosen.clone() };
    let crds = operator.crds().to_vec();
    let task = operators.insert(start(operator, reach.limited.clone(), Some(hooks), stop));
    let converted = webhooks::converted(&client, &crds, &server).await;
    converted.map_err(|error| Error::Install(error.into()))?;
    let names: Vec<&str> = chosen.iter().map(|entry| entry.name).collect();
    printer.fact("operators", names.join(", "))?;

    let begin = Instant::now();
    let samples =
        if args.no_samples { Vec::new() } else { apply_samples(&client, &chosen, "default").await? };
    if !samples.is_empty() {
        printer.fact("samples", samples.join(", "))?;
    }
    let commands = to_try(&chosen, !args.no_samples);
    reach.suggest(printer, &commands.iter().map(String::as_str).collect::<Vec<_>>())?;
    *beside = shown.map(|quit| Beside::start(reach, quit));
    let kinds = kinds(&chosen);
    tokio::select! {
        result = progress::show(&client, &kinds, begin, printer) => result,
        ended = task => {
            *operators = None;
            flatten(ended)
        }
    }
}

/// The operators of these names; all, if none is named.
pub(super) fn chosen(only: &[String]) -> Vec<&'static Entry> {
    let is_chosen = |entry: &&Entry| only.is_empty() || only.iter().any(|name| name == entry.name);
    catalogue().iter().filter(is_chosen).collect()
}

pub(super) fn kinds(chosen: &[&Entry]) -> Vec<ApiResource> {
    chosen.iter().map(|entry| entry.resource()).collect()
}

pub(super) fn crd_names(chosen: &[&Entry]) -> String {
    let group = |entry: &Entry| entry.api_version.split_once('/').map_or("", |(group, _)| group);
    let names: Vec<String> =
        chosen.iter().map(|entry| format!("{}.{}", entry.plural, group(entry))).collect();
    names.join(", ")
}

/// Commands that show something: a list, a change, a repair, the events of it.
fn to_try(chosen: &[&Entry], samples: bool) -> Vec<String> {
    let mut commands = vec!["kubectl get windlass".to_owned()];
    let first = chosen.first().filter(|_| samples);
    let sample = first.and_then(|entry| entry.sample().ok().map(|sample| (entry, sample)));
    if let Some((entry, sample)) = sample {
        let name = sample["metadata"]["name"].as_str().unwrap_or_default();
        let kind = entry.name;
        commands.push(format!("kubectl scale {kind} {name} --replicas=5"));
        commands.push(format!("kubectl describe {kind} {name}"));
        commands.push("kubectl delete pod --all".to_owned());
        commands.push(format!("kubectl explain {kind}.spec"));
    }
    commands
}

pub(super) async fn apply_samples(
    client: &Client,
    chosen: &[&Entry],
    namespace: &str,
) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in chosen {
        let name =
            install::sample(client, entry, namespace).await.map_err(|error| Error::Install(error.into()))?;
        names.push(format!("{}/{name}", entry.name));
    }
    Ok(names)
}

pub(super) async fn joined(task: Operators) -> Result<(), Error> {
    flatten(task.await)
}

pub(super) fn flatten(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), Error> {
    match ended {
        Ok(result) => result.map_err(|error| Error::Operators(error.into())),
        Err(error) => Err(Error::OperatorsPanicked(error)),
    }
}
