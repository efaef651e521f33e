//! Load for an API server, any API server: `bench-load KUBECONFIG PHASE…`, one JSON line of figures per phase.
//!
//! Phases: `ready` (waits until the server answers), `create=COUNT`, `get=SECONDS`, `token=SECONDS` (the same with a
//! token in place of a certificate), `patch=SECONDS`, `watch=WRITES`, `list=TIMES`, `deploy=COUNT` (until available),
//! `pods=COUNT` (until the Pods are there), `revision`. Requests go over TLS on 32 connections, as fast as the answers
//! come.
//! `cargo xtask bench apiserver` runs this against ours and against the real one.

use std::{io::Write, time::Duration};

mod connection;
mod deploy;
mod phases;

use connection::{Error, Target};
use deploy::Until;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let kubeconfig = arguments.next().ok_or("usage: bench-load KUBECONFIG PHASE…")?;
    // A server that is still starting has not written it yet.
    while !std::path::Path::new(&kubeconfig).exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let target = Target::read(&kubeconfig).await?;
    for phase in arguments {
        let (name, number) = phase.split_once('=').unwrap_or((&phase, "0"));
        let number: u64 = number.parse()?;
        let figures = match name {
            "ready" => phases::ready(&target).await?,
            "create" => phases::create(&target, number).await?,
            "get" => phases::get(&target, number).await?,
            "token" => phases::get_with_token(&target, number).await?,
            "patch" => phases::patch(&target, number).await?,
            "watch" => phases::watch(&target, number).await?,
            "list" => phases::list(&target, number).await?,
            "deploy" => deploy::deploy(&target, number, Until::Available).await?,
            "pods" => deploy::deploy(&target, number, Until::Made).await?,
            "revision" => deploy::revision(&target).await?,
            other => return Err(format!("unknown phase {other:?}").into()),
        };
        writeln!(std::io::stdout(), "{figures}")?;
    }
    Ok(())
}
