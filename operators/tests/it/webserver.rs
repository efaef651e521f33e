//! WebServer, from its spec to its status. Each case runs on both clusters.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Pod, Service},
        events::v1::Event,
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};
use windlass::{
    Operator,
    conditions::{self, DEGRADED, PROGRESSING, READY},
};
use windlass_operators::{
    webserver::{WebServer, WebServerSpec, controller},
    workload::{ImagePullPolicy, Settings},
};

use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

mod cases;
mod conflict;
mod refusal;

on_both_clusters! { operator =>
    cases::a_webserver_gets_its_children_and_becomes_ready
    cases::replicas_change_by_patch_and_by_the_scale_subresource
    cases::drift_is_reverted
    cases::content_is_mounted_rolled_and_removed
    conflict::a_foreign_deployment_is_reported_and_left_alone
    conflict::a_foreign_service_is_reported_and_left_alone
    refusal::an_invalid_spec_is_refused_in_kubernetes_words
    refusal::a_name_that_no_service_can_have_is_refused
}

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

pub(crate) const SUBJECT: Subject = Subject {
    name: "webserver",
    size_field: "replicas",
    current_field: "replicas",
    spec: || json!({"image": "nginx:1.27", "imagePullPolicy": "IfNotPresent"}),
    other_image: "nginx:alpine",
    flat: false,
};

/// The operator of one case. It looks at everything every 200 ms, so that a look that writes shows itself.
pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    Operator::new("webserver-operator")
        .crd::<WebServer>()
        .controller(controller(settings).namespace(namespace))
}

/// A WebServer that the testbed's node can run: it has the image, and no registry to ask for a newer one.
fn web(name: &str, replicas: i32) -> WebServer {
    let spec = WebServerSpec {
        replicas,
        image: "nginx:1.27".into(),
        image_pull_policy: Some(ImagePullPolicy::IfNotPresent),
        port: 80,
        content: BTreeMap::new(),
        pod: None,
    };
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    WebServer { metadata, spec, status: None }
}

async fn create(bed: &Bed, web: &WebServer) -> WebServer {
    bed.api().create(&PostParams::default(), web).await.unwrap()
}

async fn merge<K>(api: &Api<K>, name: &str, patch: &Value) -> K
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

/// Waits until a WebServer's status describes its current spec, with this many replicas ready and nothing to do.
async fn settled(bed: &Bed, name: &str, replicas: i32) -> WebServer {
    let api = bed.api::<WebServer>();
    eventually(&format!("{name} is ready with {replicas} replicas"), || async {
        let web = api.get(name).await.unwrap();
        let status = web.status.as_ref()?;
        let current = status.observed_generation == web.metadata.generation
            && conditions::holds(&status.conditions, READY)
            && conditions::find(&status.conditions, PROGRESSING)?.status == "False"
            && status.ready_replicas == replicas
            && status.replicas == replicas;
        current.then_some(web)
    })
    .await
}

/// Waits until a condition has this status and reason, and returns it.
async fn condition(bed: &Bed, name: &str, type_: &str, status: &str, reason: &str) -> Condition {
    let api = bed.api::<WebServer>();
    eventually(&format!("{name} is {type_}={status} because of {reason}"), || async {
        let seen = api.get(name).await.unwrap().status?;
        let found = conditions::find(&seen.conditions, type_)?;
        (found.status == status && found.reason == reason).then(|| found.clone())
    })
    .await
}

/// Checks that a child is controlled by a WebServer.
fn assert_owned<K: ResourceExt>(child: &K, web: &WebServer) {
    let owners = child.owner_references();
    assert_eq!(owners.len(), 1, "{owners:#?}");
    assert_eq!((owners[0].kind.as_str(), owners[0].name.as_str()), ("WebServer", &*web.name_any()));
    assert_eq!((Some(&owners[0].uid), owners[0].controller), (web.metadata.uid.as_ref(), Some(true)));
}
