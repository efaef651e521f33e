//! Which volume fits a claim. Pure.

use std::sync::Arc;

use windlass::k8s_openapi::api::core::v1::{Node, ObjectReference, PersistentVolume, PersistentVolumeClaim};

use super::{capacity, reaches, requested};
use crate::{pods, quantity, selector};

/// Whether a volume is for this very claim. `None` for a volume that is for nobody.
pub(super) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<bool> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    let meta = &claim.metadata;
    // A volume that was reserved by hand names its claim without a uid.
    let same = reference.uid.as_ref().is_none_or(|uid| Some(uid) == meta.uid.as_ref());
    Some(same && reference.name == meta.name && reference.namespace == meta.namespace)
}

/// A reference to a claim.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let meta = &claim.metadata;
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The smallest volume that fits and can be used on the node, if one is chosen; one that is reserved for the claim comes
/// first.
pub(super) fn choose(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    node: Option<&Node>,
) -> Option<Arc<PersistentVolume>> {
    let reaches = |volume: &Arc<PersistentVolume>| node.is_none_or(|node| reaches(volume, node));
    let reserved =
        volumes.iter().find(|volume| is_for(volume, claim) == Some(true) && has_room(volume, claim));
    match reserved {
        Some(reserved) => Some(reserved.clone()).filter(reaches),
        None => fitting(claim, volumes).into_iter().find(reaches),
    }
}

/// The free volumes that fit, the smallest first.
pub(crate) fn fitting(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
) -> Vec<Arc<PersistentVolume>> {
    let size = |volume: &PersistentVolume| capacity(volume).and_then(quantity::thousandths).unwrap_or(0);
    let free = |volume: &&Arc<PersistentVolume>| {
        let wanted = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none())
            && mismatch(volume, claim).is_none()
            && wanted.is_none_or(|wanted| selector::matches(wanted, volume.metadata.labels.as_ref()))
    };
    let mut fitting: Vec<_> = volumes.iter().filter(free).cloned().collect();
    fitting.sort_by_key(|volume| (size(volume), volume.metadata.name.clone()));
    fitting
}

fn has_room(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let size = |amount: Option<&_>| amount.and_then(quantity::thousandths).unwrap_or(0);
    size(capacity(volume)) >= size(requested(claim))
}

/// Why a volume cannot be the one of a claim that asks for it by name; `None` if it can.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let (offer, wanted) = (volume.spec.clone().unwrap_or_default(), claim.spec.clone().unwrap_or_default());
    let modes = offer.access_modes.unwrap_or_default();
    let mode = |mode: Option<String>| mode.unwrap_or_else(|| "Filesystem".into());
    let text = |text: Option<String>| text.unwrap_or_default();
    Some(if pods::is_terminating(&volume.metadata) {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        format!("the volume is marked for deletion \"{name}\"")
    } else if !has_room(volume, claim) {
        "requested PV is too small".into()
    } else if text(offer.storage_class_name) != text(wanted.storage_class_name) {
        "storageClassName does not match".into()
    } else if text(offer.volume_attributes_class_name) != text(wanted.volume_attributes_class_name) {
        "volumeAttributesClassName does not match".into()
    } else if mode(offer.volume_mode) != mode(wanted.volume_mode) {
        "incompatible volumeMode".into()
    } else if !wanted.access_modes.iter().flatten().all(|mode| modes.contains(mode)) {
        "incompatible accessMode".into()
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn volume(name: &str, size: &str, more: Value) -> Arc<PersistentVolume> {
        let mut spec = json!({
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "slow"
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Arc::new(from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    }

    fn claim() -> PersistentVolumeClaim {
        from_value(json!({
            "metadata": {"name": "c", "namespace": "shop", "uid": "u"},
            "spec": {
                "storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}
            },
        }))
        .unwrap()
    }

    fn chosen(volumes: &[Arc<PersistentVolume>]) -> Option<String> {
        choose(&claim(), volumes, None).and_then(|volume| volume.metadata.name.clone())
    }

    #[test]
    fn the_smallest_volume_that_fits_is_taken() {
        let volumes = [
            volume("small", "500Mi", json!({})),
            volume("huge", "10Gi", json!({})),
            volume("right", "2Gi", json!({})),
            volume("taken", "1Gi", json!({"claimRef": {"namespace": "shop", "name": "other"}})),
            volume("fast", "1Gi", json!({"storageClassName": "fast"})),
            volume("shared", "1Gi", json!({"accessModes": ["ReadOnlyMany"]})),
        ];
        assert_eq!(chosen(&volumes).as_deref(), Some("right"));
        assert_eq!(chosen(&volumes[3..]), None);
    }

    #[test]
    fn a_reserved_volume_comes_first() {
        let reserved = volume("mine", "1Gi", json!({"claimRef": {"namespace": "shop", "name": "c"}}));
        assert_eq!(chosen(&[volume("right", "2Gi", json!({})), reserved]).as_deref(), Some("mine"));
        let small = volume("small", "1Mi", json!({"claimRef": {"namespace": "shop", "name": "c"}}));
        assert_eq!(chosen(&[volume("right", "2Gi", json!({})), small]).as_deref(), Some("right"));
        let earlier = json!({"claimRef": {"namespace": "shop", "name": "c", "uid": "earlier"}});
        assert_eq!(chosen(&[volume("released", "2Gi", earlier)]), None);
    }

    #[test]
    fn a_volume_is_taken_that_the_node_can_use() {
        let on = |node: &str| {
            let term = json!({"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]});
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}})
        };
        let volumes = [volume("one", "1Gi", on("n1")), volume("two", "2Gi", on("n2"))];
        let node: Node = from_value(json!({"metadata": {"name": "n2", "labels": {"host": "n2"}}})).unwrap();
        let chosen = choose(&claim(), &volumes, Some(&node));
        assert_eq!(chosen.unwrap().metadata.name.as_deref(), Some("two"));
        assert!(choose(&claim(), &volumes[..1], Some(&node)).is_none());
    }
}
