//! The operators as they run in production: in Pods of the cluster, from the generated files and their own image.
//!
//! A program of its own, because what is installed here works in every namespace: beside it the operators of other
//! tests would have a rival. Cargo runs one test program after the other. The node needs the images that `cargo xtask
//! kubernetes load-software` and `load-operators` give it.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod install;
mod story;

use std::{future::Future, time::Duration};

use kube::{Client, Config};

/// How long anything may take. A new leader waits for the old one's lease, and this machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Waits until a check gives something, and returns it.
async fn eventually<T, F>(what: &str, mut check: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let search = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, search).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real cluster"]
async fn the_operators_run_in_pods_and_a_killed_leader_costs_nothing() {
    let config = Config::infer().await.expect("KUBECONFIG must name a cluster");
    let client = Client::try_from(config).unwrap();
    install::apply(&client).await;
    let told = tokio::spawn(story::tell(client.clone())).await;
    if told.is_err() {
        story::explain(&client).await;
    }
    // The kinds stay: to delete them would delete every object of theirs, whoever's these are.
    install::remove(&client).await;
    told.unwrap();
}
