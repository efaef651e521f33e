//! `windlass run`: the operator of a project, built and run here, on a cluster of the user's.

use std::time::Duration;

use windlass::kube::Client;

use super::operators;
use crate::{
    args::ProjectRunArgs,
    connection,
    error::Error,
    operator::{
        apply,
        debugger::Debugger,
        manifests::Manifests,
        process::{Plan, Process, Webhooks, log_filter, when},
    },
    printer::Printer,
    project::{self, Project, build::Manner},
    signals::Signals,
};

/// How long the API server may take to answer the first question.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn run(args: &ProjectRunArgs, verbose: u8, printer: Printer) -> Result<(), Error> {
    let project = Project::here()?;
    let debugger = args.debugger.debugger.map(Debugger::find).transpose()?;
    let signals = Signals::new()?;
    let mut process = None;
    let result = tokio::select! {
        result = work(args, &project, debugger, verbose, &mut process, printer) => result,
        () = signals.received() => Ok(()),
    };
    let stopped = signals.stopping(async {
        if let Some(process) = process {
            process.stop().await;
        }
        Ok(())
    });
    result.and(stopped.await)?;
    printer.aside("stopped")
}

/// Builds, installs and runs. Returns only when something fails.
async fn work(
    args: &ProjectRunArgs,
    project: &Project,
    debugger: Option<Debugger>,
    verbose: u8,
    process: &mut Option<Process>,
    printer: Printer,
) -> Result<(), Error> {
    let (kubeconfig, context) = (args.connection.kubeconfig.as_ref(), args.connection.context.as_deref());
    let config = connection::config(kubeconfig, context).await?;
    let url = config.cluster_url.clone();
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    reachable(&client, &url).await?;
    printer.fact("cluster", &url)?;
    let manner = Manner { quiet: false, plain: args.plain, debugger: debugger.is_some() };
    let program = project.build(manner).await?;
    let mut manifests = Manifests::of(project, &program).await?;
    let context = connection::context(kubeconfig, context);
    let webhooks = match &args.webhook_url {
        _ if !manifests.webhooks => None,
        Some(url) => {
            Some(Webhooks { listen: operators::listens(url)?, url: url.trim_end_matches('/').into() })
        }
        None if connection::shares_loopback(&url, context.as_deref()) => Some(Webhooks::here()?),
        None => None,
    };
    if manifests.webhooks {
        match &webhooks {
            Some(webhooks) => printer.fact("webhooks", &webhooks.url)?,
            None => {
                printer.remark("webhooks", "not served", "the API server may not reach this machine")?;
                printer.command("windlass run --webhook-url https://HOST:PORT")?;
                manifests.serve_stored_versions_only();
            }
        }
    }
    if !args.no_crds {
        apply::crds(&client, manifests.crds()).await?;
        printer.fact("crds", manifests.crd_names().join(", "))?;
    }
    let log = if verbose == 0 { "info".into() } else { log_filter(project, verbose) };
    let plan = Plan {
        program,
        kubeconfig: args.connection.kubeconfig.clone(),
        context: args.connection.context.clone(),
        serve_webhooks: webhooks.is_some() || !manifests.webhooks,
        webhooks,
        debugger,
        plain: args.plain,
        captured: false,
        log,
        own_cluster: false,
        arguments: args.arguments.clone(),
    };
    let running = process.insert(Process::start(project, &plan).await?);
    if let Some(debugger) = &plan.debugger {
        printer.remark("debugger", debugger.address, "the operator waits until one attaches")?;
        printer.command(debugger.attach(&plan.program))?;
    }
    let ended = until_the_end(running, &manifests.name, printer).await;
    *process = None;
    ended
}

/// Waits for the end of an operator, which is an error, and tells when it is ready.
async fn until_the_end(process: &mut Process, name: &str, printer: Printer) -> Result<(), Error> {
    let pid = process.pid().unwrap_or_default();
    let mut waiting = Some(process.ready());
    loop {
        tokio::select! {
            status = process.ended() => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(project::Error::Ended { name: name.to_owned(), status }.into());
            }
            ready = when(&mut waiting) => {
                if ready {
                    let time = process.started.elapsed().as_millis();
                    printer.remark("operator", name, format_args!("pid {pid}, ready in {time} ms"))?;
                } else {
                    waiting = Some(process.ready());
                }
            }
        }
    }
}

pub(super) async fn reachable(client: &Client, url: &http::Uri) -> Result<(), Error> {
    let failed = |why: String| Error::from(project::Error::Unreachable { url: url.to_string(), why });
    match tokio::time::timeout(TIMEOUT, client.apiserver_version()).await {
        // Who may not read the version may still be allowed everything else.
        Ok(Ok(_) | Err(windlass::kube::Error::Api(_))) => Ok(()),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()))),
    }
}
