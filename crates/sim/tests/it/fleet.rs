//! Fleet: Pods `<name>-0`, `<name>-1`, … of one image. As it should be, or with one bug.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::{Api, CustomResource, ResourceExt, api::PostParams, core::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Action, Context, Controller, Operator, Reconciler, rbac};
use windlass_sim::Simulation;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "sim.windlass.dev", version = "v1", kind = "Fleet", namespaced, status = "FleetStatus")]
pub(crate) struct FleetSpec {
    replicas: i32,
    image: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetStatus {
    observed_generation: Option<i64>,
    #[serde(default)]
    replicas: i32,
    #[serde(default)]
    conditions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The index of a new Pod is the number of those that there are.
    IndexIsLength,
    /// Pods of another image stay.
    IgnoresImage,
    /// A condition is appended in every pass.
    AppendsConditions,
    /// Every pass asks for the next at once.
    RequeuesAtOnce,
    /// Nobody is told of changes of Pods.
    NoWatch,
    /// The role says nothing of Pods.
    NoPermission,
    /// The status says a generation that was not looked at.
    StaleGeneration,
}

pub(crate) struct Fleets(Option<Bug>);

pub(crate) const SAMPLE: &str =
    "{apiVersion: sim.windlass.dev/v1, kind: Fleet, metadata: {name: one}, spec: {replicas: 3, image: a}}";

const LABEL: &str = "sim.windlass.dev/fleet";

impl Fleets {
    fn has(&self, bug: Bug) -> bool {
        self.0 == Some(bug)
    }

    /// The Pods of a fleet.
    fn pods(fleet: &Fleet, ctx: &Context<Fleet>) -> windlass::Result<Vec<Arc<Pod>>> {
        let selector = format!("{LABEL}={}", fleet.name_any());
        ctx.list_where::<Pod>(fleet.namespace().as_deref(), &selector)
    }

    fn pod(fleet: &Fleet, index: usize) -> Pod {
        let container =
            Container { name: "app".into(), image: Some(fleet.spec.image.clone()), ..Container::default() };
        let metadata = ObjectMeta {
            name: Some(format!("{}-{index}", fleet.name_any())),
            namespace: fleet.namespace(),
            labels: Some([(LABEL.to_owned(), fleet.name_any())].into()),
            ..ObjectMeta::default()
        };
        let spec = Some(PodSpec { containers: vec![container], ..PodSpec::default() });
        Pod { metadata, spec, status: None }
    }

    async fn create(&self, fleet: &Fleet, index: usize, ctx: &Context<Fleet>) -> windlass::Result<()> {
        let pod = Self::pod(fleet, index);
        match self.0 {
            Some(Bug::NoPermission) => {
                let api = Api::<Pod>::namespaced(ctx.client().clone(), "default");
                // A refusal is swallowed, as it was.
                let _ = api.create(&PostParams::default(), &pod).await;
                Ok(())
            }
            _ => ctx.create_child(pod).await.map(drop),
        }
    }
}

impl Reconciler for Fleets {
    type Resource = Fleet;
    type Error = windlass::Error;

    async fn reconcile(&self, fleet: Arc<Fleet>, ctx: &Context<Fleet>) -> windlass::Result<Action> {
        if fleet.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let wanted = usize::try_from(fleet.spec.replicas).unwrap_or(0);
        let pods = Self::pods(&fleet, ctx)?;
        // What has failed, or is not what is wanted any more, goes.
        for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            let old = image(pod) != fleet.spec.image && !self.has(Bug::IgnoresImage);
            if old || is_dead(pod) {
                ctx.delete(&**pod).await?;
            }
        }
        let pods = Self::pods(&fleet, ctx)?;
        let names: BTreeSet<String> = pods.iter().map(|pod| pod.name_any()).collect();
        let (mut count, surplus) = (pods.len(), pods.iter().skip(wanted));
        for pod in surplus {
            ctx.delete(&**pod).await?;
        }
        let free = (0..).filter(|index| !names.contains(&format!("{}-{index}", fleet.name_any())));
        for index in free.take(wanted.saturating_sub(pods.len())) {
            let index = if self.has(Bug::IndexIsLength) { count } else { index };
            self.create(&fleet, index, ctx).await?;
            count += 1;
        }
        self.report(&fleet, ctx).await?;
        let at_once = self.has(Bug::RequeuesAtOnce);
        Ok(if at_once { Action::requeue(Duration::ZERO) } else { Action::await_change() })
    }
}

impl Fleets {
    async fn report(&self, fleet: &Fleet, ctx: &Context<Fleet>) -> windlass::Result<()> {
        let mut status = fleet.status.clone().unwrap_or_default();
        if !self.has(Bug::StaleGeneration) || status.observed_generation.is_none() {
            status.observed_generation = fleet.metadata.generation;
        }
        status.replicas = i32::try_from(Self::pods(fleet, ctx)?.len()).unwrap_or(i32::MAX);
        if self.has(Bug::AppendsConditions) {
            status.conditions.push(format!("Ready at {}", ctx.now()));
        }
        ctx.update_status(status).await.map(drop)
    }
}

fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.containers[0].image.as_deref()).unwrap_or_default()
}

fn is_dead(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// The operator as it should be.
pub(crate) fn operator() -> Operator {
    with(None)
}

fn with(bug: Option<Bug>) -> Operator {
    let controller = Controller::new(Fleets(bug)).namespace("default");
    let controller = match bug {
        Some(Bug::NoPermission) => controller.reads::<Pod>(),
        Some(Bug::NoWatch) => {
            controller.reads::<Pod>().permits([rbac::rule("", ["pods"], ["create", "delete"])])
        }
        _ => controller.owns::<Pod>(),
    };
    Operator::new("fleet-operator").crd::<Fleet>().controller(controller)
}

/// Days of a fleet.
pub(crate) fn simulation(bug: Option<Bug>) -> Simulation {
    Simulation::new(move || with(bug))
        .objects(SAMPLE)
        .change("{spec: {replicas: 1}}")
        .change("{spec: {replicas: 4}}")
        .change("{spec: {image: b}}")
        .comparing::<Pod>()
}
