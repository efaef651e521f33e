//! The kubelet of every simulated node: takes Pods from step to step, and removes those that have ended.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reader, ReconcileError, Reconciler, Watch,
    k8s_openapi::{
        api::core::v1::{ConfigMap, Node, Pod, Secret},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
    kube::api::{DeleteParams, Preconditions},
    rbac,
};

use super::{
    SIMULATED, Timing,
    addresses::Addresses,
    behaviour, health,
    lifecycle::{self, Scene},
    references::{self, Missing, Sources},
};
use crate::{pods, resources, scheduler::filters::ports};

/// Pods by the node that they are on.
const ON_NODE: &str = "kubelet-node";

/// Pods that have not started all of their containers, by the ConfigMaps and Secrets that they refer to:
/// `namespace/configmap/name`.
const NEEDING: &str = "kubelet-needing";

/// The most steps that one run takes a Pod: no life has as many at one moment.
const STEPS: usize = 10;

/// Why a Pod could not be taken on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cache or a status write failed.
    #[error(transparent)]
    Context(#[from] windlass::Error),
    /// A Pod that has ended could not be removed.
    #[error("failed to remove Pod {key}")]
    Remove {
        /// The Pod.
        key: ObjectKey,
        /// What the API server said.
        #[source]
        source: windlass::kube::Error,
    },
    /// All Pod addresses are in use.
    #[error("failed to give Pod {0} an address: all of 10.244.0.0/16 are in use")]
    NoAddress(ObjectKey),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Context(error) => error.category(),
            Self::Remove { .. } => "FailedKillPod",
            Self::NoAddress(_) => "FailedCreatePodSandBox",
        }
    }
}

/// Runs the Pods of the simulated nodes.
pub(crate) struct Kubelet {
    timing: Timing,
    addresses: Mutex<Option<Addresses>>,
    /// What was said about volumes that cannot be mounted.
    told: Mutex<BTreeMap<ObjectKey, Vec<String>>>,
}

/// The controller, ready for an operator.
pub(crate) fn controller(timing: Timing) -> Controller<Kubelet> {
    Controller::new(Kubelet { timing, addresses: Mutex::default(), told: Mutex::default() })
        .name("kubelet")
        .core_events("kubelet")
        .writes_as("kubelet")
        .filter(Predicate::new(|_: &Pod, new: &Pod| pods::node(new).is_some()))
        .watches_with(
            // A node's address and whether it is up matter, its heartbeat does not.
            Watch::<Node>::new().filter(Predicate::new(|old: &Node, new: &Node| {
                address(old) != address(new) || health::is_down(old) != health::is_down(new)
            })),
            |node: &Node, cache| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let pods = cache.indexed::<Pod>(ON_NODE, name).unwrap_or_default();
                pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
            },
        )
        .watches::<ConfigMap, _>(|map, cache| needing(&map.metadata, "configmap", cache))
        .watches::<Secret, _>(|secret, cache| needing(&secret.metadata, "secret", cache))
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .index::<Pod>(NEEDING, needs)
        .concurrency(4)
        .permits([rbac::rule("", ["pods"], ["delete"])])
}

/// The values of [`NEEDING`].
fn needs(pod: &Pod) -> Vec<String> {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    let waits =
        statuses.into_iter().any(|one| one.state.as_ref().is_some_and(|state| state.waiting.is_some()));
    if pods::node(pod).is_none() || pods::is_finished(pod) || !waits {
        return Vec::new();
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    references::names(pod).into_iter().map(|name| format!("{namespace}/{name}")).collect()
}

/// The Pods that may have waited for an object.
fn needing(meta: &ObjectMeta, kind: &str, cache: &Reader) -> Vec<ObjectKey> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = format!("{}/{kind}/{}", text(&meta.namespace), text(&meta.name));
    let pods = cache.indexed::<Pod>(NEEDING, &key).unwrap_or_default();
    pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
}

/// What a Pod refers to and is not there.
fn missing(pod: &Pod, ctx: &Context<Pod>) -> Missing {
    let namespace = pod.metadata.namespace.as_deref();
    let sources = Sources {
        config_map: &|name| ctx.get::<ConfigMap>(namespace, name).ok().flatten(),
        secret: &|name| ctx.get::<Secret>(namespace, name).ok().flatten(),
    };
    references::missing(pod, &sources)
}

/// Whether the node has taken the Pod on, and not started anything of it yet.
fn is_mounting(pod: &Pod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    status.start_time.is_some()
        && pods::is_active(pod)
        && all.into_iter().all(|one| one.container_id.is_none())
}

/// The address of a simulated node; `None` for a real one.
fn address(node: &Node) -> Option<String> {
    let simulated = node.metadata.labels.as_ref().and_then(|labels| labels.get(SIMULATED))?;
    let addresses = node.status.as_ref()?.addresses.as_ref().filter(|_| simulated == "true")?;
    addresses.iter().find(|address| address.type_ == "InternalIP").map(|address| address.address.clone())
}

impl Reconciler for Kubelet {
    type Resource = Pod;
    type Error = Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, Error> {
        let Some(node) = pods::node(&pod) else { return Ok(Action::await_change()) };
        let name = node.to_owned();
        let Some(host) = ctx.get::<Node>(None, node)?.filter(|node| !health::is_down(node)) else {
            return Ok(Action::await_change());
        };
        let Some(host) = address(&host) else { return Ok(Action::await_change()) };
        let own_network = pod.spec.as_ref().is_none_or(|spec| spec.host_network != Some(true));
        let address = if own_network { self.address(ctx)? } else { host.clone() };
        let (behaviour, complaint) = behaviour::of(&pod, self.timing.run);
        if let Some(complaint) =
            complaint.filter(|_| pod.status.as_ref().is_none_or(|s| s.start_time.is_none()))
        {
            let event = Event::warning("InvalidSimulation", complaint).action("Simulating");
            ctx.event(event.instance(&*name));
        }
        let mut pod = pod;
        let missing = missing(&pod, ctx);
        for _ in 0..STEPS {
            if is_mounting(&pod) && !missing.mounts.is_empty() {
                self.complain(&missing.mounts, &name, ctx);
                return Ok(Action::await_change());
            }
            let scene = Scene {
                missing: &missing,
                pod: &pod,
                behaviour: &behaviour,
                timing: behaviour::timing(&pod, self.timing),
                host_ip: &host,
                pod_ip: &address,
                now: ctx.now(),
            };
            let step = match Self::refusal(&pod, ctx)? {
                Some((reason, why)) => lifecycle::reject(&scene, reason, why),
                None => lifecycle::step(&scene),
            };
            let settled = pod.status.as_ref() == Some(&step.status);
            if !settled {
                pod = ctx.patch_status(&*pod, &step.status).await?;
                step.events.into_iter().for_each(|event| ctx.event(event.instance(&*name)));
            }
            if step.gone {
                remove(&pod, ctx).await?;
                return Ok(Action::await_change());
            }
            if settled {
                return Ok(step.next.map_or_else(Action::await_change, Action::requeue));
            }
        }
        Ok(Action::requeue(Duration::from_secs(1)))
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<Pod>) -> Result<(), Error> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = &mut *addresses {
            addresses.release(key);
        }
        Ok(())
    }
}

impl Kubelet {
    /// Says why volumes cannot be mounted, if that is news.
    fn complain(&self, mounts: &[String], node: &str, ctx: &Context<Pod>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = told.insert(ctx.key().clone(), mounts.to_vec()).unwrap_or_default();
        for why in mounts.iter().filter(|why| !known.contains(why)) {
            let event = Event::warning("FailedMount", why.as_str()).action("Mounting");
            ctx.event(event.instance(node));
        }
    }

    /// Why the node will not have a Pod that it has not taken on yet. The scheduler asks the same before, but not
    /// everyone asks the scheduler.
    fn refusal(pod: &Pod, ctx: &Context<Pod>) -> Result<Option<(&'static str, &'static str)>, Error> {
        let is_new = |pod: &Pod| pod.status.as_ref().is_none_or(|status| status.start_time.is_none());
        let (Some(node), Some(spec)) = (pods::node(pod), &pod.spec) else { return Ok(None) };
        if !ports::are_wanted(spec) || !is_new(pod) || pods::is_terminating(&pod.metadata) {
            return Ok(None);
        }
        let mut others = ctx.indexed::<Pod>(ON_NODE, node)?;
        others.retain(|other| other.metadata.uid != pod.metadata.uid && !is_new(other));
        Ok(ports::conflict(spec, &others).then_some((
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        )))
    }

    /// The Pod's address. The first call learns which ones are in use.
    fn address(&self, ctx: &Context<Pod>) -> Result<String, Error> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.is_none() {
            let mut known = Addresses::default();
            for pod in ctx.list::<Pod>(None)? {
                if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()) {
                    known.note(&ObjectKey::of(&*pod), address);
                }
            }
            *addresses = Some(known);
        }
        let assigned = addresses.get_or_insert_default().assign(ctx.key());
        assigned.map(|address| address.to_string()).ok_or_else(|| Error::NoAddress(ctx.key().clone()))
    }
}

/// Removes a Pod that has ended, unless only finalizers of others keep it.
async fn remove(pod: &Pod, ctx: &Context<Pod>) -> Result<(), Error> {
    if pod.metadata.deletion_grace_period_seconds == Some(0) {
        return Ok(());
    }
    let namespace = ctx.key().namespace().unwrap_or_default();
    let api = resources::untyped::<Pod>(ctx.client(), namespace);
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(ctx.key().name(), &params).await {
        Ok(_) => Ok(()),
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(Error::Remove { key: ctx.key().clone(), source }),
    }
}
