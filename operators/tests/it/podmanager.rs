//! PodManager: the common suite, and what its seed got wrong.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;
use windlass::Operator;
use windlass_cluster::{Cluster, testing::Environment};
use windlass_operators::{
    podmanager::{self, FINALIZER},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

pub(crate) const SUBJECT: Subject = Subject {
    name: "podmanager",
    size_field: "replicas",
    current_field: "currentReplicas",
    spec: || json!({"image": "nginx:1.27", "pod": {"imagePullPolicy": "IfNotPresent"}}),
    other_image: "nginx:alpine",
    flat: false,
};

pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    podmanager::register_with(Operator::new("podmanager-operator"), settings, Some(namespace))
}

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

on_both_clusters! { operator =>
    pods_are_named_labelled_owned_and_announced
    a_lower_pod_that_dies_never_ends_in_already_exists
    a_foreign_pod_of_the_name_is_left_alone
    the_shared_app_label_confuses_no_two_managers
    the_finalizer_waits_until_the_pods_are_gone
    a_refused_pod_is_an_event_and_a_condition
    replicas_below_one_are_refused_and_three_is_the_default
    both_versions_are_served_and_nothing_is_lost_between_them
}

async fn pods_are_named_labelled_owned_and_announced(bed: Bed) {
    let created = SUBJECT.create(&bed, SUBJECT.object("it", 2)).await;
    SUBJECT.settled(&bed, "it", 2).await;
    assert_eq!(bed.pod_names().await, ["it-0", "it-1"]);
    let pod = bed.api::<Pod>().get("it-1").await.unwrap();
    assert_eq!((pod.labels()["app"].as_str(), pod.labels()["podmanager"].as_str()), ("my-app", "it"));
    assert_eq!(Some(pod.labels()["podmanager-uid"].clone()), created.uid());
    assert_eq!(pod.spec.as_ref().unwrap().containers[0].name, "app");
    assert_eq!(Some(pod.owner_references()[0].uid.clone()), created.uid());
    eventually("both creations are told", || async {
        let mut notes = bed.recorded("PodManager", "Created").await;
        notes.sort();
        (notes == ["Created pod it-0", "Created pod it-1"]).then_some(())
    })
    .await;
    SUBJECT.resize(&bed, "it", 1).await;
    SUBJECT.settled(&bed, "it", 1).await;
    let deleted = bed.recorded("PodManager", "Deleted").await;
    assert!(deleted.len() == 1 && deleted[0].starts_with("Deleted pod "), "{deleted:?}");
}

async fn a_lower_pod_that_dies_never_ends_in_already_exists(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 3)).await;
    SUBJECT.settled(&bed, "it", 3).await;
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let dead = bed.api::<Pod>().get("it-0").await.unwrap();
    bed.api::<Pod>().delete("it-0", &now).await.unwrap();
    eventually("three Pods run again", || async {
        let pods = bed.pods().await;
        (pods.len() == 3 && pods.iter().all(|pod| pod.uid() != dead.uid())).then_some(())
    })
    .await;
    SUBJECT.settled(&bed, "it", 3).await;
}

async fn a_foreign_pod_of_the_name_is_left_alone(bed: Bed) {
    let theirs: Pod = bed
        .create(json!({
            "metadata": {"name": "it-0", "labels": {"app": "my-app"}},
            "spec": {"containers": [{
                "name": "a", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent",
            }]},
        }))
        .await;
    SUBJECT.create(&bed, SUBJECT.object("it", 2)).await;
    SUBJECT.settled(&bed, "it", 2).await;
    assert_eq!(bed.pod_names().await, ["it-0", "it-1", "it-2"], "its index is passed over");
    let left = bed.api::<Pod>().get("it-0").await.unwrap();
    assert_eq!((left.uid(), left.owner_references().len()), (theirs.uid(), 0));
}

async fn the_shared_app_label_confuses_no_two_managers(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("one", 2)).await;
    SUBJECT.create(&bed, SUBJECT.object("two", 1)).await;
    SUBJECT.settled(&bed, "one", 2).await;
    SUBJECT.settled(&bed, "two", 1).await;
    bed.dynamic("podmanager").delete("one", &DeleteParams::default()).await.unwrap();
    eventually("only the other's Pod is left", || async {
        (bed.pod_names().await == ["two-0"]).then_some(())
    })
    .await;
    SUBJECT.settled(&bed, "two", 1).await;
}

async fn the_finalizer_waits_until_the_pods_are_gone(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 2)).await;
    SUBJECT.settled(&bed, "it", 2).await;
    // A Pod that takes its time: somebody else's finalizer holds it.
    let pods = bed.api::<Pod>();
    let hold = |names: serde_json::Value| Patch::Merge(json!({"metadata": {"finalizers": names}}));
    let params = PatchParams::default();
    pods.patch("it-1", &params, &hold(json!(["windlass.dev/held"]))).await.unwrap();
    let api = bed.dynamic("podmanager");
    api.delete("it", &DeleteParams::default()).await.unwrap();
    eventually("the other Pod is gone", || async {
        pods.get_opt("it-0").await.unwrap().is_none().then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let manager = api.get("it").await.unwrap();
    assert_eq!(manager.finalizers(), [FINALIZER], "it waits for the Pod that is held");
    pods.patch("it-1", &params, &hold(json!(null))).await.unwrap();
    eventually("all is gone", || async {
        let gone = api.get_opt("it").await.unwrap().is_none() && bed.count::<Pod>().await == 0;
        gone.then_some(())
    })
    .await;
}

async fn a_refused_pod_is_an_event_and_a_condition(bed: Bed) {
    bed.expects("Invalid");
    let mut object = SUBJECT.object("it", 1);
    // The API server refuses such a Pod; no schema of ours knows what it knows.
    object["spec"]["pod"]["annotations"] = json!({"not a key": "x"});
    SUBJECT.create(&bed, object).await;
    let message = SUBJECT.condition(&bed, "it", "Degraded", "True", "FailedCreate").await;
    assert!(message.contains("it-0"), "the Pod is named: {message}");
    let notes = bed.recorded("PodManager", "Failed").await;
    assert!(notes[0].starts_with("Failed to create pod it-0: "), "{notes:?}");
}

async fn replicas_below_one_are_refused_and_three_is_the_default(bed: Bed) {
    assert_eq!(SUBJECT.refusal(&bed, SUBJECT.object("it", 0)).await.code, 422);
    let mut object = SUBJECT.object("it", 1);
    object["spec"].as_object_mut().unwrap().remove("replicas");
    let created = SUBJECT.create(&bed, object).await;
    assert_eq!(created.data["spec"]["replicas"], 3);
    let mut imageless = SUBJECT.object("that", 1);
    imageless["spec"].as_object_mut().unwrap().remove("image");
    assert_eq!(SUBJECT.refusal(&bed, imageless).await.code, 422);
}

async fn both_versions_are_served_and_nothing_is_lost_between_them(bed: Bed) {
    let mut resource = windlass_operators::entry("podmanager").unwrap().resource();
    (resource.version, resource.api_version) = ("v1alpha1".into(), "apps.mycompany.com/v1alpha1".into());
    let older = Api::<DynamicObject>::namespaced_with(bed.client.clone(), &bed.namespace, &resource);
    let container = json!({"image": "nginx:1.27", "imagePullPolicy": "IfNotPresent"});
    let object = json!({
        "apiVersion": resource.api_version, "kind": "PodManager", "metadata": {"name": "it"},
        "spec": {"size": 2, "container": container},
    });
    let object = serde_json::from_value(object).unwrap();
    older.create(&PostParams::default(), &object).await.unwrap();
    SUBJECT.settled(&bed, "it", 2).await;
    let newer = bed.dynamic("podmanager").get("it").await.unwrap();
    let pod = json!({"imagePullPolicy": "IfNotPresent"});
    assert_eq!(newer.data["spec"], json!({"replicas": 2, "image": "nginx:1.27", "pod": pod}));

    // The older version has no word for annotations, and a change in it must not lose them.
    SUBJECT.merge(&bed, "it", json!({"spec": {"pod": {"annotations": {"colour": "red"}}}})).await;
    let one = Patch::Merge(json!({"spec": {"size": 1}}));
    let changed = older.patch("it", &PatchParams::default(), &one).await.unwrap();
    assert_eq!(changed.data["spec"], json!({"size": 1, "container": container}));
    SUBJECT.settled(&bed, "it", 1).await;
    let newer = bed.dynamic("podmanager").get("it").await.unwrap();
    assert_eq!(newer.data["spec"]["pod"]["annotations"], json!({"colour": "red"}));
    assert_eq!(older.get_scale("it").await.unwrap().spec.unwrap().replicas, Some(1));
    assert_eq!(older.get("it").await.unwrap().data["status"]["readyReplicas"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconciles_are_counted_by_result() {
    let cluster = Cluster::start().await.unwrap();
    let bed = Bed::new(cluster.client()).await;
    let namespace = bed.namespace.clone();
    let env = Environment::on(cluster, move || operator(&namespace)).await;
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    let page = env.running().metrics().encode().unwrap();
    assert!(page.contains("podmanager_reconcile_total{result=\"success\"}"), "{page}");
    env.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_number_is_worked_on_in_sight_of_everybody() {
    const MANY: i32 = 250;
    let cluster = Cluster::start().await.unwrap();
    let bed = Bed::new(cluster.client()).await;
    let namespace = bed.namespace.clone();
    let env = Environment::on(cluster, move || operator(&namespace)).await;
    env.allow_failures(|failure| failure.reason == "Conflict");
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    let changed = SUBJECT.resize(&bed, "it", MANY).await.metadata.generation;
    let api = bed.dynamic("podmanager");
    let mut half_way = false;
    loop {
        let object = api.get("it").await.unwrap();
        let status = &object.data["status"];
        let current = status["currentReplicas"].as_i64().unwrap_or(0);
        if status["observedGeneration"].as_i64() == changed {
            let ready = crate::suite::condition_of(status, "Ready").unwrap();
            half_way |= current > 1 && current < i64::from(MANY) && ready["status"] == "False";
            if current == i64::from(MANY) {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(half_way, "the status tells how far it is");
    SUBJECT.settled(&bed, "it", MANY).await;
    api.delete("it", &DeleteParams::default()).await.unwrap();
    eventually("all is gone", || async {
        (api.get_opt("it").await.unwrap().is_none() && bed.count::<Pod>().await == 0).then_some(())
    })
    .await;
    env.stop().await;
}
