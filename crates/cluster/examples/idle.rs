//! What an hour costs in which nothing happens: an operator on the embedded cluster, on tokio's paused clock.
//!
//! `cargo run -p windlass-cluster --example idle -- 10` for ten hours.

#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use windlass::{
    Action, Children, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::{ConfigMap, Secret},
    kube::ResourceExt,
};
use windlass_cluster::testing::Environment;

/// Keeps an empty Secret beside every ConfigMap.
struct Secrets;

impl Reconciler for Secrets {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
        let mut secret = Secret::default();
        secret.metadata.name = Some(map.name_any());
        ctx.apply(Children::new().with(secret)).await?;
        Ok(Action::await_change())
    }
}

fn operator() -> Operator {
    let controller = Controller::new(Secrets).owns::<Secret>();
    Operator::new("secret-operator").controller(controller).namespaces(["default"])
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let hours: u32 = std::env::args().nth(1).map_or(5, |hours| hours.parse().expect("a number of hours"));
    let started = Instant::now();
    let env = Environment::start(operator).await;
    env.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await;
    env.settled().await;
    println!("started and settled in {:?}", started.elapsed());
    let runtime = tokio::runtime::Handle::current().metrics();
    for hour in 1..=hours {
        let (started, requests, woken) =
            (Instant::now(), env.requests().all().len(), runtime.worker_park_count(0));
        tokio::time::sleep(Duration::from_hours(1)).await;
        let (requests, woken) = (env.requests().all().len() - requests, runtime.worker_park_count(0) - woken);
        println!(
            "hour {hour}: {:?}, {requests} requests of the operator, woken {woken} times",
            started.elapsed()
        );
    }
    env.stop().await;
}
