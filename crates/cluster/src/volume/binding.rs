//! Which volume fits a claim. Pure.

use std::sync::Arc;

use windlass::k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};

use super::{capacity, requested};
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

/// The smallest volume that fits; one that is reserved for the claim comes first.
pub(super) fn choose(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
) -> Option<Arc<PersistentVolume>> {
    let reserved = volumes.iter().find(|volume| is_for(volume, claim) == Some(true));
    let size = |volume: &PersistentVolume| capacity(volume).and_then(quantity::thousandths).unwrap_or(0);
    let fitting = volumes
        .iter()
        .filter(|volume| fits(volume, claim))
        .min_by_key(|volume| (size(volume), volume.metadata.name.clone()));
    reserved.or(fitting).cloned()
}

fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (Some(offer), Some(wanted)) = (&volume.spec, &claim.spec) else { return false };
    let size = |amount: Option<&_>| amount.and_then(quantity::thousandths).unwrap_or(0);
    let modes = offer.access_modes.as_deref().unwrap_or_default();
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".into());
    offer.claim_ref.is_none()
        && !pods::is_terminating(&volume.metadata)
        && offer.storage_class_name.as_deref().unwrap_or_default()
            == wanted.storage_class_name.as_deref().unwrap_or_default()
        && mode(&offer.volume_mode) == mode(&wanted.volume_mode)
        && wanted.access_modes.iter().flatten().all(|mode| modes.contains(mode))
        && size(capacity(volume)) >= size(requested(claim))
        && wanted
            .selector
            .as_ref()
            .is_none_or(|selector| selector::matches(selector, volume.metadata.labels.as_ref()))
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
        choose(&claim(), volumes).and_then(|volume| volume.metadata.name.clone())
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
        let reserved = volume("mine", "1Mi", json!({"claimRef": {"namespace": "shop", "name": "c"}}));
        assert_eq!(chosen(&[volume("right", "2Gi", json!({})), reserved]).as_deref(), Some("mine"));
        let earlier = json!({"claimRef": {"namespace": "shop", "name": "c", "uid": "earlier"}});
        assert_eq!(chosen(&[volume("released", "2Gi", earlier)]), None);
    }
}
