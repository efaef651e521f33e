//! The scenarios: what is created, what is waited for, and what is changed then.

use std::{future::Future, pin::Pin, time::Duration};

use serde_json::{Value, json};
use windlass::kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};

type Played = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A scenario by its name.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) play: fn(Client, String) -> Played,
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        /// Every scenario, in the order in which it is recorded.
        pub(super) fn all() -> Vec<Scenario> {
            vec![$(Scenario {
                name: stringify!($name),
                play: |client, namespace| Box::pin($name(Stage { client, namespace })),
            }),*]
        }
    };
}

scenarios!(
    a_deployment_rolls_out,
    a_deployment_gets_stuck,
    a_stateful_set_starts_and_updates,
    a_daemon_set_covers_the_node,
    a_job_completes,
    an_indexed_job_completes,
    a_job_fails,
    a_job_is_suspended_and_resumed,
    a_cron_job_runs,
    a_budget_counts,
);

struct Stage {
    client: Client,
    namespace: String,
}

impl Stage {
    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    async fn create(&self, api_version: &str, kind: &str, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let object = serde_json::from_value(object).unwrap();
        self.api(api_version, kind).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn patch(&self, api_version: &str, kind: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.api(api_version, kind).patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the object is as it should be, and a while longer.
    async fn wait(&self, api_version: &str, kind: &str, name: &str, test: impl Fn(&Value) -> bool) {
        let api = self.api(api_version, kind);
        for _ in 0..900 {
            let object = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
            if test(&object) {
                tokio::time::sleep(Duration::from_secs(2)).await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{kind} {name} does not get there: {:#?}", api.get(name).await.unwrap().data["status"]);
    }
}

fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image}], "terminationGracePeriodSeconds": 1},
    })
}

fn workload(replicas: i32) -> Value {
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template("web", "example.com/web:1"),
    })
}

fn job(annotations: Value) -> Value {
    json!({
        "template": {
            "metadata": {"labels": {"app": "work"}, "annotations": annotations},
            "spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "example.com/work:1"}],
            },
        },
    })
}

fn image(tag: &str) -> Value {
    json!({"spec": {"template": template("web", &format!("example.com/web:{tag}"))}})
}

fn observed(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

fn holds(object: &Value, type_: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == type_ && condition["status"] == status)
}

async fn a_deployment_rolls_out(stage: Stage) {
    let (api, kind) = ("apps/v1", "Deployment");
    stage.create(api, kind, "web", workload(2)).await;
    let done = |web: &Value| {
        observed(web)
            && web["status"]["availableReplicas"] == 2
            && web["status"]["updatedReplicas"] == 2
            && web["status"]["replicas"] == 2
    };
    stage.wait(api, kind, "web", done).await;
    stage.patch(api, kind, "web", image("2")).await;
    stage.wait(api, kind, "web", done).await;
    stage.patch(api, kind, "web", json!({"spec": {"replicas": 1}})).await;
    stage.wait(api, kind, "web", |web| observed(web) && web["status"]["replicas"] == 1).await;
}

async fn a_deployment_gets_stuck(stage: Stage) {
    let mut spec = workload(1);
    spec["progressDeadlineSeconds"] = json!(5);
    spec["template"]["metadata"]["annotations"] = json!({"windlass.dev/simulate": "never-ready"});
    stage.create("apps/v1", "Deployment", "web", spec).await;
    stage.wait("apps/v1", "Deployment", "web", |web| holds(web, "Progressing", "False")).await;
}

async fn a_stateful_set_starts_and_updates(stage: Stage) {
    let (api, kind) = ("apps/v1", "StatefulSet");
    let mut spec = workload(2);
    spec["serviceName"] = json!("web");
    stage.create(api, kind, "web", spec).await;
    let done = |web: &Value| {
        let status = &web["status"];
        observed(web)
            && status["readyReplicas"] == 2
            && status["currentRevision"] == status["updateRevision"]
            && status["updatedReplicas"] == 2
    };
    stage.wait(api, kind, "web", done).await;
    stage.patch(api, kind, "web", image("2")).await;
    stage.wait(api, kind, "web", done).await;
}

async fn a_daemon_set_covers_the_node(stage: Stage) {
    let (api, kind) = ("apps/v1", "DaemonSet");
    let mut spec = workload(1);
    spec.as_object_mut().unwrap().remove("replicas");
    stage.create(api, kind, "web", spec).await;
    let done = |web: &Value| {
        observed(web) && web["status"]["numberAvailable"] == 1 && web["status"]["updatedNumberScheduled"] == 1
    };
    stage.wait(api, kind, "web", done).await;
    stage.patch(api, kind, "web", image("2")).await;
    stage.wait(api, kind, "web", done).await;
}

async fn a_job_completes(stage: Stage) {
    let mut spec = job(json!({}));
    (spec["completions"], spec["parallelism"]) = (json!(3), json!(2));
    stage.create("batch/v1", "Job", "work", spec).await;
    stage.wait("batch/v1", "Job", "work", |work| holds(work, "Complete", "True")).await;
}

async fn an_indexed_job_completes(stage: Stage) {
    let mut spec = job(json!({}));
    (spec["completions"], spec["parallelism"]) = (json!(3), json!(3));
    spec["completionMode"] = json!("Indexed");
    stage.create("batch/v1", "Job", "work", spec).await;
    stage.wait("batch/v1", "Job", "work", |work| holds(work, "Complete", "True")).await;
}

async fn a_job_fails(stage: Stage) {
    let mut spec = job(json!({"windlass.dev/simulate": "fail"}));
    spec["backoffLimit"] = json!(1);
    stage.create("batch/v1", "Job", "work", spec).await;
    stage.wait("batch/v1", "Job", "work", |work| holds(work, "Failed", "True")).await;
}

async fn a_job_is_suspended_and_resumed(stage: Stage) {
    let (api, kind) = ("batch/v1", "Job");
    let mut spec = job(json!({"windlass.dev/simulate": "run"}));
    spec["suspend"] = json!(true);
    stage.create(api, kind, "work", spec).await;
    stage.wait(api, kind, "work", |work| holds(work, "Suspended", "True")).await;
    stage.patch(api, kind, "work", json!({"spec": {"suspend": false}})).await;
    stage.wait(api, kind, "work", |work| work["status"]["ready"] == 1).await;
    stage.patch(api, kind, "work", json!({"spec": {"suspend": true}})).await;
    let gone = |work: &Value| holds(work, "Suspended", "True") && work["status"]["terminating"] == 0;
    stage.wait(api, kind, "work", gone).await;
}

async fn a_cron_job_runs(stage: Stage) {
    let spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job(json!({}))}});
    stage.create("batch/v1", "CronJob", "tick", spec).await;
    let ran =
        |tick: &Value| tick["status"]["lastSuccessfulTime"].is_string() && tick["status"]["active"].is_null();
    stage.wait("batch/v1", "CronJob", "tick", ran).await;
    stage.patch("batch/v1", "CronJob", "tick", json!({"spec": {"suspend": true}})).await;
}

async fn a_budget_counts(stage: Stage) {
    stage.create("apps/v1", "Deployment", "web", workload(3)).await;
    stage.wait("apps/v1", "Deployment", "web", |web| web["status"]["availableReplicas"] == 3).await;
    let spec = json!({"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}});
    stage.create("policy/v1", "PodDisruptionBudget", "web", spec).await;
    let counted = |web: &Value| web["status"]["disruptionsAllowed"] == 1;
    stage.wait("policy/v1", "PodDisruptionBudget", "web", counted).await;
    stage.patch("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 2}})).await;
    let none = |web: &Value| web["status"]["disruptionsAllowed"] == 0;
    stage.wait("policy/v1", "PodDisruptionBudget", "web", none).await;
}
