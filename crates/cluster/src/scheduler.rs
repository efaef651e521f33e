//! The scheduler: puts each new Pod on a node where it fits, or says why there is none.
//!
//! Enters: Pods without a node, and the Nodes with what runs on them. Leaves: bindings, the `PodScheduled`
//! condition and events. Whether a Pod fits a node is decided in [`fit`], which makes no request.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reader, Reconciler, Watch,
    k8s_openapi::{
        api::{
            core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod, PodCondition},
            storage::v1::StorageClass,
        },
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    },
    kube::api::PostParams,
    rbac,
};

use crate::{
    pods::{self, SCHEDULED},
    resources,
    scheduler::volumes::Volumes,
    volume,
};

pub(crate) mod affinity;
pub(crate) mod fit;
pub(crate) mod ports;
mod volumes;

/// The scheduler that Pods ask for unless they ask for another.
const NAME: &str = "default-scheduler";

/// Pods by the node that they are on.
const ON_NODE: &str = "scheduler-node";
/// Pods without a node, under one key. Those count too that are just being looked at: what changes meanwhile may be what
/// they need, and nothing else would tell them.
const WAITING: &str = "scheduler-waiting";

/// Why a Pod is not scheduled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cache or a status write failed.
    #[error(transparent)]
    Context(#[from] windlass::Error),
    /// The binding was refused.
    #[error("failed to bind Pod {key} to node {node}")]
    Bind {
        /// The Pod.
        key: ObjectKey,
        /// The node.
        node: String,
        /// What the API server said.
        #[source]
        source: windlass::kube::Error,
    },
}

impl windlass::ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Context(error) => error.category(),
            Self::Bind { .. } => "FailedScheduling",
        }
    }
}

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Scheduler> {
    Controller::new(Scheduler::default())
        .name(NAME)
        .filter(Predicate::new(|_: &Pod, new: &Pod| is_pending(new)))
        .watches_with(Watch::<Node>::new().filter(Predicate::new(offers_changed)), |_: &Node, cache| {
            waiting(cache)
        })
        .watches_with(
            // Only a Pod that goes or ends makes room.
            Watch::<Pod>::new().filter(Predicate::new(|_: &Pod, new: &Pod| !pods::is_active(new))),
            |pod: &Pod, cache| if pods::node(pod).is_some() { waiting(cache) } else { Vec::new() },
        )
        .watches::<PersistentVolumeClaim, _>(|claim, cache| {
            let users = cache.indexed::<Pod>(volume::CLAIM_USERS, &ObjectKey::of(claim).to_string());
            let waiting = |pod: &&Arc<Pod>| is_pending(pod);
            users.unwrap_or_default().iter().filter(waiting).map(|pod| ObjectKey::of(&**pod)).collect()
        })
        .reads::<StorageClass>()
        .index::<Pod>(volume::CLAIM_USERS, volume::claim_users)
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .index::<Pod>(WAITING, |pod| is_pending(pod).then(String::new).into_iter().collect())
        .permits([
            rbac::rule("", ["pods/binding"], ["create"]),
            rbac::rule("", ["persistentvolumeclaims"], ["patch"]),
        ])
}

fn is_pending(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or(NAME);
    let gated = spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    pods::node(pod).is_none() && pods::is_active(pod) && scheduler == NAME && !gated
}

fn waiting(cache: &Reader) -> Vec<ObjectKey> {
    let pods = cache.indexed::<Pod>(WAITING, "").unwrap_or_default();
    pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
}

/// Whether a node changed in what it offers; heartbeats do not count.
fn offers_changed(old: &Node, new: &Node) -> bool {
    let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    old.spec != new.spec || old.metadata.labels != new.metadata.labels || allocatable(old) != allocatable(new)
}

/// Schedules Pods.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// Pods that were bound and that the cache still shows without a node: they take room already.
    assumed: Mutex<BTreeMap<ObjectKey, (String, Arc<Pod>)>>,
}

impl Scheduler {
    fn assumed(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Arc<Pod>)>> {
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the Pods of which the cache knows by now, and returns the others by node.
    fn assumed_by_node(&self, cache: &Reader) -> windlass::Result<BTreeMap<String, Vec<Arc<Pod>>>> {
        let mut assumed = self.assumed();
        let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        let mut known = Vec::new();
        for (key, (node, pod)) in &*assumed {
            let cached = cache.get::<Pod>(key.namespace(), key.name())?;
            let waits = cached.is_some_and(|cached| {
                cached.metadata.uid == pod.metadata.uid && pods::node(&cached).is_none()
            });
            if waits {
                by_node.entry(node.clone()).or_default().push(pod.clone());
            } else {
                known.push(key.clone());
            }
        }
        for key in known {
            assumed.remove(&key);
        }
        Ok(by_node)
    }
}

impl Reconciler for Scheduler {
    type Resource = Pod;
    type Error = Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, Error> {
        if !is_pending(&pod) {
            return Ok(Action::await_change());
        }
        let mut assumed = self.assumed_by_node(ctx.cache())?;
        if self.assumed().contains_key(ctx.key()) {
            return Ok(Action::await_change());
        }
        let claims = match volumes::check(&pod, ctx)? {
            Volumes::Ready => Vec::new(),
            Volumes::Waiting(claims) => claims,
            Volumes::Refused(why) => {
                explain(&pod, &fit::refused_by_all(&why, ctx.list::<Node>(None)?.len()), ctx).await?;
                return Ok(Action::await_change());
            }
        };
        let mut candidates = Vec::new();
        let mut refusals = Vec::new();
        for node in ctx.list::<Node>(None)? {
            let name = node.metadata.name.clone().unwrap_or_default();
            let mut running = ctx.indexed::<Pod>(ON_NODE, &name)?;
            running.extend(assumed.remove(&name).unwrap_or_default());
            match fit::check(&pod, &node, &running) {
                Ok(()) => candidates.push((running.len(), name)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        // The emptiest node, and the first of equals.
        match candidates.into_iter().min() {
            Some((_, node)) if !claims.is_empty() => volumes::select(&claims, &node, ctx).await?,
            Some((_, node)) => {
                if bind(&pod, &node, ctx).await? {
                    self.assumed().insert(ctx.key().clone(), (node, pod));
                }
            }
            None => explain(&pod, &fit::message(&refusals), ctx).await?,
        }
        Ok(Action::await_change())
    }
}

/// Binds a Pod; false if it is gone or somebody else was faster.
async fn bind(pod: &Pod, node: &str, ctx: &Context<Pod>) -> Result<bool, Error> {
    let (namespace, name) = (ctx.key().namespace().unwrap_or_default(), ctx.key().name());
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let api = resources::untyped::<Pod>(ctx.client(), namespace);
    let params = PostParams { field_manager: Some("kube-scheduler".into()), ..PostParams::default() };
    let bound: Result<windlass::kube::core::Status, _> =
        api.create_subresource("binding", name, &params, &binding).await;
    match bound {
        Ok(_) => {
            let note = format!("Successfully assigned {namespace}/{name} to {node}");
            ctx.event(Event::normal("Scheduled", note).action("Binding"));
            Ok(true)
        }
        // Gone, or bound by somebody else: the watch will tell.
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(source) => Err(Error::Bind { key: ctx.key().clone(), node: node.to_owned(), source }),
    }
}

/// Writes why no node will do, if that is news.
async fn explain(pod: &Pod, message: &str, ctx: &Context<Pod>) -> Result<(), Error> {
    let current = pods::condition(pod, SCHEDULED);
    if current.is_some_and(|current| current.message.as_deref() == Some(message)) {
        return Ok(());
    }
    let since =
        current.filter(|current| current.status == "False").and_then(|c| c.last_transition_time.clone());
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != SCHEDULED);
    conditions.push(PodCondition {
        type_: SCHEDULED.into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        message: Some(message.to_owned()),
        last_transition_time: Some(since.unwrap_or(Time(ctx.now()))),
        observed_generation: pod.metadata.generation,
        last_probe_time: None,
    });
    ctx.patch_status(pod, &status).await?;
    ctx.event(Event::warning("FailedScheduling", message).action("Scheduling"));
    Ok(())
}
