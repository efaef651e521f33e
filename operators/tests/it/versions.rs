//! Which Kubernetes the operators run on: one that is too old is told so at the start, on every other all samples become
//! ready.

use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use tower::service_fn;
use windlass::RunError;
use windlass_cluster::Cluster;
use windlass_operators::{KUBERNETES, catalogue, install, operator, webhooks};

use crate::{bed::Ground, plane::Site, upgrade::at_rest};

on_both_control_planes! {
    every_sample_becomes_ready_and_then_nothing_is_written: samples_are_ready;
}

async fn samples_are_ready(ground: Ground) {
    let site = Site::start(ground).await;
    site.allow_failures(|failure| failure.reason == "Conflict");
    for entry in catalogue() {
        site.apply(&entry.sample().unwrap()).await;
    }
    at_rest(&site.client()).await;
    site.assert_second_reconcile_writes_nothing().await;
    site.stop().await;
}

/// The same cluster, which says that it is of another version.
fn aged(client: Client, minor: &'static str) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.uri().path() != "/version" {
                return client.send(request).await;
            }
            let version = json!({
                "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.3"), "gitCommit": "", "gitTreeState": "",
                "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
            });
            Ok(Response::new(Body::from(version.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubernetes_that_is_too_old_is_refused_at_the_start() {
    let cluster = Cluster::start().await.unwrap();
    let operators = || operator("windlass", catalogue());
    install::crds(&cluster.client(), &webhooks::without_conversion(operators().crds())).await.unwrap();
    for old in ["20", "27+", "29"] {
        let client = aged(cluster.client(), old);
        let error = operators().run(client, std::future::pending::<()>()).await.unwrap_err();
        assert!(matches!(&error, RunError::TooOld { needed, .. } if *needed == KUBERNETES), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("v1.{old}.3")) && text.contains("needs 1.30 or newer"), "{text}");
    }
    for new in ["30", "37"] {
        let client = aged(cluster.client(), new);
        let soon = tokio::time::sleep(std::time::Duration::from_millis(200));
        operators().run(client, soon).await.unwrap();
    }
    cluster.shutdown().await.unwrap();
}
