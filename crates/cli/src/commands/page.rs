//! The page of a cluster: beside a cluster of ours, or on its own for any (`windlass ui`).

use tokio::task::JoinHandle;
use windlass::kube::{Client, Config};
use windlass_ui::{Operators, Options, Page};

use crate::{
    args::{PageArgs, UiArgs},
    connection,
    error::Error,
    printer::Printer,
    signals::Signals,
};

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
    operators: Operators,
    printer: Printer,
) -> Result<Option<Served>, Error> {
    if args.no_page {
        return Ok(None);
    }
    let options = Options { cluster: "windlass".into(), edit: true, faults: true, operators };
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

/// `windlass ui`.
pub(super) async fn ui(args: &UiArgs, printer: Printer) -> Result<(), Error> {
    let signals = Signals::new()?;
    let (kubeconfig, context) = (args.connection.kubeconfig.as_ref(), args.connection.context.as_deref());
    let config = connection::config(kubeconfig, context).await?;
    let cluster = connection::context(kubeconfig, context).unwrap_or_default();
    let operators = Operators::default();
    if let Some(url) = &args.runs {
        let mut metrics = Config::new(url.clone());
        // The operator has made its certificate itself, for whoever reads its metrics; it is on this machine.
        metrics.accept_invalid_certs = true;
        metrics.auth_info = config.auth_info.clone();
        operators.replace(metrics).map_err(|error| Error::Client(error.into()))?;
    }
    let shown = config.cluster_url.clone();
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    client.apiserver_version().await.map_err(|error| Error::Reach(error.into()))?;
    let options = Options { cluster, edit: args.edit, faults: false, operators };
    let page = Page::bind(args.port, client, options).await.map_err(Error::Page)?;
    printer.fact("cluster", shown)?;
    let may = if args.edit { "objects can be changed" } else { "read-only; --edit lets it change objects" };
    printer.remark("page", page.url(), may)?;
    printer.aside("Ctrl-C stops it.")?;
    page.serve(signals.received()).await.map_err(Error::Page)
}
