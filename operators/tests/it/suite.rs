//! What every operator of Pods must do, written once: each kind brings a [`Subject`].

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{ConfigMap, Pod, ResourceQuota, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::bed::{Bed, eventually};

/// A kind under test.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    /// Its name in the catalogue.
    pub(crate) name: &'static str,
    /// Where its spec has the number of Pods.
    pub(crate) size_field: &'static str,
    /// Where its status has the number of Pods.
    pub(crate) current_field: &'static str,
    /// The rest of the spec.
    pub(crate) spec: fn() -> Value,
    /// An image to roll out.
    pub(crate) other_image: &'static str,
    /// Whether the options of the Pods stand in the spec itself, not in its `pod`.
    pub(crate) flat: bool,
}

impl Subject {
    /// An object with this many Pods.
    pub(crate) fn object(&self, name: &str, size: i32) -> Value {
        let entry = windlass_operators::entry(self.name).unwrap();
        let mut spec = (self.spec)();
        spec[self.size_field] = size.into();
        json!({
            "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": name}, "spec": spec,
        })
    }

    /// Options of the Pods, as a part of the spec.
    fn pod(&self, annotations: Value, more: Value) -> Value {
        let mut options = more;
        let name = if self.flat { "podAnnotations" } else { "annotations" };
        options[name] = annotations;
        if self.flat { options } else { json!({"pod": options}) }
    }

    /// An object with one Pod and options of it.
    fn object_with(&self, options: Value) -> Value {
        let mut object = self.object("it", 1);
        merge_into(&mut object["spec"], options);
        object
    }

    pub(crate) async fn create(&self, bed: &Bed, object: Value) -> DynamicObject {
        let object = serde_json::from_value(object).unwrap();
        bed.dynamic(self.name).create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn merge(&self, bed: &Bed, name: &str, patch: Value) -> DynamicObject {
        let patch = Patch::Merge(patch);
        bed.dynamic(self.name).patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    pub(crate) async fn resize(&self, bed: &Bed, name: &str, size: i32) -> DynamicObject {
        self.merge(bed, name, json!({"spec": {self.size_field: size}})).await
    }

    /// What the API server says to an object that it does not let in.
    pub(crate) async fn refusal(&self, bed: &Bed, object: Value) -> Status {
        let parsed = serde_json::from_value(object.clone()).unwrap();
        match bed.dynamic(self.name).create(&PostParams::default(), &parsed).await {
            Err(kube::Error::Api(status)) => *status,
            other => panic!("expected a refusal of {object}, got {other:?}"),
        }
    }

    /// Waits until the status describes the current spec, with this many Pods ready and nothing to do.
    pub(crate) async fn settled(&self, bed: &Bed, name: &str, size: i32) -> Value {
        let api = bed.dynamic(self.name);
        eventually(&format!("{} {name} is ready with {size}", self.name), || async {
            let object = api.get(name).await.unwrap();
            let status = object.data.get("status")?.clone();
            let current = status["observedGeneration"].as_i64() == object.metadata.generation
                && condition_of(&status, "Ready")?["status"] == "True"
                && condition_of(&status, "Progressing")?["status"] == "False"
                && status["readyReplicas"] == size
                && status[self.current_field] == size;
            current.then_some(status)
        })
        .await
    }

    /// Waits until a condition has this status and reason, and returns its message.
    pub(crate) async fn condition(
        &self,
        bed: &Bed,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> String {
        let api = bed.dynamic(self.name);
        eventually(&format!("{name} is {type_}={status} because of {reason}"), || async {
            let object = api.get(name).await.unwrap();
            let found = condition_of(object.data.get("status")?, type_)?.clone();
            let right = found["status"] == status && found["reason"] == reason;
            right.then(|| found["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// The versions of everything that an operator may write here.
    async fn versions(&self, bed: &Bed) -> Vec<String> {
        let object = bed.dynamic(self.name).list(&ListParams::default()).await.unwrap().items;
        let mut found: Vec<String> = object.iter().map(version_of).collect();
        macro_rules! all {
            ($($kind:ty)+) => { $({
                let objects = bed.api::<$kind>().list(&ListParams::default()).await.unwrap().items;
                found.extend(objects.iter().map(version_of));
            })+ };
        }
        all!(Pod Deployment ReplicaSet Service ConfigMap PodDisruptionBudget);
        found
    }
}

fn merge_into(target: &mut Value, patch: Value) {
    match patch {
        Value::Object(fields) if target.is_object() => {
            for (name, value) in fields {
                merge_into(&mut target[name], value);
            }
        }
        other => *target = other,
    }
}

fn version_of<K: ResourceExt>(object: &K) -> String {
    format!("{} {}", object.name_any(), object.resource_version().unwrap_or_default())
}

pub(crate) fn condition_of<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// Defines the tests that every kind has.
macro_rules! suite {
    ($subject:expr, $operator:ident) => {
        mod suite {
            use super::*;

            mod cases {
                use super::*;
                crate::suite::suite!(@cases $subject;
                    it_becomes_ready_and_says_so_once
                    it_is_resized_by_patch_and_by_the_scale_subresource
                    a_second_reconcile_writes_nothing
                    another_image_is_rolled_out
                    a_deleted_object_takes_everything_with_it
                    a_stuck_rollout_with_old_replicas_serving_stays_ready
                    a_pod_that_no_node_takes_is_reported
                    a_pod_that_keeps_ending_is_reported
                    a_paused_object_is_left_alone
                    a_name_that_is_too_long_is_refused
                    a_quota_that_denies_pods_is_reported
                );
            }

            on_both_clusters! { $operator =>
                cases::it_becomes_ready_and_says_so_once
                cases::it_is_resized_by_patch_and_by_the_scale_subresource
                cases::a_second_reconcile_writes_nothing
                cases::another_image_is_rolled_out
                cases::a_deleted_object_takes_everything_with_it
                cases::a_stuck_rollout_with_old_replicas_serving_stays_ready
                cases::a_pod_that_no_node_takes_is_reported
                cases::a_pod_that_keeps_ending_is_reported
                cases::a_paused_object_is_left_alone
                cases::a_name_that_is_too_long_is_refused
                cases::a_quota_that_denies_pods_is_reported
            }
        }
    };
    (@cases $subject:expr; $($case:ident)+) => {
        $(pub(super) async fn $case(bed: crate::bed::Bed) {
            crate::suite::$case(bed, $subject).await;
        })+
    };
}
pub(crate) use suite;

pub(crate) async fn it_becomes_ready_and_says_so_once(bed: Bed, subject: Subject) {
    let created = subject.create(&bed, subject.object("it", 2)).await;
    let status = subject.settled(&bed, "it", 2).await;
    for type_ in ["Ready", "Progressing", "Degraded"] {
        let conditions = status["conditions"].as_array().unwrap();
        let count = conditions.iter().filter(|condition| condition["type"] == type_).count();
        assert_eq!(count, 1, "conditions are replaced, never appended: {conditions:#?}");
    }
    let degraded = condition_of(&status, "Degraded").unwrap();
    assert_eq!(
        (degraded["status"].as_str(), degraded["reason"].as_str()),
        (Some("False"), Some("AsExpected"))
    );
    let selector = status["selector"].as_str().unwrap();
    let pods = bed.api::<Pod>().list(&ListParams::default().labels(selector)).await.unwrap().items;
    assert_eq!(pods.len(), 2, "the selector {selector} finds the Pods");
    assert!(pods.iter().all(|pod| pod.owner_references().iter().any(|owner| owner.controller == Some(true))));
    let kind = windlass_operators::entry(subject.name).unwrap().kind;
    let ready = if kind == "Memcached" { "Reconciled" } else { "Ready" };
    assert_eq!(bed.recorded(kind, ready).await.len(), 1, "one event, not one in every pass");
    assert!(created.uid().is_some());
}

pub(crate) async fn it_is_resized_by_patch_and_by_the_scale_subresource(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 1)).await;
    subject.settled(&bed, "it", 1).await;
    subject.resize(&bed, "it", 3).await;
    subject.settled(&bed, "it", 3).await;
    let api = bed.dynamic(subject.name);
    let scale = api.get_scale("it").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(scale.status.as_ref().unwrap().replicas, 3);
    let selector = scale.status.unwrap().selector.unwrap();
    let pods = bed.api::<Pod>().list(&ListParams::default().labels(&selector)).await.unwrap().items;
    assert_eq!(pods.len(), 3, "the selector {selector} finds the Pods");
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    api.patch_scale("it", &PatchParams::default(), &two).await.unwrap();
    subject.settled(&bed, "it", 2).await;
    eventually("the third Pod is gone", || async { (bed.count::<Pod>().await == 2).then_some(()) }).await;
}

pub(crate) async fn a_second_reconcile_writes_nothing(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 2)).await;
    subject.settled(&bed, "it", 2).await;
    let before = subject.versions(&bed).await;
    // Ten looks of the operator, every 200 ms.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(subject.versions(&bed).await, before, "nothing was written while nothing changed");
}

pub(crate) async fn another_image_is_rolled_out(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 2)).await;
    subject.settled(&bed, "it", 2).await;
    subject.merge(&bed, "it", json!({"spec": {"image": subject.other_image}})).await;
    let status = subject.settled(&bed, "it", 2).await;
    assert_eq!(status["updatedReplicas"], 2);
    eventually("every Pod that is left runs the new image", || async {
        let pods = bed.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
        let right = |pod: &Pod| {
            pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some(subject.other_image)
        };
        (pods.len() == 2 && pods.iter().all(right)).then_some(())
    })
    .await;
}

pub(crate) async fn a_deleted_object_takes_everything_with_it(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 2)).await;
    subject.settled(&bed, "it", 2).await;
    let api = bed.dynamic(subject.name);
    api.delete("it", &DeleteParams::default()).await.unwrap();
    eventually("nothing is left", || async {
        let left = [
            api.list(&ListParams::default()).await.unwrap().items.len(),
            bed.count::<Deployment>().await,
            bed.count::<Service>().await,
            bed.count::<ReplicaSet>().await,
            bed.count::<PodDisruptionBudget>().await,
            bed.count::<Pod>().await,
        ];
        (left == [0; 6]).then_some(())
    })
    .await;
}

pub(crate) async fn a_stuck_rollout_with_old_replicas_serving_stays_ready(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 2)).await;
    subject.settled(&bed, "it", 2).await;
    // New Pods cannot pull their image: on the simulated node because it is told so, on a real one because there is
    // no such image.
    let annotations = |value: Value| json!({"windlass.dev/simulate": value});
    let mut bad =
        subject.pod(annotations("image-pull-error".into()), json!({"imagePullPolicy": "IfNotPresent"}));
    bad["image"] = "nginx:no-such-version".into();
    subject.merge(&bed, "it", json!({"spec": bad})).await;
    let message = subject.condition(&bed, "it", "Degraded", "True", "ImagePullBackOff").await;
    let named = bed.pod_names().await.iter().any(|name| message.contains(name.as_str()));
    assert!(named, "the Pod is named: {message}");
    subject.condition(&bed, "it", "Ready", "True", "Available").await;
    subject.condition(&bed, "it", "Progressing", "True", "RollingOut").await;
    // Back to an image that there is: all is well again, without a trace.
    let mut good = subject.pod(annotations(Value::Null), json!({}));
    good["image"] = (subject.spec)()["image"].clone();
    subject.merge(&bed, "it", json!({"spec": good})).await;
    subject.settled(&bed, "it", 2).await;
    subject.condition(&bed, "it", "Degraded", "False", "AsExpected").await;
}

pub(crate) async fn a_pod_that_no_node_takes_is_reported(bed: Bed, subject: Subject) {
    let nowhere = json!({"nodeSelector": {"windlass.dev/no": "where"}});
    subject.create(&bed, subject.object_with(subject.pod(json!({}), nowhere))).await;
    let message = subject.condition(&bed, "it", "Degraded", "True", "Unschedulable").await;
    assert!(message.contains(&bed.pod_names().await[0]), "the Pod is named: {message}");
    subject.condition(&bed, "it", "Ready", "False", "ReplicasUnavailable").await;
}

pub(crate) async fn a_pod_that_keeps_ending_is_reported(bed: Bed, subject: Subject) {
    let simulate = |value: &str| json!({"windlass.dev/simulate": value});
    if subject.name == "imoocpod" {
        // It sleeps whatever the image: a limit that no program can live with ends it.
        let limit = json!({"resources": {"limits": {"memory": "1Mi"}}});
        subject.create(&bed, subject.object_with(subject.pod(simulate("oom-kill"), limit))).await;
        let reasons = ["OOMKilled", "CrashLoopBackOff", "CreateContainerConfigError"];
        degraded_for_one_of(&bed, subject, &reasons).await;
        return;
    }
    // The shell that this image starts finds nobody to talk to, and ends.
    let mut options = subject.pod(simulate("crash-loop"), json!({}));
    options["image"] = "busybox:1.37".into();
    subject.create(&bed, subject.object_with(options)).await;
    let message = degraded_for_one_of(&bed, subject, &["CrashLoopBackOff"]).await;
    assert!(message.contains("keeps ending"), "{message}");
}

async fn degraded_for_one_of(bed: &Bed, subject: Subject, reasons: &[&str]) -> String {
    let api = bed.dynamic(subject.name);
    eventually(&format!("it is degraded because of one of {reasons:?}"), || async {
        let object = api.get("it").await.unwrap();
        let found = condition_of(object.data.get("status")?, "Degraded")?.clone();
        let right = reasons.iter().any(|reason| found["reason"] == *reason);
        right.then(|| found["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

pub(crate) async fn a_paused_object_is_left_alone(bed: Bed, subject: Subject) {
    subject.create(&bed, subject.object("it", 1)).await;
    subject.settled(&bed, "it", 1).await;
    let pause = |value: Value| json!({"metadata": {"annotations": {"windlass.dev/paused": value}}});
    subject.merge(&bed, "it", pause("true".into())).await;
    // Once the pause has been seen, another size changes nothing.
    tokio::time::sleep(Duration::from_millis(500)).await;
    subject.resize(&bed, "it", 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bed.pods().await.len(), 1);
    subject.merge(&bed, "it", pause(Value::Null)).await;
    subject.settled(&bed, "it", 2).await;
}

pub(crate) async fn a_name_that_is_too_long_is_refused(bed: Bed, subject: Subject) {
    let status = subject.refusal(&bed, subject.object(&"a".repeat(64), 1)).await;
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert!(status.message.contains("at most 63"), "{}", status.message);
}

pub(crate) async fn a_quota_that_denies_pods_is_reported(bed: Bed, subject: Subject) {
    bed.expects("Forbidden");
    let _: ResourceQuota =
        bed.create(json!({"metadata": {"name": "one-pod"}, "spec": {"hard": {"pods": "1"}}})).await;
    let quotas = bed.api::<ResourceQuota>();
    eventually("the quota is in force", || async {
        quotas.get("one-pod").await.unwrap().status?.hard.map(|_| ())
    })
    .await;
    subject.create(&bed, subject.object("it", 2)).await;
    let message = subject.condition(&bed, "it", "Degraded", "True", "FailedCreate").await;
    assert!(message.contains("exceeded quota: one-pod"), "in the quota's own words: {message}");
    subject.condition(&bed, "it", "Ready", "False", "ReplicasUnavailable").await;
    quotas.delete("one-pod", &DeleteParams::default()).await.unwrap();
    subject.settled(&bed, "it", 2).await;
    subject.condition(&bed, "it", "Degraded", "False", "AsExpected").await;
}
