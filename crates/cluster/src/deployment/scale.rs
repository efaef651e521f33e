//! Scaling ReplicaSets, and removing those that the history no longer needs.

use std::sync::Arc;

use windlass::{
    Event,
    k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet},
};

use super::{
    Run, Sets, limits, proportion,
    revision::{self, DESIRED_REPLICAS},
};
use crate::pods;

/// Whether the Deployment was scaled since its active ReplicaSets were last sized.
pub(super) fn is_due(spec: &DeploymentSpec, sets: &Sets) -> bool {
    sets.all().iter().filter(|set| limits::replicas(set) > 0).any(|set| {
        let annotation = set.metadata.annotations.as_ref().and_then(|all| all.get(DESIRED_REPLICAS));
        let known: Option<i32> = annotation.and_then(|text| text.parse().ok());
        known.is_some_and(|known| known != limits::desired(spec))
    })
}

/// The only ReplicaSet with Pods, or the latest if none has any; `None` if several have.
fn only_active(sets: &Sets) -> Option<Arc<ReplicaSet>> {
    let all = sets.all();
    let mut active = all.iter().filter(|set| limits::replicas(set) > 0);
    match (active.next(), active.next()) {
        (None, _) => sets.new.clone().or_else(|| sets.old.last().cloned()),
        (Some(one), None) => Some(one.clone()),
        _ => None,
    }
}

fn is_saturated(spec: &DeploymentSpec, set: &ReplicaSet) -> bool {
    let desired = limits::desired(spec);
    let annotation = set.metadata.annotations.as_ref().and_then(|all| all.get(DESIRED_REPLICAS));
    limits::replicas(set) == desired
        && annotation.and_then(|text| text.parse().ok()) == Some(desired)
        && limits::available(set) == desired
}

impl Run<'_> {
    /// Brings the ReplicaSets to the Deployment's size without rolling on.
    pub(super) async fn scale(&mut self, sets: &mut Sets) -> windlass::Result<()> {
        if let Some(set) = only_active(sets) {
            return self.resize_noting(sets, &set, limits::desired(&self.spec), false).await;
        }
        if sets.new.as_ref().is_some_and(|new| is_saturated(&self.spec, new)) {
            for set in sets.old.clone() {
                self.resize(sets, &set, 0).await?;
            }
            return Ok(());
        }
        if !limits::is_rolling(&self.spec) {
            return Ok(());
        }
        let active: Vec<_> = sets.all().into_iter().filter(|set| limits::replicas(set) > 0).collect();
        for (set, size) in proportion::shared(&self.spec, &active, self.status.replicas.unwrap_or(0)) {
            self.resize_noting(sets, &set, size, true).await?;
        }
        Ok(())
    }

    /// Sets the size of a ReplicaSet, if it has another.
    pub(super) async fn resize(
        &mut self,
        sets: &mut Sets,
        set: &ReplicaSet,
        size: i32,
    ) -> windlass::Result<()> {
        self.resize_noting(sets, set, size, false).await
    }

    /// As [`resize`](Self::resize); `note` writes the sizes into the annotations even if the size stays.
    async fn resize_noting(
        &mut self,
        sets: &mut Sets,
        set: &ReplicaSet,
        size: i32,
        note: bool,
    ) -> windlass::Result<()> {
        let before = limits::replicas(set);
        if before == size && !note {
            return Ok(());
        }
        let resized = self.ctx.modify(set, |set| {
            set.spec.replicas = Some(size);
            revision::note_sizes(set.metadata.annotations.get_or_insert_default(), &self.spec);
        });
        sets.put(resized.await?);
        if before != size {
            let direction = if before < size { "up" } else { "down" };
            let name = set.metadata.name.as_deref().unwrap_or_default();
            let note = format!("Scaled {direction} replica set {name} from {before} to {size}");
            self.ctx.event(Event::normal("ScalingReplicaSet", note).action("ScalingReplicaSet"));
        }
        Ok(())
    }

    /// Deletes the oldest ReplicaSets beyond the history limit, of those that have no Pods.
    pub(super) async fn clean_up(&self, sets: &Sets) -> windlass::Result<()> {
        for set in superfluous(&self.spec, &sets.old) {
            self.ctx.delete(&*set).await?;
        }
        Ok(())
    }
}

/// Whether there is a ReplicaSet to delete.
pub(super) fn has_surplus(spec: &DeploymentSpec, sets: &Sets) -> bool {
    !superfluous(spec, &sets.old).is_empty()
}

fn superfluous(spec: &DeploymentSpec, old: &[Arc<ReplicaSet>]) -> Vec<Arc<ReplicaSet>> {
    let Some(limit) = spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else {
        return Vec::new();
    };
    let mut kept: Vec<_> = old.iter().filter(|set| !pods::is_terminating(&set.metadata)).cloned().collect();
    kept.sort_by_key(|set| (revision::number(&set.metadata), set.metadata.name.clone()));
    let surplus = kept.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    kept.truncate(surplus);
    let idle = |set: &Arc<ReplicaSet>| {
        let status = set.status.clone().unwrap_or_default();
        status.replicas == 0
            && limits::replicas(set) == 0
            && set.metadata.generation.unwrap_or(0) <= status.observed_generation.unwrap_or(0)
    };
    kept.retain(idle);
    kept
}

#[cfg(test)]
mod tests {
    use super::{
        super::{limits::tests::rolling, rolling::tests::set},
        *,
    };

    fn revised(name: &str, replicas: i32, revision: i64) -> Arc<ReplicaSet> {
        let mut set = set(name, replicas, replicas);
        let annotations = &mut Arc::get_mut(&mut set).unwrap().metadata.annotations;
        annotations.get_or_insert_default().insert(revision::REVISION.into(), revision.to_string());
        set
    }

    #[test]
    fn the_oldest_idle_sets_beyond_the_limit_go() {
        let mut spec = rolling(1, "1", "0");
        spec.revision_history_limit = Some(1);
        let old = [revised("c", 0, 3), revised("a", 0, 1), revised("b", 2, 2)];
        let names: Vec<_> =
            superfluous(&spec, &old).iter().map(|set| set.metadata.name.clone().unwrap()).collect();
        assert_eq!(names, ["a"]);
        spec.revision_history_limit = None;
        assert!(superfluous(&spec, &old).is_empty());
    }

    #[test]
    fn only_a_single_active_set_is_scaled_alone() {
        let name = |sets: &Sets| only_active(sets).map(|set| set.metadata.name.clone().unwrap());
        let new = Some(set("new", 1, 1));
        assert_eq!(name(&Sets { new: new.clone(), old: vec![set("old", 0, 0)] }).as_deref(), Some("new"));
        assert_eq!(
            name(&Sets { new: Some(set("new", 0, 0)), old: vec![set("old", 2, 2)] }).as_deref(),
            Some("old")
        );
        assert_eq!(name(&Sets { new, old: vec![set("old", 1, 1)] }), None);
    }
}
