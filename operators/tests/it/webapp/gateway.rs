//! A WebApp and Gateway API, which comes and goes while the operator runs.

use k8s_openapi::{
    api::networking::v1::Ingress,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use windlass_operators::webapp::api::gateway::HTTPRoute;

use super::{SUBJECT, status, with};
use crate::bed::{Bed, eventually};

const CRD: &str = "httproutes.gateway.networking.k8s.io";

/// Installs what a WebApp needs of Gateway API. Its own definition says more.
pub(crate) async fn install(client: &Client) {
    let mut crd = HTTPRoute::crd();
    // The API server lets nobody else define kinds of its own project without this word.
    crd.metadata.annotations = Some(
        [("api-approved.kubernetes.io".to_owned(), "unapproved, for a test of Windlass".to_owned())].into(),
    );
    Api::all(client.clone()).create(&PostParams::default(), &crd).await.unwrap();
}

async fn remove(bed: &Bed) {
    let crds = Api::<CustomResourceDefinition>::all(bed.client.clone());
    if crds.get_opt(CRD).await.unwrap().is_some() {
        crds.delete(CRD, &DeleteParams::default()).await.unwrap();
    }
    eventually("Gateway API is gone", || async { crds.get_opt(CRD).await.unwrap().is_none().then_some(()) })
        .await;
}

/// What the Gateway's controller would say.
async fn say(bed: &Bed, accepted: &str, reason: &str) {
    let routes = bed.api::<HTTPRoute>();
    let generation = routes.get("it").await.unwrap().metadata.generation;
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "so the test wants it",
            "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let parent = json!({
        "parentRef": {"name": "edge"}, "controllerName": "windlass.dev/test",
        "conditions": [condition("Accepted", accepted), condition("ResolvedRefs", "True")],
    });
    let patch = Patch::Merge(json!({"status": {"parents": [parent]}}));
    routes.patch_status("it", &PatchParams::default(), &patch).await.unwrap();
}

pub(super) async fn the_gateway_that_is_named_is_used_once_there_is_gateway_api(bed: Bed) {
    // The kind goes, and some runs know it before the cache does.
    bed.expects("ApiError");
    // Of an earlier run that broke off: a cluster has each kind once.
    remove(&bed).await;
    let route = json!({"parentRefs": [{"name": "edge"}]});
    SUBJECT.create(&bed, with("it", 1, json!({"domain": "it.example.com", "route": route}))).await;
    SUBJECT.settled(&bed, "it", 1).await;
    assert!(bed.api::<Ingress>().get_opt("it").await.unwrap().is_some(), "no Gateway API, so an Ingress");
    SUBJECT.merge(&bed, "it", json!({"spec": {"route": {"type": "Gateway"}}})).await;
    SUBJECT.condition(&bed, "it", "Degraded", "True", "GatewayNotServed").await;
    SUBJECT.condition(&bed, "it", "RoutesReady", "False", "GatewayNotServed").await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"route": {"type": "Auto"}}})).await;
    SUBJECT.settled(&bed, "it", 1).await;

    install(&bed.client).await;
    let made = eventually("there is a route and no Ingress", || async {
        let found = bed.api::<HTTPRoute>().get_opt("it").await.ok().flatten()?;
        bed.api::<Ingress>().get_opt("it").await.unwrap().is_none().then_some(found)
    })
    .await;
    assert_eq!(made.spec.hostnames, ["it.example.com"]);
    SUBJECT.condition(&bed, "it", "RoutesReady", "Unknown", "GatewayPending").await;
    SUBJECT.condition(&bed, "it", "Ready", "False", "RoutesNotReady").await;
    say(&bed, "False", "NotAllowedByListeners").await;
    let message = SUBJECT.condition(&bed, "it", "Degraded", "True", "RouteNotAccepted").await;
    assert!(message.contains("edge") && message.contains("NotAllowedByListeners"), "{message}");
    say(&bed, "True", "Accepted").await;
    SUBJECT.condition(&bed, "it", "RoutesReady", "True", "Accepted").await;
    SUBJECT.settled(&bed, "it", 1).await;
    assert_eq!(status(&bed, "it").await["url"], "http://it.example.com");

    SUBJECT.merge(&bed, "it", json!({"spec": {"domain": null}})).await;
    eventually("the route is gone with its part of the spec", || async {
        bed.api::<HTTPRoute>().get_opt("it").await.unwrap().is_none().then_some(())
    })
    .await;
    remove(&bed).await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"domain": "it.example.com"}})).await;
    eventually("without Gateway API it is an Ingress again", || async {
        bed.api::<Ingress>().get_opt("it").await.unwrap().map(|_| ())
    })
    .await;
}
