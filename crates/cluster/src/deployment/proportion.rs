//! Sharing a new size among several ReplicaSets in the middle of a rollout. Pure.

use std::{cmp::Reverse, sync::Arc};

use windlass::k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet};

use super::{
    limits::{desired, most, replicas, total},
    revision::MAX_REPLICAS,
};

/// The sizes of the active ReplicaSets after the Deployment was scaled, in proportion to what they have now.
///
/// `current` is the Deployment's observed number of Pods, for sets that do not know the former maximum.
pub(super) fn shared(
    spec: &DeploymentSpec,
    active: &[Arc<ReplicaSet>],
    current: i32,
) -> Vec<(Arc<ReplicaSet>, i32)> {
    let allowed = if desired(spec) > 0 { most(spec) } else { 0 };
    let to_add = allowed.saturating_sub(total(active));
    let mut sets = active.to_vec();
    // The biggest share first; of equal ones, the newer grows and the older shrinks.
    if to_add > 0 {
        sets.sort_by_key(|set| Reverse((replicas(set), created(set))));
    } else {
        sets.sort_by_key(|set| (Reverse(replicas(set)), created(set)));
    }
    let mut added: i32 = 0;
    let mut sizes = Vec::with_capacity(sets.len());
    for set in sets {
        let share = if to_add == 0 { 0 } else { share(spec, &set, current, to_add.saturating_sub(added)) };
        added = added.saturating_add(share);
        let size = replicas(&set).saturating_add(share).max(0);
        sizes.push((set, size));
    }
    if let Some((_, size)) = sizes.first_mut() {
        *size = size.saturating_add(to_add.saturating_sub(added)).max(0);
    }
    sizes
}

fn created(set: &ReplicaSet) -> (Option<windlass::jiff::Timestamp>, Option<String>) {
    (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.metadata.name.clone())
}

fn share(spec: &DeploymentSpec, set: &ReplicaSet, current: i32, left: i32) -> i32 {
    let size = replicas(set);
    if size == 0 || left == 0 {
        return 0;
    }
    let fraction = if desired(spec) == 0 { -size } else { fraction(spec, set, current) };
    if left > 0 { fraction.min(left) } else { fraction.max(left) }
}

fn fraction(spec: &DeploymentSpec, set: &ReplicaSet, current: i32) -> i32 {
    let annotation = set.metadata.annotations.as_ref().and_then(|annotations| annotations.get(MAX_REPLICAS));
    let before =
        annotation.and_then(|text| text.parse().ok()).filter(|before| *before > 0).unwrap_or(current);
    if before == 0 {
        return 0;
    }
    let size = f64::from(replicas(set));
    let wanted = size * f64::from(most(spec)) / f64::from(before);
    (wanted.round() as i32).saturating_sub(replicas(set))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            limits::tests::rolling,
            rolling::tests::{amount, set},
        },
        *,
    };

    proptest! {
        /// Sizes, limits and what was noted of them may be any number.
        #[test]
        fn no_number_is_too_large_to_be_shared(
            wanted in amount(), surge in amount(), current in any::<i32>(),
            sets in prop::collection::vec((amount(), any::<i32>()), 0..4),
        ) {
            let spec = rolling(wanted, &surge.to_string(), "0");
            let sets: Vec<_> = sets.iter().map(|(size, most)| with_maximum("set", *size, *most)).collect();
            for (_, size) in shared(&spec, &sets, current) {
                prop_assert!(size >= 0, "{size}");
            }
        }
    }

    fn with_maximum(name: &str, replicas: i32, maximum: i32) -> Arc<ReplicaSet> {
        let mut set = set(name, replicas, replicas);
        Arc::get_mut(&mut set)
            .unwrap()
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(MAX_REPLICAS.into(), maximum.to_string());
        set
    }

    fn sizes(spec: &DeploymentSpec, sets: &[Arc<ReplicaSet>]) -> Vec<(String, i32)> {
        let named = |(set, size): (Arc<ReplicaSet>, i32)| (set.metadata.name.clone().unwrap(), size);
        shared(spec, sets, 0).into_iter().map(named).collect()
    }

    #[test]
    fn a_rollout_that_is_scaled_keeps_its_proportions() {
        let spec = rolling(15, "3", "2");
        let sets = [with_maximum("old", 8, 13), with_maximum("new", 5, 13)];
        assert_eq!(sizes(&spec, &sets), [("old".to_owned(), 11), ("new".to_owned(), 7)]);
        let spec = rolling(5, "3", "2");
        assert_eq!(sizes(&spec, &sets), [("old".to_owned(), 5), ("new".to_owned(), 3)]);
    }

    #[test]
    fn scaling_to_nothing_leaves_nothing() {
        let sets = [with_maximum("old", 8, 13), with_maximum("new", 5, 13)];
        assert_eq!(sizes(&rolling(0, "3", "2"), &sets), [("old".to_owned(), 0), ("new".to_owned(), 0)]);
    }
}
