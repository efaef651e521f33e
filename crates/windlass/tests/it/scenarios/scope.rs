//! What is watched, and whether anything is written.

use serde_json::json;
use windlass::{
    Operator,
    k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace},
    kube::{
        Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
};

use crate::{
    fixture::{Cluster, eventually, observed, quiet},
    gadget::{Gadget, Gadgets},
};

pub async fn several_namespaces_are_watched_and_no_other(cluster: Cluster) {
    let namespaces = Api::<Namespace>::all(cluster.user.clone());
    let name = |suffix: &str| format!("{}-{suffix}", cluster.namespace);
    let mut apis = Vec::new();
    for suffix in ["a", "b", "c"] {
        let body = serde_json::from_value(json!({"metadata": {"name": name(suffix)}})).unwrap();
        namespaces.create(&PostParams::default(), &body).await.unwrap();
        apis.push(Api::<Gadget>::namespaced(cluster.user.clone(), &name(suffix)));
    }
    for gadgets in &apis {
        gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    }
    let gadgets = Gadgets::default();
    let controller = gadgets.controller().namespaces([name("a"), name("b")]);
    let running = cluster.run(Operator::new("gadget-operator").controller(controller));
    observed(&apis[0], "one").await;
    observed(&apis[1], "one").await;
    let change = json!({"spec": {"replicas": 5}});
    apis[1].patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    observed(&apis[1], "one").await;
    let deployments = Api::<Deployment>::namespaced(cluster.user.clone(), &name("b"));
    assert_eq!(deployments.get("one").await.unwrap().spec.replicas, Some(5));
    deployments.delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the child is back", || async { deployments.get_opt("one").await.unwrap().is_some() }).await;
    quiet(|| gadgets.runs()).await;
    assert!(apis[2].get("one").await.unwrap().status.is_none(), "the third namespace is not watched");
    running.stop().await;
    for suffix in ["a", "b", "c"] {
        namespaces.delete(&name(suffix), &DeleteParams::default()).await.unwrap();
    }
}

pub async fn a_dry_run_writes_nothing(cluster: Cluster) {
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let gadgets = Gadgets::default();
    let controller = gadgets.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("gadget-operator").controller(controller).dry_run(true));
    eventually("a run", || async { gadgets.runs() > 0 }).await;
    quiet(|| gadgets.runs()).await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "{writes:#?}");
    assert!(cluster.api::<Deployment>().get_opt("one").await.unwrap().is_none());
    running.stop().await;

    let running = cluster.start(&gadgets);
    observed(&api, "one").await;
    running.stop().await;
}
