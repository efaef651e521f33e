//! Build and status, without a cluster.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentStatus},
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;
use windlass::{
    ReconcileError,
    conditions::{self, DEGRADED, PROGRESSING, READY},
    jiff::Timestamp,
};

use super::{
    WebServer,
    api::{WebServerSpec, WebServerStatus},
    build, sample, status,
};
use crate::workload::{Error, ImagePullPolicy, Problem, Rollout, is_floating, known};

impl WebServer {
    /// A WebServer as the API server would hand it out.
    fn test() -> Self {
        let metadata = ObjectMeta {
            name: Some("web".into()),
            namespace: Some("default".into()),
            uid: Some("u-1".into()),
            generation: Some(1),
            ..ObjectMeta::default()
        };
        let spec = WebServerSpec {
            replicas: 3,
            image: "nginx:1.27".into(),
            image_pull_policy: None,
            port: 80,
            content: BTreeMap::new(),
            pod: None,
        };
        Self { metadata, spec, status: None }
    }

    fn named(mut self, name: &str) -> Self {
        self.metadata.name = Some(name.into());
        self
    }

    fn port(mut self, port: i32) -> Self {
        self.spec.port = port;
        self
    }

    fn replicas(mut self, replicas: i32) -> Self {
        self.spec.replicas = replicas;
        self
    }

    fn with_status(mut self, status: WebServerStatus) -> Self {
        self.status = Some(status);
        self
    }

    fn generation(mut self, generation: i64) -> Self {
        self.metadata.generation = Some(generation);
        self
    }
}

/// A Deployment with counts and conditions.
struct Observed(Deployment);

impl Observed {
    fn replicas(total: i32, updated: i32, ready: i32) -> Self {
        let mut deployment = Deployment::default();
        deployment.metadata.generation = Some(1);
        deployment.status = Some(DeploymentStatus {
            observed_generation: Some(1),
            replicas: Some(total),
            updated_replicas: Some(updated),
            ready_replicas: Some(ready),
            available_replicas: Some(ready),
            ..DeploymentStatus::default()
        });
        Self(deployment)
    }

    fn condition(mut self, type_: &str, status: &str, reason: &str, message: &str) -> Self {
        let condition = DeploymentCondition {
            type_: Some(type_.into()),
            status: Some(status.into()),
            reason: Some(reason.into()),
            message: Some(message.into()),
            ..DeploymentCondition::default()
        };
        let seen = self.0.status.as_mut().unwrap();
        seen.conditions.get_or_insert_default().push(condition);
        self
    }

    fn available(self) -> Self {
        self.condition("Available", "True", "MinimumReplicasAvailable", "")
    }

    fn stuck(self) -> Self {
        self.condition("Progressing", "False", "ProgressDeadlineExceeded", "ReplicaSet web-1 has timed out")
    }

    fn stale(mut self) -> Self {
        self.0.metadata.generation = Some(2);
        self
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn seen(web: &WebServer, deployment: &Deployment) -> Rollout {
    Rollout { wanted: web.spec.replicas, deployment: Arc::new(deployment.clone()), pods: Vec::new() }
}

/// The status of a WebServer whose children are in place.
fn observed(web: &WebServer, deployment: &Deployment, now: Timestamp) -> WebServerStatus {
    let seen = seen(web, deployment);
    status::reported(web, Some(&seen), seen.observe(web, known(web), Vec::new(), now))
}

/// The status of a WebServer whose children cannot be applied.
fn failed(
    web: &WebServer,
    deployment: Option<&Deployment>,
    problem: &Problem,
    now: Timestamp,
) -> WebServerStatus {
    let serving = deployment.map(|deployment| seen(web, deployment));
    let conditions = Rollout::condemn(serving.as_ref(), problem, web, known(web), now);
    status::reported(web, serving.as_ref(), conditions)
}

/// `Ready=True/Available Progressing=…`
fn summary(status: &WebServerStatus) -> String {
    let words = [READY, PROGRESSING, DEGRADED].map(|type_| {
        let found = conditions::find(&status.conditions, type_).unwrap();
        format!("{type_}={}/{}", found.status, found.reason)
    });
    words.join(" ")
}

// === build ===

#[test]
fn what_is_mounted_is_applied_before_what_mounts_it() {
    let mut web = sample();
    web.spec.content.insert("index.html".into(), "hello".into());
    let order = format!("{:?}", build::children(&web));
    let (files, pods) = (order.find("ConfigMap").unwrap(), order.find("Deployment").unwrap());
    assert!(files < pods, "{order}");
}

#[test]
fn a_webserver_wants_one_deployment_and_one_service_of_its_name() {
    let web = WebServer::test().port(8080);
    let children = build::children(&web);
    assert_eq!(children.len(), 2);
    let (deployment, service) = (children.of::<Deployment>()[0], children.of::<Service>()[0]);
    assert_eq!((deployment.name_any(), service.name_any()), ("web".into(), "web".into()));
    assert_eq!(deployment.spec.replicas, Some(3));
    let pod = deployment.spec.template.spec.as_ref().unwrap();
    let port = &pod.containers[0].ports.as_ref().unwrap()[0];
    assert_eq!(pod.containers[0].image.as_deref(), Some("nginx:1.27"));
    assert_eq!(port.container_port, 8080);
    let offered = &service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0];
    assert_eq!(offered.port, 8080);
    assert_eq!(offered.target_port, port.name.clone().map(IntOrString::String), "a port change rolls safely");
}

#[test]
fn the_selector_is_pinned_because_a_deployments_selector_can_never_change() {
    let web = WebServer::test();
    let children = build::children(&web);
    let selector = children.of::<Deployment>()[0].spec.selector.match_labels.clone().unwrap();
    let expected = json!({"app.kubernetes.io/instance": "web", "webserver.example.com/uid": "u-1"});
    assert_eq!(serde_json::to_value(&selector).unwrap(), expected);
    let service = children.of::<Service>()[0].spec.clone().unwrap();
    assert_eq!(service.selector, Some(selector));
    assert_eq!(build::selector(&web), "app.kubernetes.io/instance=web,webserver.example.com/uid=u-1");
}

#[test]
fn pods_carry_the_labels_that_select_them() {
    let children = build::children(&WebServer::test());
    let spec = children.of::<Deployment>()[0].spec.clone();
    let labels = spec.template.metadata.unwrap().labels.unwrap();
    for (key, value) in spec.selector.match_labels.unwrap() {
        assert_eq!(labels.get(&key), Some(&value), "{key}");
    }
    assert_eq!(labels["app.kubernetes.io/name"], "webserver");
}

#[test]
fn a_pull_policy_is_passed_on_and_otherwise_left_to_kubernetes() {
    let mut web = WebServer::test();
    let policy = |web: &WebServer| {
        let pod = build::children(web).of::<Deployment>()[0].spec.template.spec.clone().unwrap();
        pod.containers[0].image_pull_policy.clone()
    };
    assert_eq!(policy(&web), None);
    web.spec.image_pull_policy = Some(ImagePullPolicy::Never);
    assert_eq!(policy(&web).as_deref(), Some("Never"));
}

#[test]
fn content_becomes_a_config_map_whose_change_rolls_the_pods() {
    let mut web = WebServer::test();
    assert!(build::children(&web).of::<ConfigMap>().is_empty());
    let hash = |web: &WebServer| {
        let template = build::children(web).of::<Deployment>()[0].spec.template.clone();
        template
            .metadata
            .unwrap()
            .annotations
            .unwrap_or_default()
            .get("webserver.example.com/content-hash")
            .cloned()
    };
    assert_eq!(hash(&web), None);
    web.spec.content.insert("index.html".into(), "hello".into());
    let first = hash(&web).unwrap();
    let children = build::children(&web);
    assert_eq!(children.of::<ConfigMap>()[0].data.as_ref().unwrap()["index.html"], "hello");
    web.spec.content.insert("index.html".into(), "bye".into());
    assert_ne!(hash(&web).unwrap(), first);
}

#[test]
fn a_replica_count_that_no_schema_would_let_in_is_refused_by_the_controller_too() {
    for replicas in [-1, 0, 11] {
        let problem = build::check(&WebServer::test().replicas(replicas)).unwrap_err();
        assert_eq!(problem.reason, "InvalidSpec");
        assert!(problem.message.contains("from 1 to 10"), "{problem}");
    }
}

#[test]
fn only_names_that_a_service_can_have_are_accepted() {
    for good in ["a", "web", "web-1", &"a".repeat(63)] {
        assert!(build::check(&WebServer::test().named(good)).is_ok(), "{good}");
    }
    for bad in ["1web", "web.example", "web-", &"a".repeat(64)] {
        let error = build::check(&WebServer::test().named(bad)).unwrap_err();
        assert!(error.to_string().contains(bad), "{error}");
        assert!(!Error::Build(error).retryable(), "trying again cannot change a name");
    }
}

#[test]
fn images_without_a_version_are_told_from_those_with_one() {
    for floating in ["nginx", "nginx:latest", "localhost:5000/nginx", "a.b/c/nginx:latest"] {
        assert!(is_floating(floating), "{floating}");
    }
    for fixed in ["nginx:1.27", "localhost:5000/nginx:1.27", "nginx@sha256:0a", "nginx:latest@sha256:0a"] {
        assert!(!is_floating(fixed), "{fixed}");
    }
}

#[test]
fn an_empty_spec_but_for_replicas_gets_the_documented_defaults() {
    let spec: WebServerSpec = serde_json::from_value(json!({"replicas": 1})).unwrap();
    assert_eq!((spec.image.as_str(), spec.port), ("nginx:latest", 80));
    assert!(serde_json::from_value::<WebServerSpec>(json!({})).is_err(), "replicas is required");
    assert_eq!((sample().name_any(), sample().spec.replicas), ("webserver-sample".into(), 3));
}

#[test]
fn the_catalogue_names_the_kind_as_the_crd_does() {
    let (crd, entry) = (WebServer::crd(), crate::entry("webserver").unwrap());
    assert_eq!((entry.kind, entry.plural), (&*crd.spec.names.kind, &*crd.spec.names.plural));
    assert_eq!(entry.api_version, format!("{}/{}", crd.spec.group, crd.spec.versions[0].name));
}

// === status ===

#[test]
fn nothing_running_yet_is_progressing_and_not_ready() {
    let status = observed(&WebServer::test(), &Deployment::default(), at(1));
    assert_eq!(
        summary(&status),
        "Ready=False/ReplicasUnavailable Progressing=True/RollingOut Degraded=False/AsExpected"
    );
    assert_eq!((status.observed_generation, status.replicas), (Some(1), 0));
}

#[test]
fn all_replicas_up_is_ready_and_at_rest() {
    let seen = Observed::replicas(3, 3, 3).available();
    let status = observed(&WebServer::test(), &seen.0, at(1));
    assert_eq!(
        summary(&status),
        "Ready=True/Available Progressing=False/RolloutComplete Degraded=False/AsExpected"
    );
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 3));
    assert_eq!(conditions::find(&status.conditions, READY).unwrap().message, "3 of 3 replicas are ready");
}

#[test]
fn observing_the_same_again_is_no_change() {
    let seen = Observed::replicas(3, 3, 3).available();
    let first = observed(&WebServer::test(), &seen.0, at(1));
    let second = observed(&WebServer::test().with_status(first.clone()), &seen.0, at(99));
    assert_eq!(first, second, "a status without news must be equal to the last one, times included");
}

#[test]
fn a_stuck_rollout_with_the_old_replicas_serving_is_ready_and_degraded() {
    let seen = Observed::replicas(4, 1, 3).available().stuck();
    let status = observed(&WebServer::test(), &seen.0, at(1));
    assert_eq!(
        summary(&status),
        "Ready=True/Available Progressing=False/ProgressDeadlineExceeded Degraded=True/ProgressDeadlineExceeded"
    );
}

#[test]
fn pods_that_cannot_be_made_are_reported_with_the_reason() {
    let quota = "pods \"web-1-x\" is forbidden: exceeded quota: small";
    let seen = Observed::replicas(0, 0, 0).condition("ReplicaFailure", "True", "FailedCreate", quota);
    let status = observed(&WebServer::test(), &seen.0, at(1));
    assert_eq!(
        summary(&status),
        "Ready=False/ReplicasUnavailable Progressing=True/RollingOut Degraded=True/FailedCreate"
    );
    assert_eq!(conditions::find(&status.conditions, DEGRADED).unwrap().message, quota);
}

#[test]
fn what_the_deployment_has_not_yet_looked_at_leaves_ready_to_the_old_generation() {
    let seen = Observed::replicas(3, 3, 3).available();
    let before = observed(&WebServer::test(), &seen.0, at(1));
    let web = WebServer::test().replicas(5).generation(2).with_status(before);
    let status = observed(&web, &seen.stale().0, at(2));
    let ready = conditions::find(&status.conditions, READY).unwrap();
    assert_eq!((ready.status.as_str(), ready.observed_generation), ("True", Some(1)));
    assert_eq!(
        conditions::find(&status.conditions, PROGRESSING).map(|c| c.status.as_str()),
        Some("True"),
        "the rollout counts as under way from the first moment"
    );
    assert_eq!(status.observed_generation, Some(2));
}

#[test]
fn an_old_stuck_rollout_does_not_condemn_the_next_one() {
    let seen = Observed::replicas(4, 1, 3).available().stuck().stale();
    let status = observed(&WebServer::test(), &seen.0, at(1));
    assert!(!conditions::holds(&status.conditions, DEGRADED));
    assert!(conditions::holds(&status.conditions, PROGRESSING));
}

#[test]
fn a_child_that_cannot_be_applied_degrades_but_replicas_that_serve_stay_ready() {
    let problem = Problem { reason: "Invalid", message: "spec.x: no".into() };
    let without = failed(&WebServer::test(), None, &problem, at(1));
    assert_eq!(summary(&without), "Ready=False/Invalid Progressing=False/Invalid Degraded=True/Invalid");
    let seen = Observed::replicas(3, 3, 3).available();
    let serving = failed(&WebServer::test(), Some(&seen.0), &problem, at(1));
    assert_eq!(summary(&serving), "Ready=True/Available Progressing=False/Invalid Degraded=True/Invalid");
    assert_eq!(serving.ready_replicas, 3);
}

#[test]
fn a_problem_that_went_away_leaves_no_trace() {
    let problem = Problem { reason: "NameConflict", message: "taken".into() };
    let failed = failed(&WebServer::test(), None, &problem, at(1));
    let seen = Observed::replicas(3, 3, 3).available();
    let status = observed(&WebServer::test().with_status(failed), &seen.0, at(2));
    assert_eq!(
        summary(&status),
        "Ready=True/Available Progressing=False/RolloutComplete Degraded=False/AsExpected"
    );
}
