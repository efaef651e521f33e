//! A page that shows what is in a cluster and what operators do, while they do it.
//!
//! In go a client and, if they are in reach, operators; out comes a server on this machine alone, whose link bears a token.
//! Everything is read through the Kubernetes API, so the page shows any cluster, and as much of it as its user may see. While
//! no browser is connected nothing is watched, recorded or kept.
//!
//! ```no_run
//! # async fn example(client: windlass::kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use windlass_ui::{Options, Page};
//!
//! let page = Page::bind(0, client, Options::default()).await?;
//! println!("{}", page.url());
//! page.serve(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

mod api_faults;
mod change;
mod deployed;
mod detail;
mod guard;
pub mod health;
pub mod history;
mod index;
mod kinds;
pub mod lines;
mod query;
mod row;
mod runs;
mod server;
mod stream;
mod target;
pub mod top;
mod tree;
mod views;
mod words;

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::net::TcpListener;
use windlass::kube::Client;

pub use self::{
    api_faults::{ApiFault, ApiFaults},
    kinds::{Kind, kinds},
    runs::Operators,
};
use self::{guard::Guard, index::Index, runs::Gathered};

/// What a page shows, and what can be done with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the cluster is called.
    pub cluster: String,
    /// Whether objects can be changed.
    pub edit: bool,
    /// Whether the nodes are simulated, so that they and their Pods can be made to fail.
    pub faults: bool,
    /// What makes the API slow or unavailable for one account, where that can be.
    pub api_faults: Option<ApiFaults>,
    /// Operators whose reconciles are shown.
    pub operators: Operators,
}

/// Why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken, or may not be used.
    #[error("failed to listen on 127.0.0.1:{0}")]
    Listen(u16, #[source] std::io::Error),
    /// The system gave no random bytes for the token.
    #[error("failed to make a token for the page")]
    Token(#[source] getrandom::Error),
    /// The server ended.
    #[error("failed to serve the page")]
    Serve(#[source] std::io::Error),
}

/// A page that is about to be served.
#[derive(Debug)]
pub struct Page {
    listener: TcpListener,
    app: Arc<App>,
}

/// What every request shares.
struct App {
    client: Client,
    guard: Guard,
    index: Arc<Index>,
    runs: Arc<Gathered>,
    options: Options,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Page {
    /// Takes a port of this machine; 0 takes any that is free.
    pub async fn bind(port: u16, client: Client, options: Options) -> Result<Self, Error> {
        let failed = |error| Error::Listen(port, error);
        let listener =
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(failed)?;
        let guard = Guard::new(listener.local_addr().map_err(failed)?).map_err(Error::Token)?;
        let (index, runs) = (Index::new(client.clone()), Arc::default());
        Ok(Self { listener, app: Arc::new(App { client, guard, index, runs, options }) })
    }

    /// The link, with the token: whoever has it may do what the page can do.
    pub fn url(&self) -> String {
        self.app.guard.url()
    }

    /// Serves until `stop` resolves. Open pages do not hold it up.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { listener, app } = self;
        let gathering = app.runs.clone().gather(app.options.operators.clone(), app.index.clone());
        let serving = axum::serve(listener, server::router(app));
        tokio::select! {
            served = serving.into_future() => served.map_err(Error::Serve),
            () = gathering => Ok(()),
            () = stop => Ok(()),
        }
    }
}
