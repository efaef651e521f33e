//! The page of a cluster: beside a cluster of ours, or on its own for any (`windlass ui`).

use std::time::Duration;

use tokio::task::JoinHandle;
use windlass::kube::{Client, Config};
use windlass_cluster::{Fault, Faults};
use windlass_ui::{ApiFault, ApiFaults, Operators, Options, Page};

use crate::{
    args::{PageArgs, UiArgs},
    connection,
    error::Error,
    printer::Printer,
    signals::Signals,
};

/// How long each request takes when the API is slow.
const SLOW: Duration = Duration::from_secs(3);

/// A page that is served until this is dropped.
#[derive(Debug)]
pub(super) struct Served {
    url: String,
    task: JoinHandle<()>,
}

impl Served {
    /// The link, with its token.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves the page of an embedded cluster, on which everything may be tried, and tells where it is.
pub(super) async fn serve(
    args: &PageArgs,
    client: Client,
    (operators, faults): (Operators, Faults),
    printer: Printer,
) -> Result<Option<Served>, Error> {
    if args.no_page {
        return Ok(None);
    }
    let api_faults = Some(api_faults(faults));
    let options = Options { cluster: "windlass".into(), edit: true, faults: true, api_faults, operators };
    let page = Page::bind(args.page_port, client, options).await.map_err(Error::Page)?;
    let url = page.url();
    printer.remark("page", &url, "what is there and what happens, live")?;
    let task = tokio::spawn(async move {
        if let Err(error) = page.serve(std::future::pending()).await {
            tracing::warn!(%error, "the page is no longer served");
        }
    });
    Ok(Some(Served { url, task }))
}

/// The faults of our own API server, as the page has buttons for.
fn api_faults(faults: Faults) -> ApiFaults {
    let (set, get) = (faults.clone(), faults);
    ApiFaults::new(
        move |user, fault| {
            let fault = fault.map(|fault| match fault {
                ApiFault::Slow => Fault::Slow(SLOW),
                ApiFault::Unavailable => Fault::Unavailable,
            });
            set.set(user, fault);
        },
        move |user| {
            get.of(user).map(|fault| match fault {
                Fault::Slow(_) => ApiFault::Slow,
                Fault::Unavailable => ApiFault::Unavailable,
            })
        },
    )
}

/// `windlass ui`.
pub(super) async fn ui(args: &UiArgs, printer: Printer) -> Result<(), Error> {
    let signals = Signals::new()?;
    let (kubeconfig, context) = (args.connection.kubeconfig.as_ref(), args.connection.context.as_deref());
    let config = connection::config(kubeconfig, context).await?;
    let cluster = connection::context(kubeconfig, context).unwrap_or_default();
    let operators = operators(&config, args.runs.as_ref())?;
    let shown = config.cluster_url.clone();
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    operators.find(client.clone());
    client.apiserver_version().await.map_err(|error| Error::Reach(error.into()))?;
    let options = Options { cluster, edit: args.edit, operators, ..Options::default() };
    let page = Page::bind(args.port, client, options).await.map_err(Error::Page)?;
    printer.fact("cluster", shown)?;
    let may = if args.edit { "objects can be changed" } else { "read-only; --edit lets it change objects" };
    printer.remark("page", page.url(), may)?;
    printer.aside("Ctrl-C stops it.")?;
    page.serve(signals.received()).await.map_err(Error::Page)
}

/// The operator whose metrics are at an address of this machine, if one is given.
pub(super) fn operators(config: &Config, runs: Option<&http::Uri>) -> Result<Operators, Error> {
    let operators = Operators::default();
    if let Some(url) = runs {
        let mut metrics = Config::new(url.clone());
        // The operator has made its certificate itself, for whoever reads its metrics; it is on this machine.
        metrics.accept_invalid_certs = true;
        metrics.auth_info = config.auth_info.clone();
        operators.replace(metrics).map_err(|error| Error::Client(error.into()))?;
    }
    Ok(operators)
}
