//! Status conditions as the API conventions want them.
//!
//! `lastTransitionTime` moves only when the status of a condition changes, so that writing the same conditions
//! again is no change at all; the order of the list stays as it is.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

/// The summary condition that most kinds have.
pub const READY: &str = "Ready";
/// Set while the object moves towards its spec.
pub const PROGRESSING: &str = "Progressing";
/// Set when the object cannot do what its spec asks for.
pub const DEGRADED: &str = "Degraded";

/// A condition that holds. `reason` is a constant in PascalCase; `message` is for people.
pub fn is_true(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, "True", reason, message)
}

/// A condition that does not hold.
pub fn is_false(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, "False", reason, message)
}

/// A condition of which nothing is known.
pub fn is_unknown(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, "Unknown", reason, message)
}

fn condition(type_: &str, status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        observed_generation: None,
        // Replaced by `set`, which knows the time and what was there before.
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Enters a condition into a list, observed on `object` now. Returns whether the list changed.
///
/// ```
/// use windlass::{conditions, jiff::Timestamp, k8s_openapi::api::core::v1::ConfigMap};
///
/// let (object, now) = (ConfigMap::default(), Timestamp::UNIX_EPOCH);
/// let mut list = Vec::new();
/// let ready = || conditions::is_true(conditions::READY, "Available", "all replicas are up");
/// assert!(conditions::set(&mut list, ready(), &object, now));
/// assert!(!conditions::set(&mut list, ready(), &object, now), "nothing new");
/// ```
pub fn set<K: Resource>(
    conditions: &mut Vec<Condition>,
    mut condition: Condition,
    object: &K,
    now: Timestamp,
) -> bool {
    condition.observed_generation = object.meta().generation;
    // The API has whole seconds; anything finer would differ from what is read back.
    condition.last_transition_time = Time(whole_seconds(now));
    let Some(existing) = conditions.iter_mut().find(|known| known.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if existing.status == condition.status {
        condition.last_transition_time = existing.last_transition_time.clone();
    }
    let changed = *existing != condition;
    *existing = condition;
    changed
}

/// Removes a condition. Returns whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type is there and true.
pub fn holds(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut object = Deployment::default();
        object.metadata.generation = Some(1);
        let mut list = Vec::new();
        set(&mut list, is_false(READY, "Starting", "0 of 3"), &object, at(10));
        assert!(set(&mut list, is_false(READY, "Starting", "1 of 3"), &object, at(20)));
        assert_eq!(list[0].last_transition_time.0, at(10));
        assert!(set(&mut list, is_true(READY, "Available", "3 of 3"), &object, at(30)));
        assert_eq!(list[0].last_transition_time.0, at(30));
        assert!(!set(&mut list, is_true(READY, "Available", "3 of 3"), &object, at(40)));
        assert!(holds(&list, READY));
    }

    #[test]
    fn a_new_generation_is_a_change_without_a_transition() {
        let mut object = Deployment::default();
        object.metadata.generation = Some(1);
        let mut list = Vec::new();
        set(&mut list, is_true(READY, "Available", ""), &object, at(10));
        object.metadata.generation = Some(2);
        assert!(set(&mut list, is_true(READY, "Available", ""), &object, at(20)));
        assert_eq!((list[0].observed_generation, list[0].last_transition_time.0), (Some(2), at(10)));
    }

    #[test]
    fn removing_a_condition_leaves_the_others() {
        let mut list = vec![is_true(READY, "A", ""), is_true(DEGRADED, "B", "")];
        assert!(remove(&mut list, DEGRADED));
        assert!(!remove(&mut list, DEGRADED));
        assert_eq!(find(&list, READY).map(|c| c.reason.as_str()), Some("A"));
    }
}
