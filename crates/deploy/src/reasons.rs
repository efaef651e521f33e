//! Why Pods do not come up, in their own words: a Deployment, its Pods and what is told about them enter, one line leaves.
//! Pure.

use windlass::k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerStatus, Event, Pod},
};

/// Why something is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) text: String,
    /// Whether it will not mend itself.
    pub(crate) fatal: bool,
    /// Whether it is the usual way of things at first.
    pub(crate) usual: bool,
    /// The Pod and the container whose log would say more.
    pub(crate) log: Option<(String, String)>,
}

impl Reason {
    fn new(text: impl Into<String>, fatal: bool) -> Self {
        Self { text: text.into(), fatal, usual: false, log: None }
    }
}

/// Whether a Deployment has rolled out.
pub(crate) fn is_done(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let Some(status) = &deployment.status else { return wanted == 0 };
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
}

/// How far it is.
pub(crate) fn progress(deployment: &Deployment) -> String {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    format!(
        "{} of {wanted} replicas are new, {} available",
        status.updated_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0)
    )
}

/// Why it is not done, if something says so.
pub(crate) fn why(deployment: &Deployment, pods: &[Pod], events: &[Event]) -> Option<Reason> {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    // Quotas, and whatever else refuses to create Pods.
    let refused = conditions
        .clone()
        .find(|it| it.type_.as_deref() == Some("ReplicaFailure") && it.status.as_deref() == Some("True"));
    if let Some(condition) = refused {
        let reason = condition.reason.clone().unwrap_or_default();
        return Some(Reason::new(
            format!("{reason}: {}", condition.message.clone().unwrap_or_default()),
            true,
        ));
    }
    let mut pods: Vec<&Pod> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
    pods.sort_by_key(|pod| std::cmp::Reverse(pod.metadata.creation_timestamp.clone()));
    pods.iter().find_map(|pod| of_pod(pod, events))
}

fn of_pod(pod: &Pod, events: &[Event]) -> Option<Reason> {
    let status = pod.status.as_ref()?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let told = |reasons: &[&str]| last_event(events, &name, reasons);
    let conditions = || status.conditions.iter().flatten();
    let scheduled = conditions().find(|it| it.type_ == "PodScheduled" && it.status == "False");
    if let Some(condition) = scheduled.filter(|it| it.message.is_some()) {
        let reason = condition.reason.clone().unwrap_or_default();
        return Some(Reason::new(
            format!("{reason}: {}", condition.message.clone().unwrap_or_default()),
            false,
        ));
    }
    if status.phase.as_deref() == Some("Failed") {
        let reason = status.reason.clone().unwrap_or_else(|| "Failed".into());
        return Some(Reason::new(format!("{reason}: {}", status.message.clone().unwrap_or_default()), false));
    }
    let init = status.init_container_statuses.iter().flatten();
    let containers = init.chain(status.container_statuses.iter().flatten());
    if let Some(reason) = containers.clone().find_map(|container| of_container(&name, container, &told)) {
        return Some(reason);
    }
    if containers.clone().count() == 0 {
        // Volumes and sandboxes come before containers.
        return told(&["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"])
            .map(|text| Reason::new(text, false));
    }
    let unready = containers.clone().find(|container| !container.ready && container.started == Some(true))?;
    let told = told(&["Unhealthy"]);
    // A container that has just started is asked for the first time soon.
    let usual = told.is_none();
    let text = told.unwrap_or_else(|| format!("container {} is not ready", unready.name));
    Some(Reason { usual, log: Some((name.clone(), unready.name.clone())), ..Reason::new(text, false) })
}

fn of_container(
    pod: &str,
    container: &ContainerStatus,
    told: &dyn Fn(&[&str]) -> Option<String>,
) -> Option<Reason> {
    let log = Some((pod.to_owned(), container.name.clone()));
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let ended = state.terminated.as_ref().or(last);
    let end = ended.map(|ended| {
        let said = ended.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let said = said.map_or_else(String::new, |text| format!(": {text}"));
        format!("{} with exit code {}{said}", ended.reason.clone().unwrap_or_default(), ended.exit_code)
    });
    if let Some(waiting) = &state.waiting {
        let (reason, message) =
            (waiting.reason.clone().unwrap_or_default(), waiting.message.clone().unwrap_or_default());
        return match reason.as_str() {
            "ContainerCreating" | "PodInitializing" => {
                let failed = told(&["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"])?;
                Some(Reason::new(failed, false))
            }
            "CrashLoopBackOff" => {
                let text = format!("{reason}: {}", end.unwrap_or(message));
                Some(Reason { log, ..Reason::new(text, container.restart_count >= 2) })
            }
            "ErrImagePull" => Some(Reason::new(format!("{reason}: {message}"), true)),
            // It says that it waits; why it must was told before.
            "ImagePullBackOff" => {
                let why = told(&["Failed"]).filter(|text| text.contains("pull")).unwrap_or(message);
                Some(Reason::new(format!("{reason}: {why}"), true))
            }
            "" => None,
            _ => Some(Reason::new(format!("{reason}: {message}"), true)),
        };
    }
    // It has just ended, and will be started again.
    let end = end.filter(|_| state.terminated.as_ref().is_some_and(|ended| ended.exit_code != 0))?;
    Some(Reason { log, ..Reason::new(end, false) })
}

/// The last of these events about an object.
fn last_event(events: &[Event], name: &str, reasons: &[&str]) -> Option<String> {
    let about = events.iter().filter(|event| {
        event.involved_object.name.as_deref() == Some(name)
            && event.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    });
    // "Error: ImagePullBackOff" comes after the message that says why.
    let worth = about.filter(|event| !event.message.as_deref().unwrap_or_default().starts_with("Error: "));
    let last = worth.max_by_key(|event| {
        event
            .last_timestamp
            .clone()
            .map(|time| time.0)
            .or_else(|| event.event_time.clone().map(|time| time.0))
    })?;
    last.message.clone().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment(status: Value) -> Deployment {
        let object = json!({"metadata": {"name": "op", "generation": 2}, "spec": {"replicas": 1, "selector": {}, "template": {}}, "status": status});
        serde_json::from_value(object).unwrap()
    }

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "op-1"}, "status": status})).unwrap()
    }

    fn container(state: Value, last: Value) -> Value {
        json!({"containerStatuses": [{
            "name": "manager", "image": "x", "imageID": "", "ready": false, "restartCount": 3, "state": state, "lastState": last,
        }]})
    }

    fn text(pod: Pod, events: &[Event]) -> String {
        why(&deployment(json!({})), &[pod], events).unwrap().text
    }

    #[test]
    fn an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words() {
        let state = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
        assert_eq!(text(pod(container(state, json!({}))), &[]), "ErrImagePull: not found");
        let state =
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}});
        let event = |message: &str, time: &str| -> Event {
            serde_json::from_value(json!({
                "metadata": {}, "involvedObject": {"name": "op-1"}, "reason": "Failed", "message": message, "lastTimestamp": time,
            }))
            .unwrap()
        };
        let events = [
            event("Failed to pull image \"x\": not found", "2026-01-01T00:00:00Z"),
            event("Error: ErrImagePull", "2026-01-01T00:00:01Z"),
        ];
        let told = text(pod(container(state, json!({}))), &events);
        assert_eq!(told, "ImagePullBackOff: Failed to pull image \"x\": not found");
    }

    #[test]
    fn a_crash_loop_tells_how_the_last_run_ended() {
        let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}});
        let last = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        let reason = why(&deployment(json!({})), &[pod(container(state, last))], &[]).unwrap();
        assert_eq!(reason.text, "CrashLoopBackOff: Error with exit code 1");
        assert_eq!(reason.log, Some(("op-1".into(), "manager".into())));
        assert!(reason.fatal);
    }

    #[test]
    fn a_quota_and_a_full_cluster_are_told() {
        let status = json!({"conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods"},
        ]});
        assert_eq!(why(&deployment(status), &[], &[]).unwrap().text, "FailedCreate: exceeded quota: pods");
        let unschedulable = pod(json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"},
        ]}));
        assert_eq!(text(unschedulable, &[]), "Unschedulable: 0/1 nodes are available");
    }

    #[test]
    fn it_is_done_when_all_replicas_are_new_and_available_and_no_other_is_left() {
        let done =
            json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(is_done(&deployment(done.clone())));
        for (field, value) in
            [("observedGeneration", 1), ("replicas", 2), ("updatedReplicas", 0), ("availableReplicas", 0)]
        {
            let mut status = done.clone();
            status[field] = value.into();
            assert!(!is_done(&deployment(status)), "{field}");
        }
    }
}
