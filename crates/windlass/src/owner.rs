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

/// The label that says to whom a detached child belongs: the uid of its owner.
pub const OWNER_UID: &str = "windlass.dev/owner-uid";

/// The annotation that says where that owner is: `<Kind>.<group>/<namespace>/<name>`.
pub const OWNER: &str = "windlass.dev/owner";

/// The finalizer of an owner that has detached children: no garbage collector would delete them after it.
pub const DETACHED_CHILDREN: &str = "windlass.dev/detached-children";

/// The value of [`OWNER`].
pub(crate) fn place(kind: &Kind, key: &ObjectKey) -> String {
    format!("{kind}/{}/{}", key.namespace().unwrap_or_default(), key.name())
}

/// The uid of the owner to whom an object belongs: by a controller reference or, without one, by [`OWNER_UID`].
pub(crate) fn owner_uid(meta: &ObjectMeta) -> Option<&str> {
    match controller_of(meta) {
        Some(owner) => Some(&owner.uid),
        None => meta.labels.as_ref()?.get(OWNER_UID).map(String::as_str),
    }
}

/// Whether an object belongs to the one with this uid.
pub(crate) fn belongs_to(meta: &ObjectMeta, uid: &str) -> bool {
    owner_uid(meta) == Some(uid)
}

/// Whether an object belongs to its owner without a reference.
pub(crate) fn is_detached(meta: &ObjectMeta) -> bool {
    controller_of(meta).is_none() && owner_uid(meta).is_some()
}

/// The key of the object of a kind to whom the child belongs, if it does.
pub(crate) fn owner_key_of(kind: &Kind, child: &ObjectMeta) -> Option<ObjectKey> {
    if !is_detached(child) {
        return controller_key_of(kind, child);
    }
    let (of, place) = child.annotations.as_ref()?.get(OWNER)?.split_once('/')?;
    let (namespace, name) = place.split_once('/')?;
    (of == kind.to_string()).then(|| ObjectKey::new(Some(namespace), name))
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
    fn a_detached_child_leads_to_its_owner_in_any_namespace() {
        let (kind, key) = (Kind::of::<Deployment>(), ObjectKey::namespaced("shop", "web"));
        let mut child = ObjectMeta { namespace: Some("elsewhere".into()), ..ObjectMeta::default() };
        child.labels = Some([(OWNER_UID.to_owned(), "d1".to_owned())].into());
        child.annotations = Some([(OWNER.to_owned(), place(&kind, &key))].into());
        assert_eq!(owner_key_of(&kind, &child), Some(key));
        assert_eq!(owner_key_of(&Kind::of::<ReplicaSet>(), &child), None);
        assert!(belongs_to(&child, "d1") && is_detached(&child));
        let node = ObjectKey::cluster("n1");
        child.annotations = Some([(OWNER.to_owned(), place(&Kind::of::<Node>(), &node))].into());
        assert_eq!(owner_key_of(&Kind::of::<Node>(), &child), Some(node));
        // A reference says more than a label, which anybody may copy with the rest of an object.
        set_controller(&mut child, controller_reference(&deployment()).unwrap());
        assert!(!is_detached(&child) && controller_key::<Deployment>(&child).is_some());
    }

    #[test]
    fn an_owner_without_a_uid_gives_no_reference() {
        let mut owner = deployment();
        owner.metadata.uid = None;
        assert!(controller_reference(&owner).is_none());
    }
}
