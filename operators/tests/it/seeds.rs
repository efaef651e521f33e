//! What the programs that these operators started from got wrong, and no test of one operator is about.
//!
//! `README.md` has the whole list, with the test for each entry.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, events::v1::Event};
use kube::{
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
    core::DynamicObject,
};
use serde_json::json;
use windlass::Operator;
use windlass_cluster::{Cluster, testing::Environment};
use windlass_operators::{catalogue, imoocpod, memcached, operator, workload::Settings};

use crate::{
    bed::{Bed, eventually},
    helloworld, imoocpod as imoocpods, memcached as memcacheds, podmanager as podmanagers, webserver,
};

on_both_clusters! { any =>
    an_image_without_a_version_is_pointed_out
}

fn any(namespace: &str) -> Operator {
    webserver::operator(namespace)
}

async fn an_image_without_a_version_is_pointed_out(bed: Bed) {
    let mut object = webserver::SUBJECT.object("it", 1);
    object["spec"]["image"] = "nginx:latest".into();
    webserver::SUBJECT.create(&bed, object).await;
    webserver::SUBJECT.settled(&bed, "it", 1).await;
    let notes = bed.recorded("WebServer", "FloatingImage").await;
    assert!(notes.len() == 1 && notes[0].contains("nginx:latest"), "{notes:?}");
}

mod failed_creation {
    use super::{Bed, helloworld, json};

    on_both_clusters! { operator =>
        a_failed_creation_is_told_as_what_it_is
    }

    use helloworld::operator;

    async fn a_failed_creation_is_told_as_what_it_is(bed: Bed) {
        bed.expects("Invalid");
        let mut object = helloworld::SUBJECT.object("it", 1);
        object["spec"]["pod"] = json!({"annotations": {"not a key": "x"}});
        helloworld::SUBJECT.create(&bed, object).await;
        let message = helloworld::SUBJECT.condition(&bed, "it", "Degraded", "True", "Invalid").await;
        assert!(message.contains("not a key"), "the API server's own words: {message}");
    }
}

mod after_the_action {
    use super::{Bed, DynamicObject, StreamExt, TryStreamExt, WatchEvent, WatchParams, podmanagers};

    on_both_clusters! { operator =>
        the_status_tells_what_is_there_after_the_action
    }

    use podmanagers::{SUBJECT, operator};

    async fn the_status_tells_what_is_there_after_the_action(bed: Bed) {
        SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
        SUBJECT.settled(&bed, "it", 1).await;
        let api = bed.dynamic(SUBJECT.name);
        let resized = SUBJECT.resize(&bed, "it", 3).await;
        let version = resized.metadata.resource_version.clone().unwrap();
        let changes = api.watch(&WatchParams::default(), &version).await.unwrap();
        let statuses = changes.try_filter_map(|event| async move {
            let WatchEvent::Modified(object) = event else { return Ok(None) };
            Ok(Some::<DynamicObject>(object))
        });
        let mut statuses = statuses.boxed();
        loop {
            let object = statuses.try_next().await.unwrap().unwrap();
            let status = &object.data["status"];
            if status["observedGeneration"].as_i64() != resized.metadata.generation {
                continue;
            }
            assert_eq!(
                status["currentReplicas"], 3,
                "a status of the new spec counts the new Pods: {status:#}"
            );
            if status["readyReplicas"] == 3 {
                return;
            }
        }
    }
}

/// An operator on a cluster of its own, and a look at its metrics.
struct Stage {
    env: Environment,
    bed: Bed,
}

impl Stage {
    async fn set(operator: impl Fn(&str) -> Operator + Send + Sync + 'static) -> Self {
        let cluster = Cluster::start().await.unwrap();
        let bed = Bed::new(cluster.client()).await;
        let namespace = bed.namespace.clone();
        let env = Environment::on(cluster, move || operator(&namespace)).await;
        Self { env, bed }
    }

    /// The sum of all series of a metric.
    fn sum(&self, name: &str) -> u64 {
        let page = self.env.running().metrics().encode().unwrap();
        let series = page.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    async fn strike(self) {
        self.env.stop().await;
    }
}

fn pods_of_imooc(namespace: &str, resync: Option<Duration>) -> Operator {
    let settings = Settings { resync, ..Settings::default() };
    Operator::new("imoocpod-operator")
        .crd::<imoocpod::ImoocPod>()
        .controller(imoocpod::controller(settings).namespace(namespace))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_requeued_at_rest_and_not_found_is_no_error() {
    let stage = Stage::set(|namespace| pods_of_imooc(namespace, None)).await;
    let (bed, subject) = (&stage.bed, imoocpods::SUBJECT);
    subject.create(bed, subject.object("it", 2)).await;
    subject.settled(bed, "it", 2).await;
    // What the last change of a Pod brings is done by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reconciles = stage.sum("controller_runtime_reconcile_total");
    assert!(reconciles > 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.sum("controller_runtime_reconcile_total"), reconciles, "nobody looks without a reason");
    bed.dynamic(subject.name).delete("it", &DeleteParams::default()).await.unwrap();
    eventually("all is gone", || async { (bed.count::<Pod>().await == 0).then_some(()) }).await;
    assert_eq!(stage.sum("controller_runtime_reconcile_errors_total"), 0, "to be gone is no error");
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_too_many_is_ever_made() {
    // It looks a hundred times a second, mostly before a watch has told of the Pods that it has just made.
    let stage = Stage::set(|namespace| pods_of_imooc(namespace, Some(Duration::from_millis(10)))).await;
    let (bed, subject) = (&stage.bed, imoocpods::SUBJECT);
    subject.create(bed, subject.object("it", 40)).await;
    subject.settled(bed, "it", 40).await;
    assert_eq!(bed.count::<Pod>().await, 40);
    let events = bed.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let deleted = events.iter().filter(|event| event.reason.as_deref() == Some("Deleted")).count();
    assert_eq!(deleted, 0, "none had to go again");
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_fails_keeps_no_other_waiting() {
    let stage = Stage::set(|namespace| {
        let settings =
            Settings { concurrency: 1, resync: Some(Duration::from_millis(50)), ..Settings::default() };
        Operator::new("memcached-operator")
            .crd::<memcached::Memcached>()
            .controller(memcached::controller(settings).namespace(namespace))
    })
    .await;
    let (bed, subject) = (&stage.bed, memcacheds::SUBJECT);
    stage.env.allow_failures(|failure| failure.reason == "NameConflict");
    let _: Deployment = bed
        .create(json!({
            "metadata": {"name": "bad"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "theirs"}},
                "template": {
                    "metadata": {"labels": {"app": "theirs"}},
                    "spec": {"containers": [{"name": "theirs", "image": "nginx:1.27"}]},
                },
            },
        }))
        .await;
    subject.create(bed, subject.object("bad", 1)).await;
    subject.condition(bed, "bad", "Degraded", "True", "NameConflict").await;
    subject.create(bed, subject.object("good", 1)).await;
    subject.settled(bed, "good", 1).await;
    stage.strike().await;
}

#[test]
fn every_kind_has_the_subresources_that_it_writes() {
    let all = operator("windlass", catalogue());
    for crd in all.crds() {
        for version in &crd.spec.versions {
            let subresources = version.subresources.as_ref().unwrap();
            let what = format!("{:?} {}", crd.metadata.name, version.name);
            assert!(subresources.status.is_some(), "{what}");
            let is_of_pods = !crd.spec.names.kind.starts_with("Database");
            assert!(subresources.scale.is_some() || !is_of_pods, "{what}");
        }
    }
}

#[test]
fn the_permissions_name_what_the_operators_make() {
    let rules = operator("windlass", catalogue()).rbac();
    for (group, resource) in [("", "pods"), ("apps", "deployments"), ("", "services")] {
        for verb in ["get", "list", "watch", "create", "patch", "delete"] {
            let has = |list: &Option<Vec<String>>, word: &str| list.iter().flatten().any(|it| it == word);
            let granted = rules.iter().any(|rule| {
                has(&rule.api_groups, group)
                    && has(&rule.resources, resource)
                    && rule.verbs.iter().any(|it| it == verb)
            });
            assert!(granted, "{verb} {group}/{resource}");
        }
    }
}
