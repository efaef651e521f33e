//! How a simulated Pod behaves: its annotations enter, a [`Behaviour`] leaves. Pure.

use std::{collections::BTreeMap, time::Duration};

use windlass::k8s_openapi::api::core::v1::Pod;

use super::Timing;
use crate::pods;

/// What goes wrong, or ends, in a Pod: one of the values below.
pub(super) const SIMULATE: &str = "windlass.dev/simulate";
/// The exit code of the containers, where they end.
pub(super) const EXIT_CODE: &str = "windlass.dev/exit-code";
/// After how many seconds the containers end, where they do.
pub(super) const EXIT_AFTER: &str = "windlass.dev/exit-after-seconds";

/// After how many seconds the containers start, in place of the node's own time.
pub(super) const START_AFTER: &str = "windlass.dev/start-after-seconds";
/// After how many seconds running containers are ready, in place of the node's own time.
pub(super) const READY_AFTER: &str = "windlass.dev/ready-after-seconds";

/// The values of [`SIMULATE`].
pub(super) const VALUES: [&str; 8] =
    ["run", "complete", "fail", "crash-loop", "oom-kill", "never-ready", "image-pull-error", "evict"];

/// The times of a Pod: the node's, unless its annotations say others.
pub(super) fn timing(pod: &Pod, node: Timing) -> Timing {
    let seconds = |key: &str, default: Duration| {
        let given = pods::annotation(pod, key).and_then(|text| text.parse().ok());
        given.map_or(default, Duration::from_secs)
    };
    Timing { start: seconds(START_AFTER, node.start), ready: seconds(READY_AFTER, node.ready), ..node }
}

/// What the containers of a Pod do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// They run and become ready.
    Run,
    /// They do what their commands say; those that do not say run, or end like this.
    Command(Option<Exit>),
    /// They run and never become ready.
    NeverReady,
    /// Their image cannot be pulled.
    PullFails,
    /// The node throws the Pod out, after this time.
    Evicted(Duration),
    /// They end.
    Exit(Exit),
}

/// The end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) after: Duration,
}

impl Exit {
    /// The end with a code, after some time.
    pub(super) fn with(code: i32, after: Duration) -> Self {
        Self { code, reason: if code == 0 { "Completed" } else { "Error" }, after }
    }
}

/// The behaviour of a Pod, and what is wrong with its annotations.
///
/// `run` is how long containers run that end without having been told when.
pub(super) fn of(pod: &Pod, run: Duration) -> (Behaviour, Option<String>) {
    let nothing = BTreeMap::new();
    let annotations = pod.metadata.annotations.as_ref().unwrap_or(&nothing);
    let wanted = annotations.get(SIMULATE).map(String::as_str);
    let mut complaint = [START_AFTER, READY_AFTER].iter().find_map(|key| {
        let text = annotations.get(*key).filter(|text| text.parse::<u64>().is_err())?;
        Some(format!("annotation {key} is {text:?}: write a whole number of seconds"))
    });
    let mut number = |key: &str| -> Option<u32> {
        let text = annotations.get(key)?;
        let number = text.parse().ok();
        if number.is_none() {
            complaint = Some(format!("annotation {key} is {text:?}: write a whole number of at least 0"));
        }
        number
    };
    let code = number(EXIT_CODE).map(|code| i32::try_from(code & 0xff).unwrap_or(0));
    let told = number(EXIT_AFTER).map(|seconds| Duration::from_secs(seconds.into()));
    let after = told.unwrap_or(run);
    let exit = |default: i32, reason: Option<&'static str>| {
        let exit = Exit::with(code.unwrap_or(default), after);
        Behaviour::Exit(Exit { reason: reason.unwrap_or(exit.reason), ..exit })
    };
    let behaviour = match wanted {
        Some("run") => Behaviour::Run,
        Some("complete") => exit(0, None),
        Some("fail" | "crash-loop") => exit(1, None),
        Some("oom-kill") => exit(137, Some("OOMKilled")),
        Some("never-ready") => Behaviour::NeverReady,
        Some("image-pull-error") => Behaviour::PullFails,
        Some("evict") => Behaviour::Evicted(after),
        None if code.is_some() || (told.is_some() && ends(pod)) => exit(0, None),
        // What is not to be started again is expected to end.
        None => Behaviour::Command(ends(pod).then(|| Exit::with(0, after))),
        Some(other) => {
            complaint = Some(format!(
                "annotation {SIMULATE} is {other:?}: write one of {}; the Pod runs as if it were not there",
                VALUES.join(", ")
            ));
            Behaviour::Run
        }
    };
    (behaviour, complaint)
}

fn ends(pod: &Pod) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    matches!(policy, Some("Never" | "OnFailure"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::PodFixture;

    #[test]
    fn annotations_choose_the_behaviour() {
        let of_value = |value: &str| of(&Pod::test("p").annotated(SIMULATE, value), Duration::ZERO);
        assert_eq!(of(&Pod::test("p"), Duration::ZERO), (Behaviour::Command(None), None));
        assert_eq!(of_value("never-ready"), (Behaviour::NeverReady, None));
        assert_eq!(of_value("image-pull-error"), (Behaviour::PullFails, None));
        let oom = Exit { code: 137, reason: "OOMKilled", after: Duration::ZERO };
        assert_eq!(of_value("oom-kill"), (Behaviour::Exit(oom), None));
        let late = Pod::test("p").annotated(EXIT_CODE, "3").annotated(EXIT_AFTER, "5");
        let exit = Exit { code: 3, reason: "Error", after: Duration::from_secs(5) };
        assert_eq!(of(&late, Duration::ZERO), (Behaviour::Exit(exit), None));
    }

    #[test]
    fn what_is_not_started_again_ends_after_its_time() {
        let mut pod = Pod::test("p");
        pod.spec.as_mut().unwrap().restart_policy = Some("Never".into());
        let exit = Exit { code: 0, reason: "Completed", after: Duration::from_secs(7) };
        assert_eq!(of(&pod, Duration::from_secs(7)), (Behaviour::Command(Some(exit)), None));
    }

    #[test]
    fn a_wrong_annotation_is_reported_and_ignored() {
        let (behaviour, complaint) = of(&Pod::test("p").annotated(SIMULATE, "explode"), Duration::ZERO);
        assert_eq!(behaviour, Behaviour::Run);
        assert!(complaint.unwrap().contains("write one of run, complete, fail"));
        let (_, complaint) = of(&Pod::test("p").annotated(EXIT_AFTER, "soon"), Duration::ZERO);
        assert!(complaint.unwrap().contains("whole number"));
    }
}
