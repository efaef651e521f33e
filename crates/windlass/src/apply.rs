//! Children: what an object's controller wants to exist, and how that becomes so with as few requests as can be.
//!
//! A pure function builds [`Children`]; [`Context::apply`](crate::Context::apply) makes them real and returns
//! [`Applied`]. In between stands [`held`]: no request is sent for a child that already is what is wanted.

use std::{any::Any, collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    object::{Kind, Object, ObjectKey},
};

mod child;
mod child_write;
pub(crate) mod dry_run;
mod held;
mod intent;
mod owned;
mod recall;
mod shared;
mod sight;
pub(crate) mod status;
mod succeed;

pub(crate) use child::{OwnedKind, OwnedStore};
pub(crate) use owned::Owned;
pub(crate) use recall::Recall;
pub(crate) use shared::{Shared, Trigger, encode};
pub(crate) use sight::Onlookers;

type Erased = Arc<dyn Any + Send + Sync>;
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A set of objects of any kinds that one owner wants to exist.
///
/// ```
/// use windlass::{Children, k8s_openapi::api::{apps::v1::Deployment, core::v1::Service}};
///
/// # let (deployment, service) = (Deployment::default(), Service::default());
/// let children = Children::new().with(deployment).with(service);
/// ```
#[derive(Default)]
pub struct Children {
    children: Vec<Box<dyn AnyChild>>,
    keep: bool,
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.children.iter().map(|child| format!("{} {}", child.kind(), child.key())))
            .finish()
    }
}

impl Children {
    /// No children yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a child. It needs a name; its namespace is the owner's unless it has one.
    pub fn with<K: Object>(mut self, child: K) -> Self {
        self.push(child);
        self
    }

    /// Adds a child if there is one.
    pub fn with_some<K: Object>(self, child: Option<K>) -> Self {
        match child {
            Some(child) => self.with(child),
            None => self,
        }
    }

    /// Adds several children of one kind.
    pub fn with_all<K: Object>(mut self, children: impl IntoIterator<Item = K>) -> Self {
        for child in children {
            self.push(child);
        }
        self
    }

    /// Adds a child in place.
    pub fn push<K: Object>(&mut self, child: K) {
        self.children.push(Box::new(child::Child::new(Kind::of::<K>(), child)));
    }

    /// Adds a child of a kind that is known only when the program runs.
    pub fn with_dynamic(mut self, kind: &Kind, child: DynamicObject) -> Self {
        self.children.push(Box::new(child::Child::new(kind.clone(), child)));
        self
    }

    /// Adds a child that its owner cannot own by a reference: one in another namespace, or a cluster-scoped one of a
    /// namespaced owner, such as a ClusterRoleBinding.
    ///
    /// It is applied, watched, repaired and pruned like any other; the controller must declare its kind with
    /// [`owns`](crate::Controller::owns). It bears the label [`OWNER_UID`](crate::owner::OWNER_UID) and the annotation
    /// [`OWNER`](crate::owner::OWNER) in the place of the reference. No garbage collector knows these, so the owner gets
    /// the finalizer [`DETACHED_CHILDREN`](crate::owner::DETACHED_CHILDREN): when it is deleted, its detached children
    /// are, once a run for it has succeeded, and then the finalizer goes.
    pub fn with_detached<K: Object>(mut self, child: K) -> Self {
        self.children.push(Box::new(child::Child::new(Kind::of::<K>(), child).detached()));
        self
    }

    pub(crate) fn has_detached(&self) -> bool {
        self.children.iter().any(|child| child.is_detached())
    }

    /// Leaves children that are no longer wanted alone. Without this call they are deleted.
    pub fn without_pruning(mut self) -> Self {
        self.keep = true;
        self
    }

    /// How many children there are.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The intended objects of one kind, for tests of a pure build function.
    pub fn of<K: Object>(&self) -> Vec<&K> {
        self.children.iter().filter_map(|child| child.object().downcast_ref()).collect()
    }
}

/// The children as the API server has them after an apply.
#[derive(Clone, Default)]
pub struct Applied {
    objects: BTreeMap<(Kind, ObjectKey), Erased>,
    written: usize,
    pruned: usize,
}

impl fmt::Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied")
            .field("objects", &self.objects.keys())
            .field("written", &self.written)
            .field("pruned", &self.pruned)
            .finish()
    }
}

impl Applied {
    /// The live child of that kind and name; the first one, should several namespaces have it.
    pub fn get<K: Object>(&self, name: &str) -> Option<Arc<K>> {
        let kind = Kind::of::<K>();
        self.objects
            .iter()
            .find(|((of, key), _)| *of == kind && key.name() == name)
            .and_then(|(_, object)| object.clone().downcast().ok())
    }

    /// The live children of that kind, ordered by key.
    pub fn all<K: Object>(&self) -> Vec<Arc<K>> {
        let kind = Kind::of::<K>();
        self.objects
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .filter_map(|(_, object)| object.clone().downcast().ok())
            .collect()
    }

    /// The live child of a kind that is known only when the program runs.
    pub fn get_dynamic(&self, kind: &Kind, name: &str) -> Option<Arc<DynamicObject>> {
        self.objects
            .iter()
            .find(|((of, key), _)| of == kind && key.name() == name)
            .and_then(|(_, object)| object.clone().downcast().ok())
    }

    /// How many children needed a request.
    pub fn written(&self) -> usize {
        self.written
    }

    /// How many children were deleted because they are no longer wanted.
    pub fn pruned(&self) -> usize {
        self.pruned
    }

    /// An `Applied` that holds this object, for tests of a pure status function.
    pub fn with<K: Object>(mut self, object: K) -> Self {
        self.objects.insert((Kind::of::<K>(), ObjectKey::of(&object)), Arc::new(object));
        self
    }
}

/// What became of children of which some may have failed; see [`Context::try_apply`](crate::Context::try_apply).
#[derive(Debug)]
pub struct Attempt {
    /// Those that are in place.
    pub applied: Applied,
    /// Why the others are not, in the order of the children. Every error names its child.
    pub failures: Vec<Error>,
}

impl Attempt {
    /// What [`Context::apply`](crate::Context::apply) would have returned: the first failure, if there is one.
    pub fn into_result(self) -> Result<Applied> {
        match self.failures.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(self.applied),
        }
    }
}

/// The owner on whose behalf children are applied.
pub(crate) struct Owner {
    pub(crate) kind: Kind,
    pub(crate) key: ObjectKey,
    pub(crate) reference: OwnerReference,
}

impl Owner {
    fn name_conflict(&self, kind: &Kind, key: &ObjectKey) -> Error {
        let owner = format!("{} {}", self.kind, self.key);
        Error::NameConflict { kind: Box::new(kind.clone()), key: key.clone(), owner }
    }
}

/// A child whose type is known only to itself.
trait AnyChild: Send + Sync {
    fn kind(&self) -> &Kind;
    fn key(&self) -> &ObjectKey;
    fn object(&self) -> &dyn Any;
    /// Whether it has no reference to its owner.
    fn is_detached(&self) -> bool;
    /// The key that the child will have under this owner.
    fn key_under(&self, owner: &Owner) -> Result<ObjectKey>;
    /// The error that the cache already foretells: someone else has an object of this name.
    fn conflict(&self, shared: &Shared, owner: &Owner) -> Option<Error>;
    /// Makes the child real. Returns it, and whether that took a request.
    fn apply<'a>(&'a self, shared: &'a Shared, owner: &'a Owner) -> BoxFuture<'a, Result<(Erased, bool)>>;
}

/// Whether the first failure ends an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Stop,
    GoOn,
}

/// Applies the children, and has the owner looked at again when a name that somebody else has becomes free.
pub(crate) async fn apply(
    shared: &Shared,
    owner: &Owner,
    children: Children,
    on_failure: OnFailure,
) -> Result<Attempt> {
    let wanted = wanted(owner, &children)?;
    // Before the cache is asked: nothing that happens from here on is missed.
    shared.owned.want(&wanted, &owner.key);
    let attempt = apply_all(shared, owner, children, &wanted, on_failure).await;
    let failures = attempt.as_ref().map_or(&[][..], |attempt| &attempt.failures);
    let is_taken = |id: &(Kind, ObjectKey)| {
        let of =
            |e: &Error| matches!(e, Error::NameConflict { kind, key, .. } if **kind == id.0 && *key == id.1);
        failures.iter().any(of)
    };
    for id in wanted.iter().filter(|id| !is_taken(id)) {
        shared.owned.has(&id.0, &id.1, &owner.key);
    }
    attempt
}

/// Applies the children in order, then deletes those of the owned kinds that are no longer wanted, unless a child
/// failed: what it was to replace may still be needed.
async fn apply_all(
    shared: &Shared,
    owner: &Owner,
    children: Children,
    wanted: &[(Kind, ObjectKey)],
    on_failure: OnFailure,
) -> Result<Attempt> {
    let mut attempt = Attempt { applied: Applied::default(), failures: Vec::new() };
    // A set that cannot be made whole is not begun. This asks the cache only, so it costs no request.
    if on_failure == OnFailure::Stop {
        attempt.failures.extend(children.children.iter().find_map(|child| child.conflict(shared, owner)));
        if !attempt.failures.is_empty() {
            return Ok(attempt);
        }
    }
    for (child, id) in children.children.iter().zip(wanted) {
        match child.apply(shared, owner).await {
            Ok((object, written)) => {
                attempt.applied.written += usize::from(written);
                attempt.applied.objects.insert(id.clone(), object);
            }
            Err(error) => {
                attempt.failures.push(error);
                if on_failure == OnFailure::Stop {
                    return Ok(attempt);
                }
            }
        }
    }
    if !children.keep && attempt.failures.is_empty() {
        for kind in shared.owned.all() {
            attempt.applied.pruned += kind.prune(shared, owner, wanted).await?;
        }
    }
    Ok(attempt)
}

/// The kinds and keys of the children, each of which must be there once.
fn wanted(owner: &Owner, children: &Children) -> Result<Vec<(Kind, ObjectKey)>> {
    let mut wanted = Vec::with_capacity(children.len());
    for child in &children.children {
        let key = child.key_under(owner)?;
        if wanted.contains(&(child.kind().clone(), key.clone())) {
            let (kind, reason) = (Box::new(child.kind().clone()), "it is listed twice among the children");
            return Err(Error::InvalidChild { kind, key, reason });
        }
        wanted.push((child.kind().clone(), key));
    }
    Ok(wanted)
}

/// Removes nulls: in an apply a null is a value of its own, and no typed intent means that.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}
