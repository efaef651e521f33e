//! `windlass operators run`: the operators on any cluster.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Instant,
};

use tokio_util::sync::CancellationToken;
use windlass::{
    kube::{Client, Config},
    webhook::Server,
};
use windlass_operators::{install, operator, webhooks};

use super::dev;
use crate::{args::RunArgs, connection, error::Error, printer::Printer, signals::Signals};

pub(super) async fn run(args: &RunArgs, printer: Printer) -> Result<(), Error> {
    let signals = Signals::new()?;
    let stop = CancellationToken::new();
    let config = connection::config(args.kubeconfig.as_ref(), args.context.as_deref()).await?;
    let mut task = None;
    let result = tokio::select! {
        result = work(args, config, &stop, &mut task, printer) => result,
        () = signals.received() => Ok(()),
    };
    stop.cancel();
    let stopped = signals.stopping(async {
        match task {
            Some(task) => dev::joined(task).await,
            None => Ok(()),
        }
    });
    result.and(stopped.await)?;
    printer.aside("stopped")
}

/// Where webhooks are served that the API server reaches by this URL.
fn server(url: &str, namespace: &str) -> Result<Server, Error> {
    Ok(webhooks::server_at(listens(url)?, url.trim_end_matches('/').to_owned(), namespace))
}

/// What listens for a URL of this machine: its port, on every interface.
pub(super) fn listens(url: &str) -> Result<SocketAddr, Error> {
    let wrong = || Error::WebhookUrl(url.to_owned());
    let parsed: http::Uri = url.parse().map_err(|_| wrong())?;
    if parsed.scheme_str() != Some("https") || parsed.host().is_none() || parsed.path() != "/" {
        return Err(wrong());
    }
    Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, parsed.port_u16().unwrap_or(443))))
}

/// Installs, runs and shows. Returns only when something fails.
async fn work(
    args: &RunArgs,
    config: Config,
    stop: &CancellationToken,
    task: &mut Option<dev::Operators>,
    printer: Printer,
) -> Result<(), Error> {
    let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    printer.fact("cluster", url)?;
    let chosen = dev::chosen(&args.only);
    let operator = operator("windlass", chosen.iter().copied());
    let server = args.webhook_url.as_deref().map(|url| server(url, &namespace)).transpose()?;
    let mut crds = operator.crds().to_vec();
    if server.is_none() {
        crds = webhooks::without_conversion(&crds);
    }
    if !args.no_crds {
        install::crds(&client, &crds).await.map_err(|error| Error::Install(error.into()))?;
        printer.fact("crds", dev::crd_names(&chosen))?;
    }
    let begin = Instant::now();
    let hooks =
        server.clone().map(|server| dev::Hooks { client: client.clone(), server, entries: chosen.clone() });
    let running = task.insert(dev::start(operator, client.clone(), hooks, stop));
    if let Some(server) = &server {
        let converted = webhooks::converted(&client, &crds, server).await;
        converted.map_err(|error| Error::Install(error.into()))?;
    }
    let names: Vec<&str> = chosen.iter().map(|entry| entry.name).collect();
    printer.fact("operators", names.join(", "))?;
    if args.samples {
        let samples = dev::apply_samples(&client, &chosen, &namespace).await?;
        printer.fact("samples", samples.join(", "))?;
    }
    let kinds = dev::kinds(&chosen);
    let ended = tokio::select! {
        result = dev::progress::show(&client, &kinds, begin, printer) => return result,
        ended = running => ended,
    };
    *task = None;
    dev::flatten(ended)
}
