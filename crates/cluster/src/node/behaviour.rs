//! How a simulated Pod behaves: its annotations enter, a [`Behaviour`] leaves. Pure.

use std::{collections::BTreeMap, time::Duration};

use windlass::{k8s_openapi::api::core::v1::Pod, owner};

/// What goes wrong, or ends, in a Pod: one of the values below.
pub(super) const SIMULATE: &str = "windlass.dev/simulate";
/// The exit code of the containers, where they end.
pub(super) const EXIT_CODE: &str = "windlass.dev/exit-code";
/// After how many seconds the containers end, where they do.
pub(super) const EXIT_AFTER: &str = "windlass.dev/exit-after-seconds";

/// The values of [`SIMULATE`].
pub(super) const VALUES: [&str; 7] =
    ["run", "complete", "fail", "crash-loop", "oom-kill", "never-ready", "image-pull-error"];

/// What the containers of a Pod do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// They run and become ready.
    Run,
    /// They run and never become ready.
    NeverReady,
    /// Their image cannot be pulled.
    PullFails,
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

/// The behaviour of a Pod, and what is wrong with its annotations.
pub(super) fn of(pod: &Pod) -> (Behaviour, Option<String>) {
    let nothing = BTreeMap::new();
    let annotations = pod.metadata.annotations.as_ref().unwrap_or(&nothing);
    let wanted = annotations.get(SIMULATE).map(String::as_str);
    let mut complaint = None;
    let mut number = |key: &str| -> Option<u32> {
        let text = annotations.get(key)?;
        let number = text.parse().ok();
        if number.is_none() {
            complaint = Some(format!("annotation {key} is {text:?}: write a whole number of at least 0"));
        }
        number
    };
    let code = number(EXIT_CODE).map(|code| i32::try_from(code & 0xff).unwrap_or(0));
    let after = Duration::from_secs(number(EXIT_AFTER).unwrap_or(0).into());
    let exit = |default: i32, reason: Option<&'static str>| {
        let code = code.unwrap_or(default);
        let reason = reason.unwrap_or(if code == 0 { "Completed" } else { "Error" });
        Behaviour::Exit(Exit { code, reason, after })
    };
    let behaviour = match wanted {
        Some("run") => Behaviour::Run,
        Some("complete") => exit(0, None),
        Some("fail" | "crash-loop") => exit(1, None),
        Some("oom-kill") => exit(137, Some("OOMKilled")),
        Some("never-ready") => Behaviour::NeverReady,
        Some("image-pull-error") => Behaviour::PullFails,
        // A Job waits for its Pods to end; nothing else does.
        None if is_of_job(pod) || code.is_some() => exit(0, None),
        None => Behaviour::Run,
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

fn is_of_job(pod: &Pod) -> bool {
    owner::controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "Job")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::PodFixture;

    #[test]
    fn annotations_choose_the_behaviour() {
        let of_value = |value: &str| of(&Pod::test("p").annotated(SIMULATE, value));
        assert_eq!(of(&Pod::test("p")), (Behaviour::Run, None));
        assert_eq!(of_value("never-ready"), (Behaviour::NeverReady, None));
        assert_eq!(of_value("image-pull-error"), (Behaviour::PullFails, None));
        let oom = Exit { code: 137, reason: "OOMKilled", after: Duration::ZERO };
        assert_eq!(of_value("oom-kill"), (Behaviour::Exit(oom), None));
        let late = Pod::test("p").annotated(EXIT_CODE, "3").annotated(EXIT_AFTER, "5");
        let exit = Exit { code: 3, reason: "Error", after: Duration::from_secs(5) };
        assert_eq!(of(&late), (Behaviour::Exit(exit), None));
    }

    #[test]
    fn a_wrong_annotation_is_reported_and_ignored() {
        let (behaviour, complaint) = of(&Pod::test("p").annotated(SIMULATE, "explode"));
        assert_eq!(behaviour, Behaviour::Run);
        assert!(complaint.unwrap().contains("write one of run, complete, fail"));
        let (_, complaint) = of(&Pod::test("p").annotated(EXIT_AFTER, "soon"));
        assert!(complaint.unwrap().contains("whole number"));
    }
}
