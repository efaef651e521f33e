//! Our API server alone, without controllers: `bench-apiserver KUBECONFIG [DATA_DIR [no-fsync]]`, until it is killed.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use windlass::jiff::Timestamp;
use windlass_apiserver::{
    ApiServer,
    authority::Authority,
    data_directory::DataDirectory,
    environment::{Environment, TokioClock},
    listener::{Listener, kubeconfig},
    registry::Registry,
    store::{DiskOptions, Store},
};

/// The same as in the `windlass` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("usage: bench-apiserver KUBECONFIG [DATA_DIR [no-fsync]]")?;
    let now = Timestamp::now();
    let (store, authority) = match arguments.next() {
        Some(directory) => {
            let directory = DataDirectory::open(directory)?;
            let sync = arguments.next().as_deref() != Some("no-fsync");
            let options = DiskOptions { sync, ..DiskOptions::default() };
            (Store::open(&directory, options)?, Authority::kept(&directory, now)?)
        }
        None => (Store::default(), Authority::new(now)?),
    };
    let environment = Environment::new(TokioClock::starting_at(now), 0);
    let server = ApiServer::new(Arc::new(Registry::new(Arc::new(store), environment)?));
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &authority).await?;
    let admin = authority.client("kubernetes-admin", &["system:masters"])?;
    let unfinished = format!("{path}.new");
    std::fs::write(&unfinished, kubeconfig(&listener.url(), &authority, "kubernetes-admin", &admin))?;
    std::fs::rename(unfinished, path)?;
    listener.serve(server, std::future::pending()).await;
    Ok(())
}
