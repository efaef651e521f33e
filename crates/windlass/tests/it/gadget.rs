//! A small operator to test with: a Gadget has a Deployment, a Service when it has a port, and a status.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Applied, Children, Context, Controller, Reconciler, conditions,
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            apps::v1::{Deployment, DeploymentSpec},
            core::v1::{
                Container, ContainerPort, PodSpec, PodTemplateSpec, ResourceRequirements, Service,
                ServicePort, ServiceSpec,
            },
        },
        apimachinery::pkg::{
            api::resource::Quantity,
            apis::meta::v1::{Condition, LabelSelector, ObjectMeta},
        },
    },
    kube::{CustomResource, KubeSchema, ResourceExt},
};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "it.windlass.dev", version = "v1", kind = "Gadget", namespaced, status = "GadgetStatus")]
#[serde(rename_all = "camelCase")]
pub struct GadgetSpec {
    pub image: String,
    pub replicas: i32,
    pub port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GadgetStatus {
    #[serde(default)]
    pub ready_replicas: i32,
    pub observed_generation: Option<i64>,
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Gadget {
    pub fn test(name: &str) -> Self {
        Self::new(name, GadgetSpec { image: "nginx:1.29".into(), replicas: 2, port: Some(80) })
    }
}

/// What the reconciler does beside its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Fine,
    /// Panics on the first run.
    Nervous,
    /// Never comes back on the first run.
    Stuck,
    /// Asks to be run again in the longest time that can be said.
    Patient,
    /// Applies what it can, the service first, and says what it cannot.
    Persistent,
}

#[derive(Clone)]
pub struct Gadgets {
    pub runs: Arc<AtomicUsize>,
    pub deletions: Arc<AtomicUsize>,
    pub mood: Mood,
}

impl Default for Gadgets {
    fn default() -> Self {
        Self { runs: Arc::default(), deletions: Arc::default(), mood: Mood::Fine }
    }
}

impl Gadgets {
    pub fn controller(&self) -> Controller<Self> {
        Controller::new(self.clone()).owns::<Deployment>().owns::<Service>()
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Reconciler for Gadgets {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        match self.mood {
            Mood::Nervous if run == 0 => panic!("first run"),
            Mood::Stuck if run == 0 => tokio::time::sleep(Duration::from_hours(1)).await,
            _ => {}
        }
        if self.mood == Mood::Persistent {
            return persist(&gadget, ctx).await;
        }
        let applied = ctx.apply(children(&gadget)).await?;
        ctx.update_status(observed(&gadget, &applied, ctx.now())).await?;
        Ok(if self.mood == Mood::Patient { Action::requeue(Duration::MAX) } else { Action::await_change() })
    }

    async fn deleted(&self, _: &windlass::ObjectKey, _: &Context<Gadget>) -> windlass::Result<()> {
        self.deletions.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

async fn persist(gadget: &Gadget, ctx: &Context<Gadget>) -> windlass::Result<Action> {
    let (deployment, service) = parts(gadget);
    let attempt = ctx.try_apply(Children::new().with_some(service).with(deployment)).await?;
    let mut status = observed(gadget, &attempt.applied, ctx.now());
    if let Some(problem) = attempt.failures.iter().find_map(windlass::Error::problem) {
        let degraded = conditions::is_true(conditions::DEGRADED, problem.reason, problem.message);
        conditions::set(&mut status.conditions, degraded, gadget, ctx.now());
    }
    ctx.update_status(status).await?;
    attempt.into_result().map(|_| Action::await_change())
}

fn labels(gadget: &Gadget) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), gadget.name_any())])
}

pub fn children(gadget: &Gadget) -> Children {
    let (deployment, service) = parts(gadget);
    Children::new().with(deployment).with_some(service)
}

fn parts(gadget: &Gadget) -> (Deployment, Option<Service>) {
    let metadata = ObjectMeta {
        name: gadget.metadata.name.clone(),
        labels: Some(labels(gadget)),
        ..ObjectMeta::default()
    };
    let service = gadget.spec.port.map(|port| Service {
        metadata: metadata.clone(),
        spec: Some(ServiceSpec {
            selector: Some(labels(gadget)),
            ports: Some(vec![ServicePort { port, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        status: None,
    });
    (deployment(gadget, metadata), service)
}

fn deployment(gadget: &Gadget, metadata: ObjectMeta) -> Deployment {
    let container = Container {
        name: "gadget".into(),
        image: Some(gadget.spec.image.clone()),
        ports: gadget
            .spec
            .port
            .map(|container_port| vec![ContainerPort { container_port, ..ContainerPort::default() }]),
        resources: Some(ResourceRequirements {
            // Written so that the server stores it differently.
            limits: Some(BTreeMap::from([("cpu".to_owned(), Quantity("1000m".into()))])),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    };
    Deployment {
        metadata,
        spec: DeploymentSpec {
            replicas: Some(gadget.spec.replicas),
            paused: Some(false),
            selector: LabelSelector { match_labels: Some(labels(gadget)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(gadget)), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

pub fn observed(gadget: &Gadget, applied: &Applied, now: Timestamp) -> GadgetStatus {
    let mut status = gadget.status.clone().unwrap_or_default();
    let deployment = applied.get::<Deployment>(&gadget.name_any());
    status.ready_replicas = deployment.and_then(|d| d.status.as_ref()?.ready_replicas).unwrap_or(0);
    status.observed_generation = gadget.metadata.generation;
    let ready = if status.ready_replicas >= gadget.spec.replicas {
        conditions::is_true(conditions::READY, "Available", "all replicas are ready")
    } else {
        conditions::is_false(conditions::READY, "Progressing", "waiting for replicas")
    };
    conditions::set(&mut status.conditions, ready, gadget, now);
    status
}
