//! The HorizontalPodAutoscaler controller: resizes a workload by the usage of its Pods.
//!
//! Enters: an autoscaler, the scale of its target and the Pods behind it. Leaves: a new scale now and then, and the
//! status. What the metrics ask for ([`metrics`]) and how fast it may happen ([`limits`]) are pure.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, ReconcileError, Reconciler,
    k8s_openapi::{
        api::{
            autoscaling::{
                v1::Scale,
                v2::{
                    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus,
                },
            },
            core::v1::Pod,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
    kube::{
        Api,
        api::{DynamicObject, Patch, PatchParams},
        core::GroupVersionKind,
        discovery,
    },
    rbac,
    serde_json::json,
};

use crate::selector;

mod limits;
mod metrics;

/// How often an autoscaler looks at the metrics.
const PERIOD: Duration = Duration::from_secs(15);

const ACTIVE: &str = "ScalingActive";
const ABLE: &str = "AbleToScale";
const LIMITED: &str = "ScalingLimited";

/// Why an autoscaler could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cache or a status write failed.
    #[error(transparent)]
    Context(#[from] windlass::Error),
    /// The target could not be read or resized.
    #[error("failed to scale the target")]
    Scale(#[source] windlass::kube::Error),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Context(error) => error.category(),
            Self::Scale(_) => "FailedGetScale",
        }
    }
}

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Autoscalers> {
    Controller::new(Autoscalers::default())
        .name("horizontal-pod-autoscaler")
        .core_events("horizontal-pod-autoscaler")
        .reads::<Pod>()
        .permits([rbac::rule("*", ["*/scale"], ["get", "patch"])])
}

/// Reconciles HorizontalPodAutoscalers.
#[derive(Default)]
pub(crate) struct Autoscalers {
    memory: Mutex<BTreeMap<ObjectKey, limits::Memory>>,
}

impl Reconciler for Autoscalers {
    type Resource = HorizontalPodAutoscaler;
    type Error = Error;

    async fn reconcile(
        &self,
        autoscaler: Arc<HorizontalPodAutoscaler>,
        ctx: &Context<HorizontalPodAutoscaler>,
    ) -> Result<Action, Error> {
        let status = autoscaler.status.clone().unwrap_or_default();
        let mut run = Run { ctx, autoscaler, status, memory: &self.memory };
        let scaled = Box::pin(run.scale()).await;
        ctx.patch_status(&*run.autoscaler, &run.status).await?;
        scaled?;
        Ok(Action::requeue(PERIOD))
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<HorizontalPodAutoscaler>) -> Result<(), Error> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        Ok(())
    }
}

/// One run: the autoscaler, and its status as it grows in the course of the run.
struct Run<'a> {
    ctx: &'a Context<HorizontalPodAutoscaler>,
    autoscaler: Arc<HorizontalPodAutoscaler>,
    status: HorizontalPodAutoscalerStatus,
    memory: &'a Mutex<BTreeMap<ObjectKey, limits::Memory>>,
}

/// Where the Pods should go, and why.
struct Goal {
    replicas: i32,
    reason: String,
}

impl Run<'_> {
    async fn scale(&mut self) -> Result<(), Error> {
        let api = match self.target().await {
            Ok(api) => api,
            Err(error) => {
                let target = &self.autoscaler.spec.scale_target_ref;
                let group = target.api_version.as_deref().and_then(|version| version.split_once('/'));
                let (kind, group) = (&target.kind, group.map_or("", |(group, _)| group));
                let why = match error {
                    windlass::kube::Error::Api(_) | windlass::kube::Error::Discovery(_) => {
                        format!("no matches for kind {kind:?} in group {group:?}")
                    }
                    error => error.to_string(),
                };
                self.fail_scale(&why);
                return Ok(());
            }
        };
        let name = self.autoscaler.spec.scale_target_ref.name.clone();
        let scale = match api.get_scale(&name).await {
            Ok(scale) => scale,
            Err(windlass::kube::Error::Api(status)) => {
                self.fail_scale(&status.message);
                return Ok(());
            }
            Err(error) => {
                self.fail_scale(&error.to_string());
                return Ok(());
            }
        };
        self.status.observed_generation = self.autoscaler.metadata.generation;
        let get = "the HPA controller was able to get the target's current scale";
        self.put(ABLE, "True", "SucceededGetScale", get);
        let current = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
        self.status.current_replicas = Some(current).filter(|count| *count != 0);
        let Some(goal) = self.goal(&scale, current)? else { return Ok(()) };
        self.status.desired_replicas = goal.replicas;
        if goal.replicas == current {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "spec": { "replicas": goal.replicas } }));
        let params =
            PatchParams { field_manager: Some(self.ctx.field_manager().into()), ..PatchParams::default() };
        api.patch_scale(&name, &params, &patch).await.map_err(Error::Scale)?;
        let note = format!("the HPA controller was able to update the target scale to {}", goal.replicas);
        self.put(ABLE, "True", "SucceededRescale", &note);
        let (zero, why, note) = if goal.replicas == 0 {
            ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
        } else {
            ("False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")
        };
        self.put("ScaledToZero", zero, why, note);
        let note = format!("New size: {}; reason: {}", goal.replicas, goal.reason);
        self.ctx.event(Event::normal("SuccessfulRescale", note).action("Rescale"));
        self.status.last_scale_time = Some(Time(self.ctx.now()));
        self.remember(|memory, now| memory.rescaled(now, goal.replicas.saturating_sub(current)));
        Ok(())
    }

    async fn target(&self) -> Result<Api<DynamicObject>, windlass::kube::Error> {
        let target = &self.autoscaler.spec.scale_target_ref;
        let version = target.api_version.as_deref().unwrap_or("v1");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, &target.kind);
        let (resource, _) = discovery::pinned_kind(self.ctx.client(), &kind).await?;
        let namespace = self.ctx.key().namespace().unwrap_or_default();
        Ok(Api::namespaced_with(self.ctx.client().clone(), namespace, &resource))
    }

    fn fail_scale(&mut self, why: &str) {
        let note = format!("the HPA controller was unable to get the target's current scale: {why}");
        self.put(ABLE, "False", "FailedGetScale", &note);
        self.ctx.event(Event::warning("FailedGetScale", why).action("Rescale"));
    }

    fn remember<T>(&self, change: impl FnOnce(&mut limits::Memory, windlass::jiff::Timestamp) -> T) -> T {
        let mut all = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        change(all.entry(self.ctx.key().clone()).or_default(), self.ctx.now())
    }

    /// The size that the target should have; `None` if nothing can be said.
    fn goal(&mut self, scale: &Scale, current: i32) -> Result<Option<Goal>, Error> {
        let spec = self.autoscaler.spec.clone();
        let least = spec.min_replicas.unwrap_or(1);
        let outside = |replicas: i32, reason: &str| Some(Goal { replicas, reason: reason.to_owned() });
        if current == 0 {
            let note = "scaling is disabled since the replica count of the target is zero";
            self.put(ACTIVE, "False", "ScalingDisabled", note);
            return Ok(outside(0, ""));
        }
        if current > spec.max_replicas {
            return Ok(outside(spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"));
        }
        if current < least {
            return Ok(outside(least, "Current number of replicas below Spec.MinReplicas"));
        }
        let Some((wanted, name)) = self.metrics(scale, current)? else { return Ok(None) };
        let reason = match wanted.cmp(&current) {
            std::cmp::Ordering::Greater => format!("{name} above target"),
            _ => "All metrics below target".to_owned(),
        };
        let limited = self.remember(|memory, now| limits::apply(&spec, memory, current, wanted, now));
        self.put(ABLE, "True", limited.able.0, limited.able.1);
        let (is_limited, why, message) = limited.bounds;
        self.put(LIMITED, if is_limited { "True" } else { "False" }, why, message);
        Ok(Some(Goal { replicas: limited.replicas, reason }))
    }

    /// The highest size that a metric asks for, and the metric's name.
    fn metrics(&mut self, scale: &Scale, current: i32) -> Result<Option<(i32, String)>, Error> {
        let wanted = scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default();
        if wanted.is_empty() {
            self.put(ACTIVE, "False", "InvalidSelector", "the HPA target's scale is missing a selector");
            return Ok(None);
        }
        let mut pods = self.ctx.list::<Pod>(self.ctx.key().namespace())?;
        pods.retain(|pod| selector::matches_text(wanted, pod.metadata.labels.as_ref()));
        let mut best: Option<(i32, String)> = None;
        let (mut failure, mut failures) = (None, 0);
        self.status.current_metrics = None;
        let specs = self.autoscaler.spec.metrics.clone().unwrap_or_default();
        let size = metrics::Current::new(current, self.autoscaler.spec.behavior.as_ref());
        for spec in &specs {
            match metrics::propose(spec, &pods, size) {
                Ok(proposal) => {
                    self.status.current_metrics.get_or_insert_default().push(proposal.status);
                    if best.as_ref().is_none_or(|(replicas, _)| proposal.replicas > *replicas) {
                        best = Some((proposal.replicas, proposal.name));
                    }
                }
                Err(failed) => {
                    let short = failed.message.rsplit_once("replica count: ").map_or("", |(_, why)| why);
                    self.ctx.event(Event::warning(failed.reason, short).action("Measure"));
                    failures += 1;
                    let told = format!("{}: {short}", metrics::not_had(spec));
                    failure.get_or_insert((failed, told));
                }
            }
        }
        match (&best, failure) {
            // With a metric missing the others may ask for more Pods, but not for fewer.
            (Some((replicas, _)), Some(_)) if *replicas < current => best = Some((current, String::new())),
            (None, Some((failed, told))) => {
                self.put(ACTIVE, "False", failed.reason, &failed.message);
                let all = specs.len();
                let note =
                    format!("invalid metrics ({failures} invalid out of {all}), first error is: {told}");
                self.ctx.event(Event::warning("FailedComputeMetricsReplicas", note).action("Measure"));
                return Ok(None);
            }
            _ => {}
        }
        if let Some((_, name)) = &best {
            let note = format!("the HPA was able to successfully calculate a replica count from {name}");
            self.put(ACTIVE, "True", "ValidMetricFound", &note);
        }
        Ok(best)
    }

    fn put(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let now = Time(self.ctx.now());
        let conditions = self.status.conditions.get_or_insert_default();
        let old = conditions.iter_mut().find(|condition| condition.type_ == type_);
        let since =
            old.as_ref().filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
        let new = HorizontalPodAutoscalerCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(since.unwrap_or(now)),
            ..HorizontalPodAutoscalerCondition::default()
        };
        match old {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
}
