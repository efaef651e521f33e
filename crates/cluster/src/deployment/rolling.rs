//! How far one step of a rolling update goes. Pure: ReplicaSets as they are enter, wanted sizes leave.

use std::sync::Arc;

use windlass::k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet};

use super::limits::{available, desired, is_rolling, max_unavailable, most, replicas, total};

/// The size of a new ReplicaSet that does not exist yet, beside the old ones.
pub(super) fn initial_size(spec: &DeploymentSpec, old: &[Arc<ReplicaSet>]) -> i32 {
    if is_rolling(spec) { grown(spec, 0, total(old)) } else { desired(spec) }
}

/// The size to which the new ReplicaSet goes in this step; `None` if it stays.
pub(super) fn scale_up(spec: &DeploymentSpec, new: &ReplicaSet, all: &[Arc<ReplicaSet>]) -> Option<i32> {
    let current = replicas(new);
    let size = if current > desired(spec) { desired(spec) } else { grown(spec, current, total(all)) };
    (size != current).then_some(size)
}

fn grown(spec: &DeploymentSpec, current: i32, all: i32) -> i32 {
    let room = most(spec).saturating_sub(all);
    if room <= 0 { current } else { current + room.min(desired(spec) - current) }
}

/// The sizes to which old ReplicaSets go in this step, oldest first: those that change.
///
/// Pods that are not available go first, because they cost nothing; then as many available ones as keep the
/// minimum.
pub(super) fn scale_down(
    spec: &DeploymentSpec,
    new: &ReplicaSet,
    old: &[Arc<ReplicaSet>],
) -> Vec<(Arc<ReplicaSet>, i32)> {
    let minimum = desired(spec) - max_unavailable(spec);
    let missing_new = replicas(new).saturating_sub(available(new));
    let all = total(old).saturating_add(replicas(new));
    let mut allowed = all.saturating_sub(minimum).saturating_sub(missing_new);
    if allowed <= 0 || total(old) == 0 {
        return Vec::new();
    }
    let mut sizes: Vec<i32> = old.iter().map(|set| replicas(set)).collect();
    for (set, size) in old.iter().zip(&mut sizes) {
        let unhealthy = size.saturating_sub(available(set)).clamp(0, allowed.max(0)).min(*size);
        *size -= unhealthy;
        allowed -= unhealthy;
    }
    // What a set that is to have no Pods still shows as available is on its way out.
    let counted = |set: &ReplicaSet| available(set).min(replicas(set));
    let healthy = old.iter().fold(counted(new), |sum, set| sum.saturating_add(counted(set)));
    let mut spare = healthy.saturating_sub(minimum);
    for size in &mut sizes {
        let gone = (*size).min(spare.max(0));
        *size -= gone;
        spare -= gone;
    }
    let changed = old.iter().zip(sizes).filter(|(set, size)| replicas(set) != *size);
    changed.map(|(set, size)| (set.clone(), size)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use windlass::k8s_openapi::api::apps::v1::{ReplicaSetSpec, ReplicaSetStatus};

    use super::{super::limits::tests::rolling, *};

    pub(crate) fn set(name: &str, replicas: i32, available: i32) -> Arc<ReplicaSet> {
        let mut set = ReplicaSet::default();
        set.metadata.name = Some(name.into());
        set.metadata.uid = Some(name.into());
        set.spec = ReplicaSetSpec { replicas: Some(replicas), ..ReplicaSetSpec::default() };
        set.status =
            Some(ReplicaSetStatus { available_replicas: Some(available), ..ReplicaSetStatus::default() });
        Arc::new(set)
    }

    fn down(spec: &DeploymentSpec, new: &ReplicaSet, old: &[Arc<ReplicaSet>]) -> Vec<(String, i32)> {
        let named = |(set, size): (Arc<ReplicaSet>, i32)| (set.metadata.name.clone().unwrap(), size);
        scale_down(spec, new, old).into_iter().map(named).collect()
    }

    #[test]
    fn the_new_set_grows_into_the_surge_and_no_further() {
        let spec = rolling(10, "3", "2");
        let old = set("old", 10, 10);
        assert_eq!(initial_size(&spec, std::slice::from_ref(&old)), 3);
        assert_eq!(scale_up(&spec, &set("new", 3, 0), &[old, set("new", 3, 0)]), None);
        assert_eq!(scale_up(&spec, &set("new", 3, 3), &[set("old", 8, 8), set("new", 3, 3)]), Some(5));
        assert_eq!(scale_up(&spec, &set("new", 12, 3), &[set("new", 12, 3)]), Some(10));
    }

    #[test]
    fn old_pods_go_only_as_far_as_the_minimum_allows() {
        let spec = rolling(10, "3", "2");
        assert_eq!(down(&spec, &set("new", 3, 0), &[set("old", 10, 10)]), [("old".to_owned(), 8)]);
        assert_eq!(down(&spec, &set("new", 3, 0), &[set("old", 8, 8)]), []);
        assert_eq!(down(&spec, &set("new", 5, 5), &[set("old", 8, 8)]), [("old".to_owned(), 3)]);
    }

    #[test]
    fn unavailable_old_pods_go_first() {
        let spec = rolling(4, "1", "0");
        let old = [set("broken", 2, 0), set("good", 3, 3)];
        // Three of five may go as far as the new set is concerned, but only two are unavailable.
        assert_eq!(down(&spec, &set("new", 1, 1), &old), [("broken".to_owned(), 0)]);
    }

    #[test]
    fn pods_that_are_on_their_way_out_are_not_counted_on() {
        let spec = rolling(4, "1", "1");
        // The first set has been told to go and still shows its Pods.
        let old = [set("going", 0, 3), set("old", 3, 3)];
        assert_eq!(down(&spec, &set("new", 1, 0), &old), []);
    }

    proptest! {
        /// Sizes and limits may be any number: a step goes no further than it may.
        #[test]
        fn no_number_is_too_large_for_a_step(
            wanted in amount(), surge in amount(), unavailable in amount(),
            old in prop::collection::vec((amount(), any::<i32>()), 0..4), new in (amount(), any::<i32>()),
        ) {
            let spec = rolling(wanted, &surge.to_string(), &unavailable.to_string());
            let old: Vec<_> = old.iter().map(|(size, available)| set("old", *size, *available)).collect();
            let new = set("new", new.0, new.1);
            let all: Vec<_> = old.iter().cloned().chain([new.clone()]).collect();
            prop_assert!((0..=wanted).contains(&initial_size(&spec, &old)));
            if let Some(size) = scale_up(&spec, &new, &all) {
                prop_assert!((0..=wanted).contains(&size), "{size} of {wanted}");
            }
            for (set, size) in scale_down(&spec, &new, &old) {
                prop_assert!((0..replicas(&set)).contains(&size), "{size} of {}", replicas(&set));
            }
        }
    }

    /// A number of Pods, the ends more often than chance would.
    pub(crate) fn amount() -> impl Strategy<Value = i32> {
        prop_oneof![Just(0), Just(1), Just(i32::MAX), 0..=i32::MAX]
    }

    #[test]
    fn a_rollout_never_leaves_its_limits() {
        for (wanted, surge, unavailable) in
            [(1, "1", "0"), (3, "25%", "25%"), (7, "0", "1"), (10, "100%", "0")]
        {
            let spec = rolling(wanted, surge, unavailable);
            let (mut old, mut new) = (wanted, initial_size(&spec, &[set("old", wanted, wanted)]));
            // Every other step the new Pods have become available.
            let mut ready = 0;
            for step in 0..200 {
                if step % 2 == 0 {
                    ready = new;
                }
                let (old_set, new_set) = (set("old", old, old), set("new", new, ready));
                match scale_up(&spec, &new_set, &[old_set.clone(), new_set.clone()]) {
                    Some(size) => new = size,
                    None => old = scale_down(&spec, &new_set, &[old_set]).first().map_or(old, |(_, s)| *s),
                }
                assert!(old + new <= most(&spec), "{spec:?}");
                assert!(old + ready >= wanted - max_unavailable(&spec), "{spec:?}");
            }
            assert_eq!((old, new), (0, wanted));
        }
    }
}
