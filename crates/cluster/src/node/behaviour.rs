//! How a simulated Pod behaves: its annotations enter, a [`Behaviour`] leaves. Pure.

use std::{collections::BTreeMap, time::Duration};

use windlass::k8s_openapi::api::core::v1::{Container, Pod};

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
pub(super) const VALUES: [&str; 12] = [
    "run",
    "complete",
    "fail",
    "crash-loop",
    "oom-kill",
    "never-ready",
    "image-pull-error",
    "evict",
    "liveness-failure",
    "startup-failure",
    "post-start-failure",
    "pre-stop-failure",
];

/// Something of a container that can be told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Liveness,
    Startup,
    PostStart,
    PreStop,
}

impl Check {
    fn named(value: &str) -> Option<Self> {
        Some(match value {
            "liveness-failure" => Self::Liveness,
            "startup-failure" => Self::Startup,
            "post-start-failure" => Self::PostStart,
            "pre-stop-failure" => Self::PreStop,
            _ => return None,
        })
    }

    /// Whether a container has it.
    fn is_in(self, container: &Container) -> bool {
        let hooks = container.lifecycle.as_ref();
        match self {
            Self::Liveness => container.liveness_probe.is_some(),
            Self::Startup => container.startup_probe.is_some(),
            Self::PostStart => hooks.is_some_and(|hooks| hooks.post_start.is_some()),
            Self::PreStop => hooks.is_some_and(|hooks| hooks.pre_stop.is_some()),
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Liveness => "livenessProbe",
            Self::Startup => "startupProbe",
            Self::PostStart => "lifecycle.postStart",
            Self::PreStop => "lifecycle.preStop",
        }
    }
}

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
    /// They run, and this of theirs fails.
    Fails(Check),
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
    if let Some(check) = wanted.and_then(Check::named) {
        let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        if !containers.any(|container| check.is_in(container)) {
            let (value, field) = (wanted.unwrap_or_default(), check.field());
            complaint = Some(format!("annotation {SIMULATE} is {value:?}: no container has a {field}"));
        }
        return (Behaviour::Fails(check), complaint);
    }
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
