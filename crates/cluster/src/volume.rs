//! Volumes: claims find or get a volume, grow, and are kept as long as Pods use them.
//!
//! No storage is behind any of it: a volume is an object that says which claim has it. [`claims`] and [`volumes`]
//! are the two controllers, [`binding`] decides which volume fits a claim, and [`class`] is the storage class that
//! every cluster has.

use std::{collections::BTreeMap, sync::Arc};

use windlass::{
    Reader,
    k8s_openapi::{
        api::{
            core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
            storage::v1::StorageClass,
        },
        apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
    },
};

use crate::node_affinity;

pub(crate) mod binding;
pub(crate) mod claims;
pub(crate) mod class;
pub(crate) mod ephemeral;
mod expansion;
mod provision;
mod unused;
pub(crate) mod volumes;

/// The node for which a claim that waits for its first consumer gets its volume.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Pods by the claims that they use, as `namespace/name`.
pub(crate) const CLAIM_USERS: &str = "claim-users";

/// The claims that a Pod uses, in its own namespace, and whether they are made for this Pod alone.
pub(crate) fn claims_of(pod: &Pod) -> Vec<(String, bool)> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .into_iter()
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some((claim.claim_name.clone(), false)),
            (None, Some(_)) => Some((ephemeral::claim_name(pod, volume), true)),
            (None, None) => None,
        })
        .collect()
}

/// The names of the claims that a Pod uses.
pub(crate) fn claim_names(pod: &Pod) -> Vec<String> {
    claims_of(pod).into_iter().map(|(name, _)| name).collect()
}

/// Whether a volume can be used on a node.
pub(crate) fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    affinity.is_none_or(|required| node_affinity::selects(required, node))
}

/// The values of [`CLAIM_USERS`].
pub(crate) fn claim_users(pod: &Pod) -> Vec<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    claim_names(pod).into_iter().map(|claim| format!("{namespace}/{claim}")).collect()
}

/// Whether a claim has its volume.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// The storage class of a claim: the default one where it names none. `None` if it wants no class, or has none.
pub(crate) fn class_of(
    claim: &PersistentVolumeClaim,
    cache: &Reader,
) -> windlass::Result<Option<Arc<StorageClass>>> {
    match claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) {
        Some("") => Ok(None),
        Some(name) => cache.get::<StorageClass>(None, name),
        None => Ok(cache.list::<StorageClass>(None)?.into_iter().find(|class| class::is_default(class))),
    }
}

/// Whether a claim of this class gets its volume only when a Pod needs it.
pub(crate) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn storage(amounts: Option<&BTreeMap<String, Quantity>>) -> Option<&Quantity> {
    amounts?.get("storage")
}

/// How much a claim asks for.
fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    storage(claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref())
}

/// How much a volume holds.
fn capacity(volume: &PersistentVolume) -> Option<&Quantity> {
    storage(volume.spec.as_ref()?.capacity.as_ref())
}
