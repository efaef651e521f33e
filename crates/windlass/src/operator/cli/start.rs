//! `run`: the process of an operator, with its probes, its metrics and its signals.

use std::time::Duration;

use axum::middleware::from_fn_with_state;
use futures::future::BoxFuture;
use kube::Client;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{CliError, Connection, RunArgs, parent};
use crate::{
    error::chain,
    leader::{LeaderElection, unique_identity},
    operator::{
        Operator,
        guard::{self, Guard},
        logging, run, server,
        settings::Settings,
    },
    platform::StopRequests,
    tls::{Certificate, TlsListener},
    webhook::certificates::self_signed,
};

/// How often an API server that is away is asked for, and how often that is told.
const ASK: Duration = Duration::from_secs(1);
const TELL: Duration = Duration::from_secs(30);

pub(super) async fn start(mut operator: Operator, args: RunArgs) -> Result<(), CliError> {
    let settings = Settings::read(args.given, args.config.as_deref())?;
    settings.disable(&mut operator)?;
    let names: Vec<&str> = operator.controllers.iter().map(|controller| controller.name()).collect();
    for (name, workers) in settings.concurrency(&names).map(owned)? {
        let named = operator.controllers.iter_mut().filter(|controller| controller.name() == name);
        named.for_each(|controller| controller.set_concurrency(workers));
    }
    let logging = logging::start(&settings, operator.name())?;
    let parent: BoxFuture<'_, ()> =
        if args.stop_at_stdin_end { Box::pin(parent::gone()) } else { Box::pin(std::future::pending()) };
    let result = Box::pin(work(operator, &settings, &args.connection, parent)).await;
    logging.finish().await;
    result
}

async fn work(
    mut operator: Operator,
    settings: &Settings,
    connection: &Connection,
    parent: BoxFuture<'_, ()>,
) -> Result<(), CliError> {
    operator.alone = true;
    operator.drain = settings.drain().unwrap_or(operator.drain);
    operator.shutdown_delay = settings.shutdown_delay();
    operator.namespaces = settings.namespaces().unwrap_or(operator.namespaces);
    operator.timeouts.request = settings.request_timeout().unwrap_or(operator.timeouts.request);
    operator.dry_run |= settings.dry_run();
    operator.debugging |= settings.debugging();
    let (client, url) = connection.client(&operator).await?;
    let namespace = settings.namespace().unwrap_or_else(|| client.default_namespace()).to_owned();
    let usual = || LeaderElection::new(operator.name(), &namespace, unique_identity());
    operator.leader = settings.election(operator.leader.clone(), usual);
    operator.webhook_server = settings.webhooks(operator.name(), &namespace);
    if operator.dry_run {
        tracing::info!("dry run: nothing is written; no lease is held and no webhook served");
    }
    let stop = CancellationToken::new();
    let mut servers = JoinSet::new();
    // Before the API server is asked for anything: whoever waits for it is alive, and not ready.
    if let Some(address) = settings.probes() {
        let socket = server::bind(address).await.map_err(|error| CliError::Bind(address, error))?;
        let router = server::probes(operator.probes());
        servers.spawn(server::serve(socket, router, stop.clone().cancelled_owned()));
    }
    serve_metrics(settings, &operator, &client, &stop, &mut servers).await?;
    let mut signalled: BoxFuture<'_, ()> = Box::pin(async {
        tokio::select! { () = signalled() => {}, () = parent => {} }
    });
    let result = tokio::select! {
        () = &mut signalled => Ok(()),
        () = reachable(&client, &url) => run::run(operator, client, signalled).await,
    };
    stop.cancel();
    while servers.join_next().await.is_some() {}
    Ok(result?)
}

/// Waits for the API server. An operator that started before it, or after an outage, has nothing better to do, and
/// one that ended instead would be started again ever more rarely.
async fn reachable(client: &Client, url: &str) {
    let mut told: Option<Instant> = None;
    loop {
        let error = match client.apiserver_version().await {
            Ok(_) => break,
            // Who may not read the version may still be allowed everything else.
            Err(kube::Error::Api(status)) if status.code < 500 => break,
            Err(error) => error,
        };
        if told.is_none_or(|told| told.elapsed() >= TELL) {
            tracing::warn!(url, error = chain(&error), "the API server cannot be reached, waiting for it");
            told = Some(Instant::now());
        }
        tokio::time::sleep(ASK).await;
    }
    if told.is_some() {
        tracing::info!(url, "the API server is there");
    }
}

fn owned(chosen: Vec<(&str, usize)>) -> Vec<(String, usize)> {
    chosen.into_iter().map(|(name, workers)| (name.to_owned(), workers)).collect()
}

/// Serves the metrics, plainly or with TLS and only to whom may read them.
async fn serve_metrics(
    settings: &Settings,
    operator: &Operator,
    client: &Client,
    stop: &CancellationToken,
    servers: &mut JoinSet<std::io::Result<()>>,
) -> Result<(), CliError> {
    let Some(address) = settings.metrics() else { return Ok(()) };
    let bound = |error| CliError::Bind(address, error);
    let socket = server::bind(address).await.map_err(bound)?;
    let (mut router, until) = (server::metrics(operator.metrics.clone()), stop.clone().cancelled_owned());
    if settings.metrics_secure() || address.ip().is_loopback() {
        router = router.merge(server::runs(operator.handle(), settings.metrics_secure()));
    }
    if !settings.metrics_secure() {
        servers.spawn(server::serve(socket, router, until));
        return Ok(());
    }
    let certificate = Certificate::default();
    match settings.metrics_files() {
        Some(files) => {
            let loaded = files.load(&certificate, &operator.metrics);
            loaded.map_err(|error| CliError::MetricsCertificate(chain(&error)))?;
            let following = files.follow(certificate.clone(), operator.metrics.clone());
            let until = stop.clone().cancelled_owned();
            servers.spawn(async move {
                tokio::select! { () = following => {}, () = until => {} }
                Ok(())
            });
        }
        None => self_sign(&certificate, operator)?,
    }
    let listener = TlsListener::tcp(socket, certificate, settings.http2()).map_err(bound)?;
    let guarded = router.layer(from_fn_with_state(Guard::new(client.clone()), guard::check));
    servers.spawn(server::serve(listener, guarded, until));
    Ok(())
}

fn self_sign(certificate: &Certificate, operator: &Operator) -> Result<(), CliError> {
    let failed = |error: &(dyn std::error::Error + 'static)| CliError::MetricsCertificate(chain(error));
    let name = format!("{}-metrics", operator.name());
    let made = self_signed(&[name, "localhost".into()], operator.clock.now());
    let (chain, key) = made.map_err(|error| failed(&error))?;
    certificate.set(&chain, &key).map_err(|error| failed(&error))
}

/// Resolves at the first SIGTERM or SIGINT. The second ends the process at once.
async fn signalled() {
    let Ok(mut requests) = StopRequests::listen() else {
        tracing::warn!("failed to listen for signals, run until killed");
        return std::future::pending().await;
    };
    requests.next().await;
    tracing::info!("shutting down; a second signal ends the process at once");
    tokio::spawn(async move {
        requests.next().await;
        std::process::exit(1);
    });
}
