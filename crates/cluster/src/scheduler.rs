//! The scheduler: puts each new Pod on the best node that will have it, lets more important Pods take the place of
//! others, or says why there is no node.
//!
//! Enters: Pods without a node, and the Nodes with what runs on them. Leaves: bindings, the `PodScheduled`
//! condition, preempted Pods and events. The [`decision`] makes no request: rules that must be kept are in
//! [`filters`], preferences in [`scores`], and who makes room for whom in [`preemption`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reader, Reconciler, Watch,
    k8s_openapi::{
        api::{
            core::v1::{
                Binding, Namespace, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
                PodCondition, PodStatus,
            },
            policy::v1::PodDisruptionBudget,
            storage::v1::StorageClass,
        },
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    },
    kube::api::PostParams,
    owner, rbac,
};

use crate::{
    pods::{self, SCHEDULED},
    resources, volume,
};

mod decision;
pub(crate) mod filters;
mod host;
mod message;
mod preemption;
mod requests;
mod scores;
pub(crate) mod taints;
mod terms;

use decision::{Decision, Nominated, Scene};
use filters::{Incoming, volumes::Claims};
use host::{Host, Memory, Resident};
use scores::Siblings;
use terms::{Namespaces, Terms};

/// The scheduler that Pods ask for unless they ask for another.
const NAME: &str = "default-scheduler";

/// Pods by the node that they are on.
const ON_NODE: &str = "scheduler-node";
/// Pods without a node, under one key. Those count too that are just being looked at: what changes meanwhile may be what
/// they need, and nothing else would tell them.
const WAITING: &str = "scheduler-waiting";
/// Those of them to which it matters what other Pods run where.
const SOCIAL: &str = "scheduler-social";
/// Those of them that have claims.
const CLAIMING: &str = "scheduler-claiming";
/// Those of them for which room was made on a node.
const NOMINATED: &str = "scheduler-nominated";
/// Pods on nodes whose affinity or anti-affinity chooses namespaces by their labels.
const FAR_SIGHTED: &str = "scheduler-far-sighted";

/// Kinds whose Pods are spread over nodes and zones without having been told to.
const SPREAD: [&str; 3] = ["ReplicaSet", "StatefulSet", "ReplicationController"];

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
        .writes_as("kube-scheduler")
        .filter(Predicate::new(|_: &Pod, new: &Pod| is_pending(new)))
        .watches_with(Watch::<Node>::new().filter(Predicate::new(offers_changed)), |_: &Node, cache| {
            waiting(WAITING, cache)
        })
        .watches_with(
            // A Pod that is gone or has ended makes room; one that comes, or changes its labels, may be company.
            Watch::<Pod>::new().filter(Predicate::new(|old: &Pod, new: &Pod| {
                pods::is_finished(new)
                    || pods::node(old) != pods::node(new)
                    || old.metadata.labels != new.metadata.labels
            })),
            |pod: &Pod, cache| match pods::node(pod) {
                Some(_) if !pods::is_active(pod) => waiting(WAITING, cache),
                Some(_) => waiting(SOCIAL, cache),
                None => Vec::new(),
            },
        )
        .watches_with(
            Watch::<Namespace>::new().filter(Predicate::labels_changed()),
            |_: &Namespace, cache| waiting(SOCIAL, cache),
        )
        .watches::<PersistentVolumeClaim, _>(|claim, cache| {
            let users = cache.indexed::<Pod>(volume::CLAIM_USERS, &ObjectKey::of(claim).to_string());
            let waiting = |pod: &&Arc<Pod>| is_pending(pod);
            users.unwrap_or_default().iter().filter(waiting).map(|pod| ObjectKey::of(&**pod)).collect()
        })
        // A class or a volume that comes late is what somebody waits for.
        .watches::<StorageClass, _>(|_, cache| waiting(CLAIMING, cache))
        .watches::<PersistentVolume, _>(|_, cache| waiting(CLAIMING, cache))
        .reads::<PodDisruptionBudget>()
        .index::<Pod>(volume::CLAIM_USERS, volume::claim_users)
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .index::<Pod>(WAITING, |pod| marked(is_pending(pod)))
        .index::<Pod>(SOCIAL, |pod| marked(is_pending(pod) && is_social(pod)))
        .index::<Pod>(CLAIMING, |pod| marked(is_pending(pod) && !volume::claims_of(pod).is_empty()))
        .index::<Pod>(NOMINATED, |pod| marked(is_pending(pod) && nominated_node(pod).is_some()))
        .index::<Pod>(FAR_SIGHTED, |pod| marked(pods::node(pod).is_some() && is_far_sighted(pod)))
        .permits([
            rbac::rule("", ["pods/binding"], ["create"]),
            rbac::rule("", ["pods"], ["delete"]),
            rbac::rule("", ["persistentvolumeclaims"], ["patch"]),
        ])
}

/// The value of an index that only tells whether a Pod is in it.
fn marked(is_in: bool) -> Vec<String> {
    is_in.then(String::new).into_iter().collect()
}

fn is_pending(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or(NAME);
    let gated = spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    pods::node(pod).is_none() && pods::is_active(pod) && scheduler == NAME && !gated
}

/// Whether other Pods decide where this one can go.
fn is_social(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let spread = spec.and_then(|spec| spec.topology_spread_constraints.as_ref());
    spread.is_some_and(|all| !all.is_empty()) || !Terms::of(pod).is_empty()
}

fn is_far_sighted(pod: &Pod) -> bool {
    Terms::of(pod).all().any(terms::Term::looks_at_namespaces)
}

/// The node on which room was made for a Pod.
fn nominated_node(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref().filter(|name| !name.is_empty())
}

/// The Pods of an index, the most important first.
fn waiting(index: &str, cache: &Reader) -> Vec<ObjectKey> {
    let mut pods = cache.indexed::<Pod>(index, "").unwrap_or_default();
    pods.sort_by_key(|pod| std::cmp::Reverse(host::priority(pod)));
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
    memory: Memory,
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

    /// Every node with the Pods that are on it, those included that the cache does not show there yet.
    fn hosts(&self, ctx: &Context<Pod>) -> windlass::Result<Vec<Host>> {
        let mut assumed = self.assumed_by_node(ctx.cache())?;
        let mut hosts = Vec::new();
        for node in ctx.list::<Node>(None)? {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let mut running = ctx.indexed::<Pod>(ON_NODE, name)?;
            running.extend(assumed.remove(name).unwrap_or_default());
            hosts.push(self.memory.host(node, running));
        }
        self.memory.keep(&hosts);
        Ok(hosts)
    }

    /// How many Pods of the same owner are on each node, if they are to be spread.
    fn siblings(&self, pod: &Pod, cache: &Reader) -> windlass::Result<Siblings> {
        let mut found = Siblings::new();
        let owner = owner::controller_of(&pod.metadata).filter(|owner| SPREAD.contains(&owner.kind.as_str()));
        let Some(owner) = owner else { return Ok(found) };
        for sibling in cache.owned_by::<Pod>(&owner.uid)? {
            if let Some(node) = pods::node(&sibling).filter(|_| pods::is_active(&sibling)) {
                *found.entry(node.to_owned()).or_default() += 1;
            }
        }
        for (node, sibling) in self.assumed().values() {
            if owner::is_controlled_by(&sibling.metadata, &owner.uid) {
                *found.entry(node.clone()).or_default() += 1;
            }
        }
        Ok(found)
    }

    async fn schedule(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<(), Error> {
        let hosts = self.hosts(ctx)?;
        let needs = match filters::volumes::read(&pod, ctx)? {
            Claims::Usable(needs) => needs,
            Claims::Refused(why) => {
                return explain(&pod, &message::refused_by_all(&why, hosts.len()), None, ctx).await;
            }
        };
        let claims: Vec<_> = needs.waiting().cloned().collect();
        let namespaces = namespaces(&pod, ctx)?;
        let incoming = Incoming::new(&pod, &hosts, &namespaces, needs);
        let scene = Scene {
            nominated: Nominated::beside(&incoming.own, ctx.indexed::<Pod>(NOMINATED, "")?),
            siblings: self.siblings(&pod, ctx.cache())?,
            budgets: &ctx.list::<PodDisruptionBudget>(None)?,
            incoming,
            hosts: &hosts,
            namespaces: &namespaces,
        };
        match scene.decide() {
            Decision::Place(node) if !claims.is_empty() => {
                filters::volumes::select(&claims, &node, ctx).await?;
            }
            Decision::Place(node) => {
                if bind(&pod, &node, ctx).await? {
                    self.assumed().insert(ctx.key().clone(), (node, pod));
                }
            }
            Decision::Preempt { node, victims, message } => {
                make_room(&pod, &node, &victims, ctx).await?;
                explain(&pod, &message, Some(&node), ctx).await?;
            }
            Decision::Refuse { message, keeps } => {
                explain(&pod, &message, nominated_node(&pod).filter(|_| keeps), ctx).await?;
            }
        }
        Ok(())
    }
}

/// The namespaces with their labels, if a term asks for them; else only the Pod's own.
fn namespaces(pod: &Pod, ctx: &Context<Pod>) -> windlass::Result<Namespaces> {
    let mut found = Namespaces::new();
    let far_sighted = is_far_sighted(pod);
    if !far_sighted && ctx.indexed::<Pod>(FAR_SIGHTED, "")?.is_empty() {
        return Ok(found);
    }
    for namespace in ctx.list::<Namespace>(None)? {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        if far_sighted || Some(&name) == pod.metadata.namespace.as_ref() {
            found.insert(name, namespace.metadata.labels.clone().unwrap_or_default());
        }
    }
    Ok(found)
}

impl Reconciler for Scheduler {
    type Resource = Pod;
    type Error = Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, Error> {
        // A Pod of the same name that went before says nothing of this one.
        let assumed =
            self.assumed().get(ctx.key()).is_some_and(|(_, known)| known.metadata.uid == pod.metadata.uid);
        if is_pending(&pod) && !assumed {
            Box::pin(self.schedule(pod, ctx)).await?;
        }
        Ok(Action::await_change())
    }
}

/// Ends the Pods that make room for a more important one, and tells those that waited for the same node.
async fn make_room(
    pod: &Arc<Pod>,
    node: &str,
    victims: &[Arc<Resident>],
    ctx: &Context<Pod>,
) -> Result<(), Error> {
    for victim in victims {
        let victim = &*victim.pod;
        let mut status = victim.status.clone().unwrap_or_default();
        let conditions = status.conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != "DisruptionTarget");
        conditions.push(PodCondition {
            type_: "DisruptionTarget".into(),
            status: "True".into(),
            reason: Some("PreemptionByScheduler".into()),
            message: Some(format!("{NAME}: preempting to accommodate a higher priority pod")),
            last_transition_time: Some(Time(ctx.now())),
            observed_generation: victim.metadata.generation,
            ..PodCondition::default()
        });
        ctx.patch_status(victim, &status).await?;
        ctx.delete(victim).await?;
        let note = format!("Preempted by pod {} on node {node}", pods::uid(pod));
        ctx.event_about(victim, Event::normal("Preempted", note).action("Preempting").related(&**pod));
    }
    // Who mattered less and was to have the node must look for another one.
    for other in ctx.indexed::<Pod>(NOMINATED, "")? {
        if nominated_node(&other) == Some(node) && host::priority(&other) < host::priority(pod) {
            let status = other.status.clone().unwrap_or_default();
            ctx.patch_status(&*other, &PodStatus { nominated_node_name: None, ..status }).await?;
        }
    }
    Ok(())
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
    // Room was made, and is taken now. Before the binding: who dies in between is asked again.
    if nominated_node(pod).is_some() {
        let status = pod.status.clone().unwrap_or_default();
        ctx.patch_status(pod, &PodStatus { nominated_node_name: None, ..status }).await?;
    }
    let api = resources::untyped::<Pod>(ctx.client(), namespace);
    let params = PostParams { field_manager: Some(ctx.field_manager().to_owned()), ..PostParams::default() };
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

/// Writes why no node will do, and on which one room is being made, if that is news.
async fn explain(pod: &Pod, message: &str, nominated: Option<&str>, ctx: &Context<Pod>) -> Result<(), Error> {
    let current = pods::condition(pod, SCHEDULED);
    if current.is_some_and(|current| current.message.as_deref() == Some(message))
        && nominated_node(pod) == nominated
    {
        return Ok(());
    }
    let since =
        current.filter(|current| current.status == "False").and_then(|c| c.last_transition_time.clone());
    let mut status = pod.status.clone().unwrap_or_default();
    status.nominated_node_name = nominated.map(str::to_owned);
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
