//! How long a Job waits before it replaces failed Pods: 10 s, 20 s, 40 s, … ten minutes. Pure.
//!
//! The failures are read off the Pods, which stay until the Job goes: nothing is kept in memory that a restart
//! would lose.

use std::{sync::Arc, time::Duration};

use windlass::{jiff::Timestamp, k8s_openapi::api::core::v1::Pod};

use crate::pods;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(10);

/// The time left until a failed Pod may be replaced; zero if it may be now.
pub(super) fn left(pods: &[Arc<Pod>], is_failed: impl Fn(&Pod) -> bool, now: Timestamp) -> Duration {
    let last_success =
        pods.iter().filter(|pod| pods::phase(pod) == "Succeeded").map(|pod| finished_at(pod)).max();
    let failures: Vec<Timestamp> = pods
        .iter()
        .filter(|pod| is_failed(pod))
        .map(|pod| finished_at(pod))
        .filter(|at| last_success.is_none_or(|success| *at > success))
        .collect();
    match failures.iter().max() {
        Some(last) => remaining(failures.len(), *last, now),
        None => Duration::ZERO,
    }
}

/// The time left after so many failures, of which the last was then.
pub(super) fn remaining(failures: usize, last: Timestamp, now: Timestamp) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(failures - 1).unwrap_or(u32::MAX).min(10);
    let wait = (FIRST * 2_u32.pow(doublings)).min(LONGEST);
    wait.saturating_sub(Duration::try_from(now.duration_since(last)).unwrap_or_default())
}

/// When a Pod ended, as closely as its status tells.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    let statuses = || pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let ends: Option<Vec<Timestamp>> = statuses()
        .map(|container| Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0))
        .collect();
    if let Some(last) = ends.and_then(|ends| ends.into_iter().max()) {
        return last;
    }
    let unready = pods::condition(pod, pods::READY).filter(|condition| condition.status == "False");
    if let Some(since) = unready.and_then(|condition| condition.last_transition_time.as_ref()) {
        return since.0;
    }
    let meta = &pod.metadata;
    if let Some(deadline) = &meta.deletion_timestamp {
        let grace = Duration::from_secs(
            meta.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0),
        );
        return deadline.0.checked_sub(grace).unwrap_or(deadline.0);
    }
    meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

#[cfg(test)]
mod tests {
    use windlass::k8s_openapi::{
        api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus},
        apimachinery::pkg::apis::meta::v1::Time,
    };

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn ended(name: &str, phase: &str, second: i64) -> Arc<Pod> {
        let mut pod = Pod::test(name).phase(phase);
        let end = ContainerStateTerminated { finished_at: Some(Time(at(second))), ..Default::default() };
        let state = ContainerState { terminated: Some(end), ..ContainerState::default() };
        pod.status.as_mut().unwrap().container_statuses =
            Some(vec![ContainerStatus { state: Some(state), ..ContainerStatus::default() }]);
        Arc::new(pod)
    }

    fn seconds_left(pods: &[Arc<Pod>], now: i64) -> u64 {
        left(pods, |pod| pods::phase(pod) == "Failed", at(now)).as_secs()
    }

    #[test]
    fn the_wait_doubles_with_every_failure_since_the_last_success() {
        let mut pods = vec![ended("a", "Failed", 100)];
        assert_eq!(seconds_left(&pods, 104), 6);
        pods.push(ended("b", "Failed", 110));
        assert_eq!(seconds_left(&pods, 110), 20);
        pods.push(ended("c", "Succeeded", 120));
        assert_eq!(seconds_left(&pods, 120), 0);
        pods.push(ended("d", "Failed", 130));
        assert_eq!(seconds_left(&pods, 130), 10);
        assert_eq!(remaining(50, at(0), at(0)), LONGEST);
    }
}
