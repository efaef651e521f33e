//! The bare API server on a loopback port: `cargo run -p windlass-apiserver --example serve -- KUBECONFIG`.

use std::{net::SocketAddr, sync::Arc};

use windlass_apiserver::{
    ApiServer,
    authority::Authority,
    environment::{Environment, TokioClock},
    listener::{Listener, kubeconfig},
    registry::Registry,
    store::Store,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: serve KUBECONFIG (the file to write)")?;
    #[expect(clippy::disallowed_methods, reason = "a program may ask the machine what time it is")]
    let now = jiff::Timestamp::now();
    let environment = Environment::new(TokioClock::starting_at(now), now.as_nanosecond() as u64);
    let server = ApiServer::new(Arc::new(Registry::new(Arc::new(Store::default()), environment)?));
    let authority = Authority::new(now)?;
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &authority).await?;
    let admin = authority.client("kubernetes-admin", &["system:masters"])?;
    std::fs::write(&path, kubeconfig(&listener.url(), &authority, "kubernetes-admin", &admin))?;
    eprintln!("serving on {}; export KUBECONFIG={path}", listener.url());
    listener.serve(server, std::future::pending()).await;
    Ok(())
}
