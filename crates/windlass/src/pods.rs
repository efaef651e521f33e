//! What controllers ask about a Pod: is it active, ready, available, and since when. Pure, and as Kubernetes' own
//! controllers ask it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};

/// The condition of a Pod that serves.
pub const READY: &str = "Ready";
/// The condition of a Pod that has a node.
pub const SCHEDULED: &str = "PodScheduled";

/// The phase, `Pending` for a Pod that has no status yet.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The node that the Pod is on, if it is on one.
pub fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether all containers have ended for good.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the Pod is being deleted.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the Pod counts as a replica: neither finished nor being deleted.
pub fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// The condition of this type.
pub fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition `Ready` is true. A Pod that is being deleted may still be ready; see [`is_active`].
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, READY).is_some_and(|ready| ready.status == "True")
}

/// Since when the Pod is ready; `None` if it is not, or does not say so.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, READY).filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// How long until a ready Pod is available, which is `min_ready_seconds` after it became ready; `None` if it is not
/// ready, zero if it is available.
pub fn available_in(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    let since = ready_since(pod).unwrap_or(Timestamp::UNIX_EPOCH);
    let least = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    Some(least.saturating_sub(passed))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(ready: Value, phase: &str) -> Pod {
        from_value(json!({"status": {"phase": phase, "conditions": [ready]}})).unwrap()
    }

    #[test]
    fn a_ready_pod_becomes_available_after_min_ready_seconds() {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"});
        let pod = pod(ready, "Running");
        let in_seconds = |second| available_in(&pod, 5, Timestamp::from_second(second).unwrap());
        assert_eq!(in_seconds(10), Some(Duration::from_secs(5)));
        assert_eq!(in_seconds(14), Some(Duration::from_secs(1)));
        assert_eq!(in_seconds(15), Some(Duration::ZERO));
        assert_eq!(available_in(&pod, -1, Timestamp::UNIX_EPOCH), Some(Duration::ZERO));
    }

    #[test]
    fn a_pod_whose_condition_is_not_true_is_not_ready() {
        for status in ["False", "Unknown"] {
            let pod = pod(json!({"type": "Ready", "status": status}), "Running");
            assert!(!is_ready(&pod) && ready_since(&pod).is_none());
            assert_eq!(available_in(&pod, 0, Timestamp::UNIX_EPOCH), None);
        }
        let undated = pod(json!({"type": "Ready", "status": "True"}), "Running");
        assert!(is_ready(&undated) && ready_since(&undated).is_none());
        assert_eq!(available_in(&undated, 5, Timestamp::from_second(100).unwrap()), Some(Duration::ZERO));
    }

    #[test]
    fn what_has_ended_or_is_going_is_not_active() {
        assert!(is_active(&Pod::default()) && phase(&Pod::default()) == "Pending");
        for phase in ["Succeeded", "Failed"] {
            assert!(!is_active(&pod(json!({"type": "Ready", "status": "False"}), phase)));
        }
        let going: Pod =
            from_value(json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:10Z"}})).unwrap();
        assert!(!is_active(&going) && !is_finished(&going));
    }
}
