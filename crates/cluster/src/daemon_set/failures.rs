//! Nodes on which the daemons of a set fail: each time the next one is made later.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use windlass::{jiff::Timestamp, k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(15);

/// When daemons failed last, by the uid of their set and by node.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<BTreeMap<String, BTreeMap<String, Failure>>>);

#[derive(Debug)]
struct Failure {
    at: Timestamp,
    delay: Duration,
}

impl Failure {
    fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.at)).unwrap_or_default()
    }
}

impl Failures {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Failure>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes where nothing is tried yet, and for how long. What is long ago is forgotten.
    pub(super) fn resting(&self, set: &ObjectMeta, now: Timestamp) -> BTreeMap<String, Duration> {
        let mut all = self.all();
        for nodes in all.values_mut() {
            nodes.retain(|_, failure| failure.age(now) <= LONGEST * 2);
        }
        all.retain(|_, nodes| !nodes.is_empty());
        let own = all.get(set.uid.as_deref().unwrap_or_default()).into_iter().flatten();
        own.filter_map(|(node, failure)| {
            let left = failure.delay.checked_sub(failure.age(now)).filter(|left| *left > Duration::ZERO)?;
            Some((node.clone(), left))
        })
        .collect()
    }

    /// Daemons have failed on some nodes.
    pub(super) fn note(&self, set: &ObjectMeta, nodes: &[String], now: Timestamp) {
        if nodes.is_empty() {
            return;
        }
        let mut all = self.all();
        let own = all.entry(set.uid.clone().unwrap_or_default()).or_default();
        for node in nodes {
            let delay = own.get(node).map_or(FIRST, |last| (last.delay * 2).min(LONGEST));
            own.insert(node.clone(), Failure { at: now, delay });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::at;

    #[test]
    fn the_rest_doubles_and_is_forgotten_in_the_end() {
        let (failures, set) = (Failures::default(), ObjectMeta::default());
        let left = |now| failures.resting(&set, at(now)).get("n").copied();
        let fail = |now| failures.note(&set, &["n".to_owned()], at(now));
        assert_eq!(left(0), None);
        fail(0);
        assert_eq!((left(0), left(1)), (Some(FIRST), None));
        fail(1);
        assert_eq!((left(2), left(3)), (Some(FIRST), None));
        assert_eq!(left(3600), None);
        fail(3600);
        assert_eq!((left(3600), left(3601)), (Some(FIRST), None));
    }
}
