//! The conditions of a Pod on a node, in kubelet's order and with its reasons and messages. Pure.

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus},
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use crate::pods::{READY, SCHEDULED};

const OWN: [&str; 5] = ["PodReadyToStartContainers", "Initialized", READY, "ContainersReady", SCHEDULED];

/// Whether something is so, and if not, why.
struct Verdict {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Verdict {
    fn yes() -> Self {
        Self { holds: true, reason: None, message: None }
    }

    fn no(reason: &'static str, message: Option<String>) -> Self {
        Self { holds: false, reason: Some(reason), message }
    }
}

/// The conditions of a Pod with this status. Conditions of others, such as readiness gates, are kept.
pub(super) fn of(pod: &Pod, status: &PodStatus, sandbox: bool, now: Timestamp) -> Vec<PodCondition> {
    let phase = status.phase.as_deref().unwrap_or_default();
    let init = status.init_container_statuses.as_deref().unwrap_or_default();
    let containers = containers_ready(status, phase);
    let ready = if containers.holds {
        gates(pod, status)
    } else {
        Verdict { holds: false, reason: containers.reason, message: containers.message.clone() }
    };
    let verdicts = [
        (OWN[0], sandbox_ready(sandbox, phase)),
        (OWN[1], initialized(pod, init, phase)),
        (READY, ready),
        (OWN[3], containers),
        (SCHEDULED, Verdict::yes()),
    ];
    let mut all: Vec<PodCondition> =
        verdicts.into_iter().map(|(type_, verdict)| condition(pod, status, type_, verdict, now)).collect();
    let others = status.conditions.iter().flatten().filter(|other| !OWN.contains(&other.type_.as_str()));
    all.extend(others.cloned());
    all
}

/// Whether the status says that there is a sandbox.
pub(super) fn has_sandbox(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|one| one.type_ == OWN[0] && one.status == "True")
}

fn condition(pod: &Pod, status: &PodStatus, type_: &str, verdict: Verdict, now: Timestamp) -> PodCondition {
    let text = if verdict.holds { "True" } else { "False" };
    let old = status.conditions.iter().flatten().find(|old| old.type_ == type_ && old.status == text);
    PodCondition {
        type_: type_.to_owned(),
        status: text.to_owned(),
        reason: verdict.reason.map(str::to_owned),
        message: verdict.message,
        last_transition_time: old.and_then(|old| old.last_transition_time.clone()).or(Some(Time(now))),
        observed_generation: pod.metadata.generation,
        last_probe_time: None,
    }
}

fn sandbox_ready(sandbox: bool, phase: &str) -> Verdict {
    match (phase, sandbox) {
        ("Succeeded" | "Failed", _) => {
            Verdict::no("PodSandboxNotReady", Some("pod sandbox is not ready".into()))
        }
        (_, false) => Verdict::no("PodSandboxNotReady", Some("no pod sandbox exists".into())),
        (_, true) => Verdict::yes(),
    }
}

fn initialized(pod: &Pod, init: &[ContainerStatus], phase: &str) -> Verdict {
    if phase == "Succeeded" {
        return Verdict { holds: true, reason: Some("PodCompleted"), message: None };
    }
    let wanted = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let incomplete =
        wanted.filter(|container| !init.iter().any(|status| status.name == container.name && status.ready));
    let names: Vec<&str> = incomplete.map(|container| container.name.as_str()).collect();
    if names.is_empty() {
        return Verdict::yes();
    }
    Verdict::no(
        "ContainersNotInitialized",
        Some(format!("containers with incomplete status: [{}]", names.join(" "))),
    )
}

fn containers_ready(status: &PodStatus, phase: &str) -> Verdict {
    match phase {
        "Succeeded" => return Verdict::no("PodCompleted", None),
        "Failed" => return Verdict::no("PodFailed", None),
        _ => {}
    }
    let unready = status.container_statuses.iter().flatten().filter(|container| !container.ready);
    let names: Vec<&str> = unready.map(|container| container.name.as_str()).collect();
    if names.is_empty() {
        return Verdict::yes();
    }
    Verdict::no("ContainersNotReady", Some(format!("containers with unready status: [{}]", names.join(" "))))
}

/// Readiness gates are conditions that others set and that a Pod must have to be ready.
fn gates(pod: &Pod, status: &PodStatus) -> Verdict {
    let wanted = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let mut complaints = Vec::new();
    for gate in wanted.map(|gate| &gate.condition_type) {
        match status.conditions.iter().flatten().find(|condition| condition.type_ == *gate) {
            None => complaints
                .push(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
            Some(condition) if condition.status != "True" => complaints.push(format!(
                "the status of pod readiness gate \"{gate}\" is not \"True\", but {}",
                condition.status
            )),
            Some(_) => {}
        }
    }
    if complaints.is_empty() {
        Verdict::yes()
    } else {
        Verdict::no("ReadinessGatesNotReady", Some(complaints.join(", ")))
    }
}
