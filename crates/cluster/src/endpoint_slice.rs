//! EndpointSlices and Endpoints: the addresses behind each Service.
//!
//! Enters: a Service with a selector and the Pods that it selects. Leaves: its slices, written only where they
//! differ. Which endpoints there are and how they are cut into slices is decided in [`build`], without a request.

use std::{collections::BTreeSet, sync::Arc};

use windlass::{
    Action, Context, Controller, ObjectKey, Predicate, Reader, Reconciler, Watch,
    k8s_openapi::api::{
        core::v1::{Endpoints, Node, Pod, Service},
        discovery::v1::EndpointSlice,
    },
};

use crate::{pods, selector};

mod build;
mod endpoints;
pub(crate) mod mirroring;

/// Pods and Services by namespace and one label: a Service is found by the labels of a Pod, and the other way
/// round, without looking at all of them.
const BY_LABEL: &str = "endpointslice-label";

/// Pods by the node that they are on.
const ON_NODE: &str = "endpointslice-node";

/// The label that says in which zone a node is.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Slices> {
    Controller::new(Slices)
        .name("endpointslice-controller")
        .core_events("endpoint-slice-controller")
        .owns::<EndpointSlice>()
        .watches::<Pod, _>(services)
        // A node that comes without a zone says nothing new.
        .watches_with(
            Watch::<Node>::new().filter(Predicate::new(|old: &Node, new: &Node| zone(old) != zone(new))),
            |node: &Node, cache| services_on(node, cache),
        )
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .watches::<Endpoints, _>(|endpoints, _| {
            // Those whose Service went while nobody looked too: their key leads to `deleted`.
            let own = endpoints::is_own(endpoints);
            own.then(|| ObjectKey::of(endpoints)).into_iter().collect()
        })
        .index::<Pod>(BY_LABEL, |pod| {
            let labels = pod.metadata.labels.iter().flatten();
            labels.map(|(key, value)| place(pod.metadata.namespace.as_deref(), key, value)).collect()
        })
        .index::<Service>(BY_LABEL, |service| first_label(service).into_iter().collect())
        .concurrency(4)
        .permits([windlass::rbac::rule("", ["endpoints"], ["create", "patch", "delete"])])
}

fn place(namespace: Option<&str>, key: &str, value: &str) -> String {
    format!("{}/{key}={value}", namespace.unwrap_or_default())
}

fn first_label(service: &Service) -> Option<String> {
    let (key, value) = service.spec.as_ref()?.selector.as_ref()?.first_key_value()?;
    Some(place(service.metadata.namespace.as_deref(), key, value))
}

/// The Services that select a Pod.
fn services(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref();
    let mut found = Vec::new();
    for (key, value) in pod.metadata.labels.iter().flatten() {
        let services = cache.indexed::<Service>(BY_LABEL, &place(namespace, key, value)).unwrap_or_default();
        let selecting = services.iter().filter(|service| {
            let wanted = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            selector::contains(wanted, pod.metadata.labels.as_ref())
        });
        found.extend(selecting.map(|service| ObjectKey::of(&**service)));
    }
    found
}

/// Keeps the slices of Services.
pub(crate) struct Slices;

impl Reconciler for Slices {
    type Resource = Service;
    type Error = windlass::Error;

    async fn reconcile(&self, service: Arc<Service>, ctx: &Context<Service>) -> windlass::Result<Action> {
        let Some(place) = first_label(&service).filter(|_| !pods::is_terminating(&service.metadata)) else {
            // Without a selector the slices are somebody else's.
            return Ok(Action::await_change());
        };
        let external =
            service.spec.as_ref().is_some_and(|spec| spec.type_.as_deref() == Some("ExternalName"));
        // A name has no slices; those from before it was one stay, as they do in Kubernetes.
        if external {
            return Ok(Action::await_change());
        }
        let wanted = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let mut selected = ctx.indexed::<Pod>(BY_LABEL, &place)?;
        selected.retain(|pod| selector::contains(wanted, pod.metadata.labels.as_ref()));
        let existing = ctx.owned::<EndpointSlice>()?;
        let plan = build::plan(&service, &selected, &existing, &zones(&selected, ctx)?);
        let whole = endpoints::build(&service, &selected);
        let done = async {
            carry_out(plan, ctx).await?;
            mirror(whole, ctx).await
        };
        crate::retry_conflicts(done.await.map(|()| Action::await_change()))
    }

    async fn deleted(&self, key: &ObjectKey, ctx: &Context<Service>) -> windlass::Result<()> {
        // Nothing owns the Endpoints of a Service: they have its name, and go with it.
        match ctx.get::<Endpoints>(key.namespace(), key.name())? {
            Some(endpoints) if endpoints::is_own(&endpoints) => ctx.delete(&*endpoints).await,
            _ => Ok(()),
        }
    }
}

/// The zones of the nodes that some Pods are on.
fn zones(selected: &[Arc<Pod>], ctx: &Context<Service>) -> windlass::Result<build::Zones> {
    let mut zones = build::Zones::new();
    let nodes: BTreeSet<&str> = selected.iter().filter_map(|pod| pods::node(pod)).collect();
    for name in nodes {
        let node = ctx.get::<Node>(None, name)?;
        let zone = node.as_ref().and_then(|node| zone(node));
        zones.extend(zone.map(|zone| (name.to_owned(), zone.to_owned())));
    }
    Ok(zones)
}

fn zone(node: &Node) -> Option<&str> {
    node.metadata.labels.as_ref()?.get(ZONE).map(String::as_str)
}

/// The Services with Pods on a node.
fn services_on(node: &Node, cache: &Reader) -> Vec<ObjectKey> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let there = cache.indexed::<Pod>(ON_NODE, name).unwrap_or_default();
    let mut found: Vec<ObjectKey> = there.iter().flat_map(|pod| services(pod, cache)).collect();
    found.sort();
    found.dedup();
    found
}

/// Writes the Endpoints of a Service, if they are others than they were.
async fn mirror(wanted: Endpoints, ctx: &Context<Service>) -> windlass::Result<()> {
    match ctx.get::<Endpoints>(ctx.key().namespace(), ctx.key().name())? {
        Some(current) => {
            let change = |endpoints: &mut Endpoints| {
                endpoints.subsets = wanted.subsets;
                endpoints.metadata.labels = wanted.metadata.labels;
            };
            ctx.modify(&*current, change).await.map(drop)
        }
        None => match ctx.create(wanted).await {
            // The namespace went in between.
            Err(error) if error.status().is_some_and(|status| matches!(status.code, 403 | 404)) => Ok(()),
            created => created.map(drop),
        },
    }
}

async fn carry_out(plan: build::Plan, ctx: &Context<Service>) -> windlass::Result<()> {
    for (old, new) in plan.update {
        ctx.modify(&*old, |slice| *slice = new).await?;
    }
    for slice in plan.create {
        match ctx.create_child(slice).await {
            // The namespace went in between.
            Err(error) if error.status().is_some_and(|status| matches!(status.code, 403 | 404)) => {}
            created => drop(created?),
        }
    }
    for slice in plan.delete {
        ctx.delete(&*slice).await?;
    }
    Ok(())
}
