//! Facts about Pods. Pure, but for [`watched`], which tells a controller about them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Capabilities, ContainerStatus, Pod, PodSecurityContext, SeccompProfile, SecurityContext,
};
use kube::ResourceExt;
use windlass::{Controller, ObjectKey, Reader, Reconciler, Watch, jiff::Timestamp};

use super::{INSTANCE, Problem, reasons};

/// Lets a controller see the Pods that carry its label, and look at an object whenever one of its Pods changes.
///
/// Only Pods with the label are cached: a cluster has many others. The Pods of a Deployment belong to its ReplicaSets, so
/// no owner reference leads to the object.
pub(crate) fn watched<C: Reconciler>(controller: Controller<C>, uid_label: &'static str) -> Controller<C> {
    watched_among(controller, uid_label, uid_label)
}

/// The same for a controller with further Pods, such as those of Jobs: all bear `label`, those that are counted the other.
pub(crate) fn watched_among<C: Reconciler>(
    controller: Controller<C>,
    label: &'static str,
    uid_label: &'static str,
) -> Controller<C> {
    controller
        .watches_with(Watch::<Pod>::new().labels(label), move |pod: &Pod, _: &Reader| {
            let labels = pod.labels();
            let instance = labels.get(label).and_then(|_| labels.get(INSTANCE));
            instance.map(|name| ObjectKey::new(pod.namespace().as_deref(), name)).into_iter().collect()
        })
        .index::<Pod>(uid_label, move |pod| pod.labels().get(uid_label).cloned().into_iter().collect())
}

pub(crate) use windlass::pods::{condition, is_active, is_finished, is_terminating, phase, ready_since};

/// Whether a Pod serves: a running Pod need not, and one that is being deleted soon does not.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    is_active(pod) && windlass::pods::is_ready(pod)
}

/// The names of some Pods, sorted: a list's order is no news.
pub(crate) fn names<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> Vec<String> {
    let mut names: Vec<String> = pods.into_iter().map(|pod| pod.name_any()).collect();
    names.sort();
    names
}

/// When the last container of a finished Pod ended; when the Pod was made, if nobody knows.
pub(crate) fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let ends = container_statuses(pod).filter_map(|status| {
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref().map(|time| time.0)
    });
    let ready = condition(pod, "Ready").and_then(|ready| ready.last_transition_time.as_ref());
    let created = pod.metadata.creation_timestamp.as_ref();
    ends.max().or(ready.map(|time| time.0)).or(created.map(|time| time.0))
}

pub(crate) fn container_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    })
}

/// What is wrong with some Pods that a person has to know, with the Pod's name. The first by name is told.
pub(crate) fn trouble<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> Option<Problem> {
    let mut found: Vec<(String, &'static str, String)> = pods
        .into_iter()
        .filter(|pod| is_active(pod))
        .filter_map(|pod| trouble_of(pod).map(|(reason, message)| (pod.name_any(), reason, message)))
        .collect();
    found.sort();
    let (name, reason, message) = found.first()?;
    let more = match found.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(Problem::new(reason, format!("Pod {name}{more}: {message}")))
}

fn trouble_of(pod: &Pod) -> Option<(&'static str, String)> {
    let unscheduled = condition(pod, "PodScheduled")
        .filter(|found| found.status == "False" && found.reason.as_deref() == Some("Unschedulable"));
    if let Some(condition) = unscheduled {
        return Some((reasons::UNSCHEDULABLE, condition.message.clone().unwrap_or_default()));
    }
    container_statuses(pod).find_map(container_trouble)
}

/// The words are chosen so that they stay the same from one attempt of the kubelet to the next.
fn container_trouble(status: &ContainerStatus) -> Option<(&'static str, String)> {
    let name = &status.name;
    let state = status.state.as_ref()?;
    let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    if let Some(ended) = state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
        return Some(ended_badly(name, ended.reason.as_deref(), ended.exit_code));
    }
    let waiting = state.waiting.as_ref()?;
    match waiting.reason.as_deref()? {
        "ImagePullBackOff" | "ErrImagePull" | "ErrImageNeverPull" | "InvalidImageName"
        | "ErrImageInspect" => {
            let message = format!("container {name} cannot pull the image {}", status.image);
            Some((reasons::IMAGE_PULL_BACK_OFF, message))
        }
        "CrashLoopBackOff" => Some(match last {
            Some(ended) => ended_badly(name, ended.reason.as_deref(), ended.exit_code),
            None => (reasons::CRASH_LOOP_BACK_OFF, format!("container {name} keeps ending")),
        }),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            let message = waiting.message.clone().unwrap_or_default();
            Some((reasons::CONTAINER_CONFIG_ERROR, format!("container {name} cannot be started: {message}")))
        }
        _ => None,
    }
}

fn ended_badly(name: &str, reason: Option<&str>, exit_code: i32) -> (&'static str, String) {
    if reason == Some("OOMKilled") {
        return (reasons::OOM_KILLED, format!("container {name} needed more memory than its limit"));
    }
    (reasons::CRASH_LOOP_BACK_OFF, format!("container {name} keeps ending, last with exit code {exit_code}"))
}

/// The security context of a Pod that asks for nothing special.
pub(crate) fn confined() -> PodSecurityContext {
    PodSecurityContext {
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), ..SeccompProfile::default() }),
        ..PodSecurityContext::default()
    }
}

/// The security context of a Pod that runs as a user, as the restricted Pod security standard asks.
pub(crate) fn confined_to_user(user: i64) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(user),
        run_as_group: Some(user),
        ..confined()
    }
}

/// The security context of a container that the restricted standard accepts.
pub(crate) fn unprivileged() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
        ..SecurityContext::default()
    }
}
