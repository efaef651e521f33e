//! What becomes of one object: it stays, goes, loses owners that are gone, or lets its dependents go first.

use windlass::{
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    kube::{
        Api, Error,
        api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
        core::DynamicObject,
    },
    serde_json::json,
};

use super::{
    Meta, Shared,
    graph::{Deletion, FOREGROUND, Item, ORPHAN},
};
use crate::resources::Resource;

/// Why an object could not be dealt with. It will be tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// An owner is of a kind that is not served, at least not yet.
    #[error("failed to look up the owner of {key}: kind {kind} of {api_version} is not served")]
    UnknownKind {
        /// The dependent.
        key: windlass::ObjectKey,
        /// The owner's kind.
        kind: String,
        /// The owner's group and version.
        api_version: String,
    },
    /// A request failed.
    #[error("failed to {operation} {key}")]
    Request {
        /// What was tried.
        operation: &'static str,
        /// On which object.
        key: windlass::ObjectKey,
        /// What the API server said.
        #[source]
        source: Error,
    },
}

type Result<T> = std::result::Result<T, Failure>;

/// Owners, by what they mean for a dependent.
#[derive(Default)]
struct Owners {
    solid: Vec<OwnerReference>,
    gone: Vec<OwnerReference>,
    waiting: Vec<OwnerReference>,
}

/// Looks at one object.
pub(super) async fn collect(shared: &Shared, uid: &str) -> Result<()> {
    let Some(item) = shared.graph().get(uid).cloned() else { return Ok(()) };
    match item.deletion {
        Deletion::Background => Ok(()),
        Deletion::Orphan => orphan(shared, &item).await,
        Deletion::Foreground => foreground(shared, &item).await,
        Deletion::None if item.owners.is_empty() => Ok(()),
        Deletion::None => {
            let Some(live) = live(shared, &item).await? else { return Ok(()) };
            judge(shared, &item, &live).await
        }
    }
}

/// Decides by the owners of an object whether it stays.
async fn judge(shared: &Shared, item: &Item, live: &ObjectMeta) -> Result<()> {
    let owners = classify(shared, item, live).await?;
    if owners.gone.is_empty() && owners.waiting.is_empty() {
        return Ok(());
    }
    if !owners.solid.is_empty() {
        // References to owners that wait must go too: those owners would wait for ever.
        return set_owners(shared, item, live, &owners.solid).await;
    }
    let dependents: Vec<Item> = shared.graph().dependents(&item.uid).into_iter().cloned().collect();
    let has = |finalizer: &str| live.finalizers.iter().flatten().any(|one| one == finalizer);
    let policy = if !owners.waiting.is_empty() && !dependents.is_empty() {
        if dependents.iter().any(|dependent| dependent.deletion == Deletion::Foreground) {
            unblock(shared, item, live).await?;
        }
        PropagationPolicy::Foreground
    } else if has(ORPHAN) {
        PropagationPolicy::Orphan
    } else if has(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    };
    delete(shared, item, live, policy).await
}

async fn classify(shared: &Shared, item: &Item, live: &ObjectMeta) -> Result<Owners> {
    let mut owners = Owners::default();
    for reference in live.owner_references.iter().flatten() {
        let known = shared.graph().owner(reference, item).map(|owner| owner.deletion);
        let deletion = match known {
            Some(deletion) => Some(deletion),
            // The graph may be late, and so does not prove that an owner is gone.
            None => lookup(shared, item, reference).await?,
        };
        match deletion {
            None => owners.gone.push(reference.clone()),
            Some(Deletion::Foreground) => owners.waiting.push(reference.clone()),
            Some(_) => owners.solid.push(reference.clone()),
        }
    }
    Ok(owners)
}

/// Asks the API server for an owner; `None` if it is gone.
async fn lookup(shared: &Shared, item: &Item, reference: &OwnerReference) -> Result<Option<Deletion>> {
    let OwnerReference { api_version, kind, name, uid, .. } = reference;
    let Some(resource) = shared.resource(api_version, kind) else {
        let (kind, api_version) = (kind.clone(), api_version.clone());
        return Err(Failure::UnknownKind { key: item.key.clone(), kind, api_version });
    };
    let namespace = if resource.namespaced { item.key.namespace() } else { None };
    if resource.namespaced && namespace.is_none() {
        // A cluster-scoped object cannot have a namespaced owner. It is left alone, as Kubernetes does.
        return Ok(Some(Deletion::None));
    }
    let found = api(shared, &resource, namespace).get_opt(name).await;
    let found = found.map_err(|source| Failure::Request {
        operation: "get the owner of",
        key: item.key.clone(),
        source,
    })?;
    let same = found.filter(|found| found.metadata.uid.as_deref() == Some(uid));
    Ok(same.and_then(|found| Item::of(&resource, &found.metadata)).map(|owner| owner.deletion))
}

fn api(shared: &Shared, resource: &Resource, namespace: Option<&str>) -> Api<Meta> {
    match namespace {
        Some(namespace) => Api::namespaced_with(shared.client.clone(), namespace, &resource.api),
        None => Api::all_with(shared.client.clone(), &resource.api),
    }
}

/// The object as the API server has it; `None` if it is gone.
async fn live(shared: &Shared, item: &Item) -> Result<Option<ObjectMeta>> {
    let found = api(shared, &item.resource, item.key.namespace()).get_opt(item.key.name()).await;
    let found = found.map_err(|source| failed("get", item, source))?;
    Ok(found.map(|found| found.metadata).filter(|meta| meta.uid.as_deref() == Some(&*item.uid)))
}

fn failed(operation: &'static str, item: &Item, source: Error) -> Failure {
    Failure::Request { operation, key: item.key.clone(), source }
}

/// Sets the dependents of an object free, then lets it go.
async fn orphan(shared: &Shared, item: &Item) -> Result<()> {
    let dependents: Vec<Item> = shared.graph().dependents(&item.uid).into_iter().cloned().collect();
    for dependent in dependents {
        let Some(meta) = live(shared, &dependent).await? else { continue };
        let mut kept = meta.owner_references.clone().unwrap_or_default();
        kept.retain(|reference| reference.uid != *item.uid);
        set_owners(shared, &dependent, &meta, &kept).await?;
    }
    remove_finalizer(shared, item, ORPHAN).await
}

/// Lets an object go that nothing blocks any more; otherwise sees to what blocks it.
async fn foreground(shared: &Shared, item: &Item) -> Result<()> {
    let blocking: Vec<Item> = shared.graph().blocking(&item.uid).into_iter().cloned().collect();
    if blocking.is_empty() {
        return remove_finalizer(shared, item, FOREGROUND).await;
    }
    let todo = blocking.into_iter().filter(|dependent| dependent.deletion != Deletion::Foreground);
    shared.enqueue(todo.map(|dependent| dependent.uid));
    Ok(())
}

async fn remove_finalizer(shared: &Shared, item: &Item, finalizer: &str) -> Result<()> {
    let Some(meta) = live(shared, item).await? else { return Ok(()) };
    let mut kept = meta.finalizers.clone().unwrap_or_default();
    kept.retain(|one| one != finalizer);
    if meta.finalizers.as_ref().is_some_and(|old| old.len() == kept.len()) {
        return Ok(());
    }
    let kept = if kept.is_empty() { json!(null) } else { json!(kept) };
    patch(shared, item, &meta, "finalizers", kept).await
}

async fn set_owners(
    shared: &Shared,
    item: &Item,
    live: &ObjectMeta,
    owners: &[OwnerReference],
) -> Result<()> {
    if live.owner_references.as_deref().unwrap_or_default() == owners {
        return Ok(());
    }
    let owners = if owners.is_empty() { json!(null) } else { json!(owners) };
    patch(shared, item, live, "ownerReferences", owners).await
}

/// Breaks a circle of objects that wait for each other.
async fn unblock(shared: &Shared, item: &Item, live: &ObjectMeta) -> Result<()> {
    let mut owners = live.owner_references.clone().unwrap_or_default();
    for owner in owners.iter_mut().filter(|owner| owner.block_owner_deletion == Some(true)) {
        owner.block_owner_deletion = Some(false);
    }
    set_owners(shared, item, live, &owners).await
}

async fn patch(
    shared: &Shared,
    item: &Item,
    live: &ObjectMeta,
    field: &str,
    value: windlass::serde_json::Value,
) -> Result<()> {
    let body = json!({ "metadata": {
        "uid": live.uid, "resourceVersion": live.resource_version, field: value,
    }});
    let params =
        PatchParams { field_manager: Some("kube-controller-manager".into()), ..PatchParams::default() };
    let api = api(shared, &item.resource, item.key.namespace());
    match api.patch_metadata(item.key.name(), &params, &Patch::Merge(body)).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(source) => Err(failed("patch", item, source)),
    }
}

async fn delete(shared: &Shared, item: &Item, live: &ObjectMeta, policy: PropagationPolicy) -> Result<()> {
    let api: Api<DynamicObject> = match item.key.namespace() {
        Some(namespace) => Api::namespaced_with(shared.client.clone(), namespace, &item.resource.api),
        None => Api::all_with(shared.client.clone(), &item.resource.api),
    };
    let params = DeleteParams {
        propagation_policy: Some(policy),
        // As it was when it was judged: whoever gave it another owner since then has saved it.
        preconditions: Some(Preconditions {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    match api.delete(item.key.name(), &params).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        // Changed in between: it is judged again.
        Err(source) => Err(failed("delete", item, source)),
    }
}
