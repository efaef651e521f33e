//! What Kubernetes would act on and this cluster does not is told to whoever writes it.

use serde_json::{Value, json};
use windlass::kube::{Client, client::Body};
use windlass_cluster::Cluster;

/// The warnings of the answer to a POST of a Deployment of such Pods.
async fn warnings(client: &Client, spec: Value) -> Vec<String> {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generateName": "a-"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec},
    }});
    let request = http::Request::post("/apis/apps/v1/namespaces/default/deployments")
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(&deployment).unwrap()))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), 201);
    answer.headers().get_all("warning").iter().map(|warning| warning.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_field_that_nothing_acts_on_is_warned_of() {
    let claimed = json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
        "containers": [{"name": "a", "image": "b"}]});
    let cluster = Cluster::start().await.unwrap();
    assert_eq!(
        warnings(&cluster.client(), claimed.clone()).await,
        ["299 - \"spec.template.spec.resourceClaims: stored, but no part of this cluster acts on it\""]
    );
    let plain = json!({"containers": [{"name": "a", "image": "b"}]});
    assert_eq!(warnings(&cluster.client(), plain).await, [""; 0]);
    cluster.shutdown().await.unwrap();

    // As from kube-apiserver where nothing but it runs.
    let alone = Cluster::builder().without_controllers().start().await.unwrap();
    assert_eq!(warnings(&alone.client(), claimed).await, [""; 0]);
    alone.shutdown().await.unwrap();
}
