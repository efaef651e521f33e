//! Owner references: who controls an object, and making a child belong to its owner.

use crate::object::{Kind, Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// The owner that controls an object; at most one does.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

/// Whether the object with this uid controls the object.
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// The reference by which `owner` controls its children: `controller` and `blockOwnerDeletion` are set.
///
/// `None` if the owner has no name or no uid, which is so until the API server has stored it.
pub fn controller_reference<K: Object>(owner: &K) -> Option<OwnerReference> {
    controller_reference_of(&Kind::of::<K>(), owner.meta())
}

/// As [`controller_reference`], for an owner whose kind is known only when the program runs.
pub fn controller_reference_of(kind: &Kind, meta: &ObjectMeta) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        name: meta.name.clone()?,
        uid: meta.uid.clone().filter(|uid| !uid.is_empty())?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

/// Makes `owner` the controller of the object, replacing an older reference to the same uid.
pub fn set_controller(meta: &mut ObjectMeta, owner: OwnerReference) {
    let owners = meta.owner_references.get_or_insert_default();
    owners.retain(|existing| existing.uid != owner.uid);
    owners.push(owner);
}

/// The key of the object of kind `R` that controls the child, if one does.
pub fn controller_key<R: Object>(child: &ObjectMeta) -> Option<ObjectKey> {
    controller_key_of(&Kind::of::<R>(), child)
}

/// The key of the object of a kind that controls the child, if one does.
pub fn controller_key_of(kind: &Kind, child: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller_of(child)?;
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if owner.kind != kind.kind || group != kind.group {
        return None;
    }
    let namespace = if kind.namespaced { child.namespace.as_deref() } else { None };
    Some(ObjectKey::new(namespace, &owner.name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::{Node, Pod},
    };

    use super::*;

    fn deployment() -> Deployment {
        let mut deployment = Deployment::default();
        deployment.metadata.name = Some("web".into());
        deployment.metadata.namespace = Some("shop".into());
        deployment.metadata.uid = Some("d1".into());
        deployment
    }

    #[test]
    fn a_child_leads_to_its_controller() {
        let mut child = ObjectMeta { namespace: Some("shop".into()), ..ObjectMeta::default() };
        set_controller(&mut child, controller_reference(&deployment()).unwrap());
        assert_eq!(controller_key::<Deployment>(&child), Some(ObjectKey::namespaced("shop", "web")));
        assert_eq!(controller_key::<ReplicaSet>(&child), None);
        assert!(is_controlled_by(&child, "d1"));
    }

    #[test]
    fn a_cluster_scoped_controller_has_no_namespace() {
        let mut node = Node::default();
        node.metadata.name = Some("n1".into());
        node.metadata.uid = Some("u".into());
        let mut pod = Pod::default();
        pod.metadata.namespace = Some("shop".into());
        set_controller(&mut pod.metadata, controller_reference(&node).unwrap());
        assert_eq!(controller_key::<Node>(&pod.metadata), Some(ObjectKey::cluster("n1")));
    }

    #[test]
    fn an_owner_without_a_uid_gives_no_reference() {
        let mut owner = deployment();
        owner.metadata.uid = None;
        assert!(controller_reference(&owner).is_none());
    }
}
