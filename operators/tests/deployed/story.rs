//! What happens to the operators and to all samples: they come up, roll, lose their leader in the middle of it, and go.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::Deployment,
    authorization::v1::SubjectAccessReview,
    coordination::v1::Lease,
    core::v1::{Event, Namespace, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, LogParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_operators::{Entry, catalogue};

use crate::eventually;

/// Where the operators run.
const HOME: &str = "windlass-system";
/// Where the samples are.
const SHOP: &str = "windlass-deployed";

/// The samples, and what is rolled out to each: a patch of its spec.
const CHANGES: [(&str, &str); 6] = [
    ("podmanager", "nginx:1.22.1-next"),
    ("webserver", "nginx:1.22.1-next"),
    ("imoocpod", "busybox:1"),
    ("memcached", "memcached:1.6.38"),
    ("helloworld", "nginx:1.22.1-next"),
    ("webapp", "nginx:1.22.1-next"),
];

pub(crate) async fn tell(client: Client) {
    let first = leader(&client, None).await;
    hold_the_strict_standard(&client).await;
    create_samples(&client).await;
    for entry in samples() {
        settled(&client, entry, None).await;
    }
    the_older_version_is_converted(&client).await;
    metrics_are_guarded(&client).await;
    for (name, image) in CHANGES {
        let patch = Patch::Merge(json!({"spec": {"image": image}}));
        let entry = windlass_operators::entry(name).unwrap();
        let api = objects(&client, entry);
        api.patch(&sample_name(entry), &PatchParams::default(), &patch).await.unwrap();
    }
    in_the_middle_of_a_rollout(&client).await;
    kill(&client, &first).await;
    let second = leader(&client, Some(&first)).await;
    assert_ne!(first, second);
    for (name, image) in CHANGES {
        settled(&client, windlass_operators::entry(name).unwrap(), Some(image)).await;
    }
    two_replicas_serve(&client).await;
    nothing_is_left_over(&client).await;
    events_tell_the_story(&client).await;
    logs_hold_no_error(&client).await;
    all_goes(&client).await;
}

fn samples() -> impl Iterator<Item = &'static Entry> {
    catalogue().iter().filter(|entry| CHANGES.iter().any(|(name, _)| *name == entry.name))
}

fn sample_name(entry: &Entry) -> String {
    entry.sample().unwrap()["metadata"]["name"].as_str().unwrap().to_owned()
}

fn objects(client: &Client, entry: &Entry) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), SHOP, &entry.resource())
}

/// The Pod that works, once all replicas are ready.
async fn leader(client: &Client, other_than: Option<&str>) -> String {
    two_replicas_serve(client).await;
    let leases = Api::<Lease>::namespaced(client.clone(), HOME);
    eventually("one of the replicas leads", || async {
        let held = leases.list(&ListParams::default()).await.unwrap().items;
        let holder = held.into_iter().find_map(|lease| lease.spec?.holder_identity)?;
        let pods = operator_pods(client).await;
        let pod =
            pods.into_iter().map(|pod| pod.name_any()).find(|name| holder.starts_with(name.as_str()))?;
        (Some(pod.as_str()) != other_than).then_some(pod)
    })
    .await
}

async fn operator_pods(client: &Client) -> Vec<Pod> {
    let pods = Api::<Pod>::namespaced(client.clone(), HOME);
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
}

async fn two_replicas_serve(client: &Client) {
    let deployments = Api::<Deployment>::namespaced(client.clone(), HOME);
    eventually("two replicas of the operators are ready", || async {
        let found = deployments.list(&ListParams::default()).await.unwrap().items;
        let status = found.first()?.status.clone()?;
        (status.ready_replicas == Some(2) && status.replicas == Some(2)).then_some(())
    })
    .await;
}

/// The operators' namespace takes only Pods of the restricted standard, and theirs are such.
async fn hold_the_strict_standard(client: &Client) {
    let pods = Api::<Pod>::namespaced(client.clone(), HOME);
    let lax: Pod = serde_json::from_value(json!({
        "metadata": {"name": "lax"}, "spec": {"containers": [{"name": "a", "image": "busybox:1.37"}]},
    }))
    .unwrap();
    match pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &lax).await {
        Err(kube::Error::Api(status)) => {
            assert!(status.is_forbidden() && status.message.contains("restricted"), "{status:?}");
        }
        other => panic!("the namespace took a Pod that runs as it likes: {other:?}"),
    }
    for pod in operator_pods(client).await {
        let spec = serde_json::to_value(pod.spec).unwrap();
        let container = &spec["containers"][0]["securityContext"];
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
        assert_eq!(restarts, 0, "its probes were answered from the start");
    }
}

async fn create_samples(client: &Client) {
    let metadata = ObjectMeta { name: Some(SHOP.into()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    for entry in samples() {
        let mut sample = entry.sample().unwrap();
        if sample["spec"]["image"].as_str().is_some_and(|image| image.ends_with(":latest")) {
            // The node has it, and no registry to ask for a newer one.
            sample["spec"]["imagePullPolicy"] = "IfNotPresent".into();
        }
        let sample = serde_json::from_value(sample).unwrap();
        objects(client, entry).create(&PostParams::default(), &sample).await.unwrap();
    }
}

fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// Waits until a sample is ready, rolled out, and all its Pods run the image.
async fn settled(client: &Client, entry: &Entry, image: Option<&str>) {
    let (api, name) = (objects(client, entry), sample_name(entry));
    eventually(&format!("{} {name} is ready with {image:?}", entry.kind), || async {
        let object = api.get(&name).await.unwrap();
        let status = object.data.get("status")?;
        let done = status["observedGeneration"].as_i64() == object.metadata.generation
            && condition(status, "Ready")?["status"] == "True"
            && condition(status, "Progressing")?["status"] == "False"
            && condition(status, "Degraded")?["status"] == "False";
        let images = images_of(client, status["selector"].as_str()?).await;
        let right = image.is_none_or(|image| images.iter().all(|found| found == image));
        (done && right).then_some(())
    })
    .await;
}

/// The images of the Pods that stay.
async fn images_of(client: &Client, selector: &str) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(client.clone(), SHOP);
    let pods = pods.list(&ListParams::default().labels(selector)).await.unwrap().items;
    let stays = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    stays.filter_map(|pod| pod.spec?.containers.into_iter().next()?.image).collect()
}

/// The API server asks the operators' Pods, by their Service and the certificate that they issued themselves.
async fn the_older_version_is_converted(client: &Client) {
    let path = format!("/apis/apps.mycompany.com/v1alpha1/namespaces/{SHOP}/podmanagers/my-pod-manager");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let older: Value = client.request(request).await.unwrap();
    assert_eq!(
        (&older["spec"]["size"], &older["spec"]["container"]["image"]),
        (&json!(3), &json!("nginx:1.27"))
    );
}

/// Whoever comes without a token is turned away, and the operators may ask who comes with one.
async fn metrics_are_guarded(client: &Client) {
    let service = "https:windlass-metrics:8443";
    let path = format!("/api/v1/namespaces/{HOME}/services/{service}/proxy/metrics");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 401, "{status:?}"),
        other => panic!("the API server passes no token on, and got {other:?}"),
    }
    let reviews =
        [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")];
    for (group, resource) in reviews {
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": format!("system:serviceaccount:{HOME}:windlass"),
            "resourceAttributes": {"group": group, "resource": resource, "verb": "create"},
        }}))
        .unwrap();
        let reviews = Api::<SubjectAccessReview>::all(client.clone());
        let review = reviews.create(&PostParams::default(), &review).await.unwrap();
        assert!(review.status.unwrap().allowed, "create {resource}");
    }
}

/// Waits until the PodManager has Pods of both images: it is the operator itself who replaces them one by one.
async fn in_the_middle_of_a_rollout(client: &Client) {
    eventually("the PodManager has Pods of two images", || async {
        let images = images_of(client, "podmanager=my-pod-manager").await;
        (BTreeSet::from_iter(images).len() == 2).then_some(())
    })
    .await;
}

/// Ends a Pod as a dead node would: at once, without a chance to give up its lease.
async fn kill(client: &Client, pod: &str) {
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    Api::<Pod>::namespaced(client.clone(), HOME).delete(pod, &now).await.unwrap();
}

/// Every sample has exactly the Pods that it asks for.
async fn nothing_is_left_over(client: &Client) {
    eventually("every Pod is asked for", || async {
        let mut asked = 0;
        for entry in samples() {
            let object = objects(client, entry).get(&sample_name(entry)).await.unwrap();
            let spec = &object.data["spec"];
            asked += spec["replicas"].as_u64().or(spec["size"].as_u64()).unwrap();
        }
        let pods = Api::<Pod>::namespaced(client.clone(), SHOP);
        let there = pods.list(&ListParams::default()).await.unwrap().items.len();
        (there as u64 == asked).then_some(())
    })
    .await;
}

/// Every sample has told that it is ready, and none of a failure.
async fn events_tell_the_story(client: &Client) {
    let events = Api::<Event>::namespaced(client.clone(), SHOP);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    for entry in samples() {
        let own = events.iter().filter(|event| event.involved_object.kind.as_deref() == Some(entry.kind));
        let reasons: Vec<&str> = own.clone().filter_map(|event| event.reason.as_deref()).collect();
        assert!(reasons.iter().any(|it| ["Ready", "Reconciled"].contains(it)), "{}: {reasons:?}", entry.kind);
        let warnings = own.filter(|event| event.type_.as_deref() == Some("Warning"));
        // A sample that names no version is told so.
        let bad: Vec<_> = warnings.filter(|event| event.reason.as_deref() != Some("FloatingImage")).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

async fn logs_hold_no_error(client: &Client) {
    let pods = Api::<Pod>::namespaced(client.clone(), HOME);
    for pod in operator_pods(client).await {
        let log = pods.logs(&pod.name_any(), &LogParams::default()).await.unwrap();
        assert!(!log.is_empty(), "{} says something", pod.name_any());
        let bad: Vec<&str> =
            log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked")).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

/// Samples that are deleted with their namespace leave nothing, finalizers and all.
async fn all_goes(client: &Client) {
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete(SHOP, &DeleteParams::default()).await.unwrap();
    eventually("the samples are gone", || async {
        namespaces.get_opt(SHOP).await.unwrap().is_none().then_some(())
    })
    .await;
}

/// Says what was there when the story broke off, and clears it away.
#[expect(clippy::print_stderr, reason = "it explains the failure that is about to be reported")]
pub(crate) async fn explain(client: &Client) {
    let pods = Api::<Pod>::namespaced(client.clone(), HOME);
    for pod in operator_pods(client).await {
        eprintln!("{}: {:?}", pod.name_any(), pod.status.as_ref().map(|it| &it.container_statuses));
        let last = LogParams { tail_lines: Some(60), ..LogParams::default() };
        eprintln!("{}", pods.logs(&pod.name_any(), &last).await.unwrap_or_default());
    }
    for entry in samples() {
        let found = objects(client, entry).get_opt(&sample_name(entry)).await.ok().flatten();
        eprintln!("{}: {:?}", entry.kind, found.map(|object| object.data["status"].clone()));
    }
    let shop = Api::<Namespace>::all(client.clone());
    if shop.delete(SHOP, &DeleteParams::default()).await.is_ok() {
        eventually("the samples are gone", || async {
            shop.get_opt(SHOP).await.unwrap_or_default().is_none().then_some(())
        })
        .await;
    }
}
