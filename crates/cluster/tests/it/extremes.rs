//! Numbers at the ends of what a field can hold: whatever the API server accepts, every controller goes on.
//!
//! The objects of [`specimens`] have a number in every numeric field that matters, and `"7"` wherever a text is a
//! number; all other numeric fields of their kinds come from the schema ([`fields`]). Each of these is replaced in turn
//! by each extreme, and the result is sent. What is refused is fine, what is
//! accepted must not keep anything else from being served.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        apps::v1::{DaemonSet, StatefulSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        core::v1::{Namespace, Node, PersistentVolumeClaim, ReplicationController, ResourceQuota},
        discovery::v1::EndpointSlice,
        policy::v1::PodDisruptionBudget,
    },
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
        core::DynamicObject,
        discovery::ApiResource,
        runtime::wait::await_condition,
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, wait, wait_complete};

mod fields;
mod specimens;

use specimens::{Specimen, specimens};

/// The node with a taint that Pods tolerate for some time.
const TAINTED: &str = "windlass-1";

const NUMBERS: [i64; 6] = [0, -1, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];

const TEXTS: [&str; 8] = [
    "0",
    "-1",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
    "9999999999999999999",
    "18446744073709551615",
    "1e300",
];

/// Fields that say how many Pods there should be. Those objects live where a quota bounds them.
const COUNTS: [&str; 5] = ["replicas", "parallelism", "completions", "minReplicas", "start"];

/// The places of all numbers in an object, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::String(text) if text == "7" => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                places(field, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

/// An object with one number replaced, for every number and every extreme.
fn variants(specimen: &Specimen) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    places(&specimen.object, "", &mut found);
    let mut all = Vec::new();
    for place in found {
        let extremes: Vec<Value> = match specimen.object.pointer(&place) {
            Some(Value::Number(_)) => NUMBERS.iter().map(|number| json!(number)).collect(),
            _ => TEXTS.iter().map(|text| json!(text)).collect(),
        };
        for extreme in extremes {
            let mut object = specimen.object.clone();
            *object.pointer_mut(&place).unwrap() = extreme;
            name(&mut object, &format!("{}-{}", specimen.name, all.len()));
            all.push((place.clone(), object));
        }
    }
    let kind = specimen.object["kind"].as_str().unwrap_or_default();
    for field in fields::numbers(specimen.group, kind) {
        if specimen.object.pointer(&field.path()).is_some() {
            continue;
        }
        // Of those that are not known to matter, the ends alone: there are a thousand.
        let ends = [json!(-1), json!(i32::MAX), json!(i64::MAX), json!(i64::MIN)];
        let texts = ["-1", "9223372036854775807", "1e300"].map(|text| json!(text));
        for extreme in if field.is_text { texts.to_vec() } else { ends.to_vec() } {
            let mut object = specimen.object.clone();
            field.set(&mut object, extreme);
            name(&mut object, &format!("{}-{}", specimen.name, all.len()));
            all.push((field.path(), object));
        }
    }
    all
}

/// Names an object, and lets its labels and selectors be its own.
fn name(object: &mut Value, text: &str) {
    fn label(value: &mut Value, text: &str) {
        match value {
            Value::String(old) if old == "x" => text.clone_into(old),
            Value::Array(items) => items.iter_mut().for_each(|item| label(item, text)),
            Value::Object(fields) => fields.values_mut().for_each(|field| label(field, text)),
            _ => {}
        }
    }
    label(object, text);
    object["metadata"]["name"] = json!(text);
}

/// Sends an object; whether it was accepted.
async fn send(client: &Client, specimen: &Specimen, namespace: &str, object: &Value) -> bool {
    let root = if specimen.group == "v1" { "/api" } else { "/apis" };
    let path = format!("{root}/{}/namespaces/{namespace}/{}", specimen.group, specimen.plural);
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
    match client.request::<Value>(request).await {
        Ok(_) => true,
        Err(windlass::kube::Error::Api(status)) => {
            assert!(matches!(status.code, 400 | 403 | 422), "{object}: {status:?}");
            false
        }
        Err(error) => panic!("{object}: {error}"),
    }
}

async fn make_namespace(client: &Client, name: &str) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let body = decode(json!({"metadata": {"name": name}}));
    namespaces.create(&PostParams::default(), &body).await.unwrap();
}

/// One of everything, and each becomes what it should.
async fn everything_is_served(client: &Client) {
    create(client, &deployment("web", 2)).await;
    wait_complete(client, "web").await;
    for specimen in specimens() {
        let mut object = specimen.object.clone();
        name(&mut object, &format!("normal-{}", specimen.name));
        assert!(send(client, &specimen, "default", &object).await, "{object}");
    }
    wait(api::<Job>(client), "normal-job", "complete", |job| {
        job.and_then(|job| job.status.as_ref()?.completion_time.clone()).is_some()
    })
    .await;
    wait(api::<StatefulSet>(client), "normal-statefulset", "ready", |set| {
        set.and_then(|set| set.status.as_ref()?.ready_replicas) == Some(2)
    })
    .await;
    wait(api::<DaemonSet>(client), "normal-daemonset", "ready", |set| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.number_ready > 0)
    })
    .await;
    wait(api::<ReplicationController>(client), "normal-rc", "ready", |one| {
        one.and_then(|one| one.status.as_ref()?.ready_replicas) == Some(2)
    })
    .await;
    wait(api::<HorizontalPodAutoscaler>(client), "normal-hpa", "looked at", |one| {
        one.and_then(|one| one.status.as_ref()?.conditions.clone()).is_some()
    })
    .await;
    wait(api::<PodDisruptionBudget>(client), "normal-budget", "counted", |budget| {
        budget.and_then(|budget| budget.status.as_ref()?.expected_pods).is_some()
    })
    .await;
    wait(api::<PersistentVolumeClaim>(client), "normal-claim", "looked at", |claim| {
        claim.and_then(|claim| claim.status.as_ref()?.phase.clone()).is_some()
    })
    .await;
    wait(api::<ResourceQuota>(client), "normal-quota", "counted", |quota| {
        quota.and_then(|quota| quota.status.as_ref()?.used.clone()).is_some()
    })
    .await;
    let slices: Vec<EndpointSlice> =
        crate::support::list(client, "kubernetes.io/service-name=normal-service").await;
    assert!(!slices.is_empty(), "the Service has no endpoints");
}

/// The most memory that this process has had, in megabytes.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_in_an_object_ends_a_controller() {
    let mut cluster = Cluster::builder().nodes(12).start().await.unwrap();
    let client = cluster.client();
    make_namespace(&client, "extremes").await;
    make_namespace(&client, "crowd").await;
    let quota: ResourceQuota =
        decode(json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/pods": "40"}}}));
    Api::namespaced(client.clone(), "crowd").create(&PostParams::default(), &quota).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    wait(nodes.clone(), TAINTED, "there", |node| node.is_some()).await;
    let taint = json!({"spec": {"taints": [
        {"key": "k", "effect": "NoExecute", "timeAdded": cluster.now().to_string()}]}});
    nodes.patch(TAINTED, &PatchParams::default(), &Patch::Merge(taint)).await.unwrap();
    let mut accepted = BTreeSet::new();
    for specimen in specimens() {
        for (place, object) in variants(&specimen) {
            let field = place.rsplit('/').next().unwrap_or_default();
            let namespace = if COUNTS.contains(&field) { "crowd" } else { "extremes" };
            if send(&client, &specimen, namespace, &object).await {
                accepted.insert(format!("{} {} {}", specimen.name, place, object.pointer(&place).unwrap()));
            }
        }
    }
    println!("{} objects were accepted", accepted.len());
    for known in [
        "job /spec/activeDeadlineSeconds 9223372036854775807",
        "pod /spec/tolerations/0/tolerationSeconds 9223372036854775807",
        "statefulset /spec/replicas 2147483647",
        "simple-job /spec/completions 2147483647",
    ] {
        assert!(accepted.contains(known), "{known} was refused: {accepted:#?}");
    }
    let vast = json!({
        "parallelism": 2, "completions": i32::MAX, "completionMode": "Indexed",
        "successPolicy": {"rules": [{"succeededIndexes": "0-2147483646"}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b"}]}},
    });
    let vast: Job = decode(json!({"metadata": {"name": "vast"}, "spec": vast}));
    Api::namespaced(client.clone(), "crowd").create(&PostParams::default(), &vast).await.unwrap();
    roll_out(&client).await;
    tokio::select! {
        () = everything_is_served(&client) => {}
        error = cluster.failed() => panic!("the controllers ended: {error}"),
    }
    for namespace in ["extremes", "crowd"] {
        // Pods that wait to be replaced keep a namespace as long as their Job is there, as in Kubernetes.
        let (all, now) = (ListParams::default(), DeleteParams::background());
        let cron: Api<CronJob> = Api::namespaced(client.clone(), namespace);
        cron.delete_collection(&now, &all).await.unwrap();
        let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
        jobs.delete_collection(&now, &all).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.delete(namespace, &DeleteParams::default()).await.unwrap();
        // Hundreds of Pods end first, which takes a busy machine its time.
        let gone =
            await_condition(namespaces.clone(), namespace, |found: Option<&Namespace>| found.is_none());
        let gone = tokio::time::timeout(Duration::from_mins(5), gone).await;
        assert!(gone.is_ok(), "still there: {:#?}", namespaces.get_opt(namespace).await);
    }
    let panics = panics(&client).await;
    assert!(panics.is_empty(), "{panics:#?}");
    #[cfg(target_os = "linux")]
    assert!(most_memory() < 4096, "{} MB", most_memory());
    cluster.shutdown().await.unwrap();
}

/// Changes the template of every workload.
async fn roll_out(client: &Client) {
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}});
    for namespace in ["extremes", "crowd"] {
        for (kind, plural) in
            [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")]
        {
            let resource = ApiResource {
                group: "apps".into(),
                version: "v1".into(),
                api_version: "apps/v1".into(),
                kind: kind.into(),
                plural: plural.into(),
            };
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
            for object in api.list(&ListParams::default()).await.unwrap().items {
                let name = object.metadata.name.unwrap();
                api.patch(&name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
            }
        }
    }
}

/// The Events of runs that panicked: they end nothing, and still must not be.
async fn panics(client: &Client) -> Vec<String> {
    use windlass::k8s_openapi::api::core::v1::Event;
    let all: Vec<Event> = Api::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
    let panicked = all.iter().filter(|event| event.reason.as_deref() == Some("ReconcilePanicked"));
    panicked
        .map(|event| {
            let name = event.involved_object.name.as_deref().unwrap_or_default();
            format!("{name}: {}", event.message.as_deref().unwrap_or_default())
        })
        .collect()
}
