//! What controllers ask about a Pod: is it active, ready, available, and since when.

use std::time::Duration;

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Pod, PodCondition},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};

pub(crate) const READY: &str = "Ready";
pub(crate) const SCHEDULED: &str = "PodScheduled";

/// The phase, `Pending` for a Pod that has no status yet.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The node that the Pod is on, if it is on one.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether all containers have ended for good.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the object is on its way out.
pub(crate) fn is_terminating(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// Whether the Pod counts as a replica: neither finished nor going.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(&pod.metadata)
}

/// Whether the Pod is going, and its containers have not ended yet.
pub(crate) fn is_stopping(pod: &Pod) -> bool {
    is_terminating(&pod.metadata) && !is_finished(pod)
}

pub(crate) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn condition<'a>(pod: &'a Pod, name: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == name)
}

/// Since when the Pod is ready; `None` if it is not.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, READY).filter(|condition| condition.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready_since(pod).is_some()
}

/// How long until a ready Pod is available; `None` if it is not ready, zero if it is available.
pub(crate) fn available_in(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    let ready = ready_since(pod)?;
    let wanted = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
    let passed = Duration::try_from(now.duration_since(ready)).unwrap_or_default();
    Some(wanted.saturating_sub(passed))
}

#[cfg(test)]
pub(crate) mod tests {
    use windlass::k8s_openapi::{
        api::core::v1::{PodSpec, PodStatus},
        apimachinery::pkg::apis::meta::v1::Time,
    };

    use super::*;

    pub(crate) fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A Pod to be changed by the chain that follows.
    pub(crate) trait PodFixture: Sized {
        fn test(name: &str) -> Self;
        fn on(self, node: &str) -> Self;
        fn phase(self, phase: &str) -> Self;
        fn ready_at(self, second: i64) -> Self;
        fn created_at(self, second: i64) -> Self;
        fn annotated(self, key: &str, value: &str) -> Self;
        fn labelled(self, key: &str, value: &str) -> Self;
    }

    impl PodFixture for Pod {
        fn test(name: &str) -> Self {
            let mut pod = Self { spec: Some(PodSpec::default()), ..Self::default() };
            pod.metadata.name = Some(name.into());
            pod.metadata.namespace = Some("shop".into());
            pod.metadata.uid = Some(format!("uid-{name}"));
            pod.status = Some(PodStatus { phase: Some("Pending".into()), ..PodStatus::default() });
            pod
        }

        fn on(mut self, node: &str) -> Self {
            self.spec.get_or_insert_default().node_name = Some(node.into());
            self
        }

        fn phase(mut self, phase: &str) -> Self {
            self.status.get_or_insert_default().phase = Some(phase.into());
            self
        }

        fn ready_at(mut self, second: i64) -> Self {
            let ready = PodCondition {
                type_: READY.into(),
                status: "True".into(),
                last_transition_time: Some(Time(at(second))),
                ..PodCondition::default()
            };
            self.status.get_or_insert_default().conditions.get_or_insert_default().push(ready);
            self
        }

        fn created_at(mut self, second: i64) -> Self {
            self.metadata.creation_timestamp = Some(Time(at(second)));
            self
        }

        fn annotated(mut self, key: &str, value: &str) -> Self {
            self.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
            self
        }

        fn labelled(mut self, key: &str, value: &str) -> Self {
            self.metadata.labels.get_or_insert_default().insert(key.into(), value.into());
            self
        }
    }

    #[test]
    fn a_ready_pod_becomes_available_after_min_ready_seconds() {
        let pod = Pod::test("a").ready_at(100);
        assert_eq!(available_in(&pod, 10, at(104)), Some(Duration::from_secs(6)));
        assert_eq!(available_in(&pod, 10, at(110)), Some(Duration::ZERO));
        assert_eq!(available_in(&pod, 0, at(100)), Some(Duration::ZERO));
        assert_eq!(available_in(&Pod::test("b"), 0, at(100)), None);
    }

    #[test]
    fn finished_pods_are_not_active() {
        assert!(is_active(&Pod::test("a").phase("Running")));
        assert!(!is_active(&Pod::test("a").phase("Failed")));
    }
}
