//! What `kubectl get pods` shows.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{
    cells::{self, flag, list, number, or_none},
    format, text,
};

/// What is worth knowing about a row besides its cells: whether the Pod has ended.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let phase = text(pod, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// What the container statuses of a Pod add up to.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    /// When a container last ended before it was started again.
    last: String,
}

impl Summary {
    fn restarted(&mut self, status: &Value) {
        self.restarts += number(status, "/restartCount");
        let ended = text(status, "/lastState/terminated/finishedAt");
        if ended > self.last.as_str() {
            ended.clone_into(&mut self.last);
        }
    }
}

pub(super) fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summary(object);
    let sidecars = list(object, "/spec/initContainers").iter().filter(|one| restarts_always(one)).count();
    let total = list(object, "/spec/containers").len() + sidecars;
    let restarts = if summary.restarts != 0 && !summary.last.is_empty() {
        format!("{} ({} ago)", summary.restarts, format::age(&summary.last, now))
    } else {
        summary.restarts.to_string()
    };
    let address = match list(object, "/status/podIPs").first() {
        Some(first) => text(first, "/ip"),
        None => text(object, "/status/podIP"),
    };
    vec![
        cells::name(object),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        cells::age(object, now),
        or_none(address),
        or_none(text(object, "/spec/nodeName")),
        or_none(text(object, "/status/nominatedNodeName")),
        json!(gates(object)),
    ]
}

fn restarts_always(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates.iter().filter(|gate| has_condition(pod, text(gate, "/conditionType")));
    format!("{}/{}", passed.count(), gates.len())
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == kind && text(one, "/status") == "True")
}

/// The most telling reason there is, and the counts that belong to it.
fn summary(pod: &Value) -> Summary {
    let mut summary = Summary::default();
    let phase = text(pod, "/status/phase");
    summary.reason = match text(pod, "/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let gated =
        |one: &Value| text(one, "/type") == "PodScheduled" && text(one, "/reason") == "SchedulingGated";
    if list(pod, "/status/conditions").iter().any(gated) {
        summary.reason = "SchedulingGated".into();
    }
    let initializing = init_containers(pod, &mut summary);
    if !initializing || has_condition(pod, "Initialized") {
        containers(pod, &mut summary);
    }
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        if text(pod, "/status/reason") == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".into();
        }
    }
    summary
}

/// Whether init containers still have something to do.
fn init_containers(pod: &Value, summary: &mut Summary) -> bool {
    let specs = list(pod, "/spec/initContainers");
    let mut sidecars = Summary::default();
    let mut initializing = false;
    for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        summary.restarted(status);
        let sidecar = specs.iter().any(|one| one["name"] == status["name"] && restarts_always(one));
        if sidecar {
            sidecars.restarted(status);
        }
        if status.pointer("/state/terminated/exitCode") == Some(&json!(0)) {
            continue;
        }
        if sidecar && flag(status, "/started") {
            summary.ready += usize::from(flag(status, "/ready"));
            continue;
        }
        let waiting = text(status, "/state/waiting/reason");
        summary.reason = if status.pointer("/state/terminated").is_some() {
            format!("Init:{}", ended(status))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs.len())
        };
        initializing = true;
        break;
    }
    if !initializing || has_condition(pod, "Initialized") {
        (summary.restarts, summary.last) = (sidecars.restarts, sidecars.last);
    }
    initializing
}

/// Why a container has ended.
fn ended(status: &Value) -> String {
    let (reason, signal) =
        (text(status, "/state/terminated/reason"), number(status, "/state/terminated/signal"));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", number(status, "/state/terminated/exitCode"))
    }
}

fn containers(pod: &Value, summary: &mut Summary) {
    let (mut running, mut failed) = (false, String::new());
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        summary.restarted(status);
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if status.pointer("/state/terminated").is_some() {
            summary.reason = ended(status);
            if number(status, "/state/terminated/exitCode") != 0 {
                failed.clone_from(&summary.reason);
            }
        } else if flag(status, "/ready") && status.pointer("/state/running").is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason != "Completed" {
        return;
    }
    if running && has_condition(pod, "Ready") {
        summary.reason = "Running".into();
    } else if !failed.is_empty() {
        summary.reason = failed;
    } else if running {
        summary.reason = "NotReady".into();
    }
}
