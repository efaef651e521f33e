//! What controllers ask about a Pod: is it active, ready, available, and since when.

use windlass::k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};

pub(crate) use windlass::pods::{
    READY, SCHEDULED, available_in, condition, is_active, is_finished, is_ready, node, phase,
};

/// Whether the object is on its way out.
pub(crate) fn is_terminating(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
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

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use windlass::{
        jiff::Timestamp,
        k8s_openapi::{
            api::core::v1::{PodCondition, PodSpec, PodStatus},
            apimachinery::pkg::apis::meta::v1::Time,
        },
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
