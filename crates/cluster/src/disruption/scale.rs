//! How many Pods there should be: what the controllers of some Pods ask for together.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use windlass::{
    Context, Reader,
    k8s_openapi::{
        api::{
            apps::v1::{Deployment, ReplicaSet, StatefulSet},
            core::v1::{Pod, ReplicationController},
            policy::v1::PodDisruptionBudget,
        },
        apimachinery::pkg::apis::meta::v1::OwnerReference,
    },
    kube::{
        Api, Error,
        api::DynamicObject,
        core::{ApiResource, GroupVersionKind},
        discovery,
    },
    owner,
};

/// What the controllers of some Pods ask for together.
pub(super) struct Scale {
    pub(super) replicas: i32,
    /// Whether nothing controls one of the Pods.
    pub(super) unmanaged: bool,
}

/// Asks controllers for their size, those of custom kinds by their `/scale`.
#[derive(Default)]
pub(super) struct Scales {
    /// Where the kinds are served that were asked before.
    kinds: Mutex<BTreeMap<(String, String), ApiResource>>,
}

/// The uid of a controller and how many Pods it asks for.
type Size = (String, i32);

impl Scales {
    /// The size of all controllers of some Pods, or why it cannot be told.
    pub(super) async fn of(
        &self,
        selected: &[Arc<Pod>],
        ctx: &Context<PodDisruptionBudget>,
    ) -> windlass::Result<Result<Scale, String>> {
        let mut asked: BTreeSet<&str> = BTreeSet::new();
        let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
        let mut unmanaged = false;
        for pod in selected {
            let Some(controller) = owner::controller_of(&pod.metadata) else {
                unmanaged = true;
                continue;
            };
            if !asked.insert(&controller.uid) {
                continue;
            }
            let namespace = pod.metadata.namespace.as_deref();
            let size = match known(controller, namespace, ctx.cache())? {
                Known::Size(size) => size,
                Known::Other => match self.custom(controller, namespace, ctx).await? {
                    Ok(size) => size,
                    Err(why) => return Ok(Err(why)),
                },
            };
            match size {
                Some((uid, replicas)) => drop(sizes.insert(uid, replicas)),
                None => {
                    let name = pod.metadata.name.as_deref().unwrap_or_default();
                    return Ok(Err(format!("found no controllers for pod \"{name}\"")));
                }
            }
        }
        let replicas = sizes.values().fold(0, |sum: i32, one| sum.saturating_add(*one));
        Ok(Ok(Scale { replicas, unmanaged }))
    }

    /// The size of anything that has one. The inner error says why a kind has none.
    async fn custom(
        &self,
        controller: &OwnerReference,
        namespace: Option<&str>,
        ctx: &Context<PodDisruptionBudget>,
    ) -> windlass::Result<Result<Option<Size>, String>> {
        let key = (controller.api_version.clone(), controller.kind.clone());
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let resource = match known {
            Some(resource) => resource,
            None => {
                let (group, version) = key.0.split_once('/').unwrap_or(("", &key.0));
                let kind = GroupVersionKind::gvk(group, version, &key.1);
                match discovery::pinned_kind(ctx.client(), &kind).await {
                    Ok((resource, _)) => resource,
                    Err(error) => return Ok(Err(error.to_string())),
                }
            }
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(ctx.client().clone(), namespace.unwrap_or_default(), &resource);
        let scale = match api.get_scale(&controller.name).await {
            Ok(scale) => scale,
            Err(Error::Api(status)) if matches!(status.code, 404 | 405) => {
                self.kinds.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                return Ok(match api.get_opt(&controller.name).await? {
                    Some(_) => {
                        let group = if resource.group.is_empty() { "" } else { "." };
                        let kind = format!("{}{group}{}", resource.plural, resource.group);
                        Err(format!("{kind} does not implement the scale subresource"))
                    }
                    None => Ok(None),
                });
            }
            Err(error) => return Err(error.into()),
        };
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(key, resource);
        let replicas = scale.spec.and_then(|spec| spec.replicas).unwrap_or(0);
        let same = scale.metadata.uid.is_none_or(|uid| uid == controller.uid);
        Ok(Ok(same.then(|| (controller.uid.clone(), replicas))))
    }
}

/// What the cache knows of a controller.
enum Known {
    /// Its size, or that it is not there.
    Size(Option<Size>),
    /// It is of a kind that is not cached.
    Other,
}

fn known(controller: &OwnerReference, namespace: Option<&str>, cache: &Reader) -> windlass::Result<Known> {
    let (name, uid) = (&controller.name, controller.uid.clone());
    let size = match (controller.api_version.as_str(), controller.kind.as_str()) {
        ("apps/v1", "ReplicaSet") => match cache.get::<ReplicaSet>(namespace, name)? {
            Some(set) => match owner::controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment")
            {
                Some(owner) => cache
                    .get::<Deployment>(namespace, &owner.name)?
                    .map(|deployment| (owner.uid.clone(), deployment.spec.replicas.unwrap_or(1))),
                None => Some((uid, set.spec.replicas.unwrap_or(1))),
            },
            None => None,
        },
        ("apps/v1", "StatefulSet") => {
            cache.get::<StatefulSet>(namespace, name)?.map(|set| (uid, set.spec.replicas.unwrap_or(1)))
        }
        ("v1", "ReplicationController") => cache
            .get::<ReplicationController>(namespace, name)?
            .map(|found| (uid, found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1))),
        _ => return Ok(Known::Other),
    };
    Ok(Known::Size(size))
}
