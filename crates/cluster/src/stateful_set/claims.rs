//! The claims of a StatefulSet: created before their Pods, and owned so that the retention policy comes true.

use windlass::{
    Event,
    k8s_openapi::{
        api::{
            apps::v1::{StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec},
            core::v1::{PersistentVolumeClaim, Pod},
        },
        apimachinery::pkg::apis::meta::v1::OwnerReference,
    },
    owner,
};

use super::{Run, identity};
use crate::{pod_control, pods};

/// Whether claims are deleted when the set is deleted, and when it shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retention {
    when_deleted: bool,
    when_scaled: bool,
}

impl Retention {
    fn of(spec: &StatefulSetSpec) -> Self {
        let nothing = StatefulSetPersistentVolumeClaimRetentionPolicy::default();
        let policy = spec.persistent_volume_claim_retention_policy.as_ref().unwrap_or(&nothing);
        Self {
            when_deleted: policy.when_deleted.as_deref() == Some("Delete"),
            when_scaled: policy.when_scaled.as_deref() == Some("Delete"),
        }
    }

    /// Whether a claim belongs to the set, and whether it belongs to its Pod.
    fn owners(self, condemned: bool) -> (bool, bool) {
        (self.when_deleted && !(self.when_scaled && condemned), self.when_scaled && condemned)
    }
}

impl Run<'_> {
    fn claim(&self, name: &str) -> windlass::Result<Option<std::sync::Arc<PersistentVolumeClaim>>> {
        self.ctx.get::<PersistentVolumeClaim>(self.set.metadata.namespace.as_deref(), name)
    }

    /// Creates the claims of an ordinal that are missing.
    pub(super) async fn ensure_claims(&self, ordinal: i32) -> windlass::Result<()> {
        for claim in identity::claims(&self.set, &self.spec, ordinal) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            if self.claim(&name)?.is_some() {
                continue;
            }
            let created = self.ctx.create(claim).await.map(drop);
            if created.as_ref().is_err_and(windlass::Error::is_already_exists) {
                continue;
            }
            self.report_claim(&name, ordinal, &created);
            created?;
        }
        Ok(())
    }

    fn report_claim(&self, claim: &str, ordinal: i32, result: &windlass::Result<()>) {
        let set = self.name();
        let event = match result {
            Ok(()) => Event::normal(
                "SuccessfulCreate",
                format!("Create Claim {claim} Pod {set}-{ordinal} in StatefulSet {set} success"),
            ),
            Err(error) => Event::warning(
                "FailedCreate",
                format!(
                    "Create Claim {claim} for Pod {set}-{ordinal} in StatefulSet {set} failed error: {}",
                    pod_control::reason(error)
                ),
            ),
        };
        self.ctx.event(event.action("Create"));
    }

    /// Whether an ordinal has a claim that will go with a Pod of before, or that is going.
    pub(super) fn has_stale_claim(&self, ordinal: i32) -> windlass::Result<bool> {
        let scaled = Retention::of(&self.spec).when_scaled;
        for claim in identity::claims(&self.set, &self.spec, ordinal) {
            let Some(claim) = self.claim(claim.metadata.name.as_deref().unwrap_or_default())? else {
                continue;
            };
            let pod = format!("{}-{ordinal}", self.name());
            let mut owners = claim.metadata.owner_references.iter().flatten();
            let of_pod = owners.any(|owner| owner.kind == "Pod" && owner.name == pod);
            if pods::is_terminating(&claim.metadata) || scaled && of_pod {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the claims of a Pod the owners that the retention policy asks for.
    pub(super) async fn retain(&self, pod: &Pod) -> windlass::Result<()> {
        let Some(ordinal) = identity::ordinal(pod) else { return Ok(()) };
        let condemned = !identity::ordinals(&self.spec).contains(&ordinal);
        let (by_set, by_pod) = Retention::of(&self.spec).owners(condemned);
        let set = self.ctx.controller_reference()?;
        let Some(of_pod) = owner::controller_reference(pod) else { return Ok(()) };
        for claim in identity::claims(&self.set, &self.spec, ordinal) {
            let Some(claim) = self.claim(claim.metadata.name.as_deref().unwrap_or_default())? else {
                continue;
            };
            let mut wanted = Vec::new();
            wanted.extend(by_set.then(|| set.clone()));
            wanted.extend(by_pod.then(|| of_pod.clone()));
            if let Some(owners) = owners(&claim, &[&set, &of_pod], wanted) {
                let owners = Some(owners).filter(|owners| !owners.is_empty());
                self.ctx.modify(&*claim, |claim| claim.metadata.owner_references = owners).await?;
            }
        }
        Ok(())
    }
}

/// The owners that a claim should have, if they are others than it has. Claims of earlier sets or Pods of the same
/// name, and those that somebody else controls, are left alone.
fn owners(
    claim: &PersistentVolumeClaim,
    own: &[&OwnerReference; 2],
    wanted: Vec<OwnerReference>,
) -> Option<Vec<OwnerReference>> {
    let current = claim.metadata.owner_references.clone().unwrap_or_default();
    let is_own = |reference: &OwnerReference| own.iter().any(|own| own.uid == reference.uid);
    let stale = |reference: &OwnerReference| {
        own.iter()
            .any(|own| own.kind == reference.kind && own.name == reference.name && own.uid != reference.uid)
    };
    let foreign = |reference: &OwnerReference| reference.controller == Some(true) && !is_own(reference);
    if current.iter().any(|reference| stale(reference) || foreign(reference)) {
        return None;
    }
    let others = current.iter().filter(|reference| !is_own(reference)).cloned();
    let new: Vec<OwnerReference> = others.chain(wanted).collect();
    (new != current).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(kind: &str, uid: &str) -> OwnerReference {
        OwnerReference {
            kind: kind.into(),
            name: kind.into(),
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        }
    }

    #[test]
    fn the_policy_says_whom_a_claim_belongs_to() {
        let keep = Retention { when_deleted: false, when_scaled: false };
        let both = Retention { when_deleted: true, when_scaled: true };
        assert_eq!((keep.owners(false), keep.owners(true)), ((false, false), (false, false)));
        assert_eq!((both.owners(false), both.owners(true)), ((true, false), (false, true)));
        let scaled = Retention { when_deleted: false, when_scaled: true };
        assert_eq!((scaled.owners(false), scaled.owners(true)), ((false, false), (false, true)));
    }

    #[test]
    fn owners_of_others_are_kept_and_controllers_of_others_respected() {
        let (set, pod) = (reference("StatefulSet", "s"), reference("Pod", "p"));
        let mut claim = PersistentVolumeClaim::default();
        assert_eq!(owners(&claim, &[&set, &pod], Vec::new()), None);
        assert_eq!(owners(&claim, &[&set, &pod], vec![set.clone()]), Some(vec![set.clone()]));
        claim.metadata.owner_references = Some(vec![set.clone()]);
        assert_eq!(owners(&claim, &[&set, &pod], vec![pod.clone()]), Some(vec![pod.clone()]));
        assert_eq!(owners(&claim, &[&set, &pod], Vec::new()), Some(Vec::new()));
        claim.metadata.owner_references = Some(vec![reference("Pod", "earlier")]);
        assert_eq!(owners(&claim, &[&set, &pod], vec![set.clone()]), None);
    }
}
