//! A Pod's life on the simulated node. Pure: a Pod and the time enter, its next status leaves.
//!
//! ```text
//! Pending/ContainerCreating -> Running -> Ready            | image-pull-error: ErrImagePull -> ImagePullBackOff
//!                                 `-> terminated -> CrashLoopBackOff -> started again, or Succeeded/Failed
//! deletion: terminated, Succeeded or Failed, then removed
//! ```
//! Everything that a step depends on is in the Pod itself, so a node that is restarted goes on where it was.

use std::time::Duration;

use windlass::{
    Event,
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Container, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus},
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use super::{
    Timing,
    behaviour::{Behaviour, Check, Exit},
    command::{self, Course},
    conditions,
    containers::{self, CREATING, INITIALIZING},
    references::Missing,
};
use crate::pods;

mod checks;
mod moves;

use moves::Moves;

/// How long after a failed pull kubelet says that it waits.
const PULL_RETRY: Duration = Duration::from_secs(10);

/// Tags that no image has, so that `kubectl set image` can break a rollout.
const MISSING_TAGS: [&str; 4] = ["404", "does-not-exist", "non-existent", "nonexistent"];

const DONE: Exit = Exit { code: 0, reason: "Completed", after: Duration::ZERO };

/// The end of a container that did not expect to be told to stop.
const TERMINATED: Exit = Exit { code: 143, reason: "Error", after: Duration::ZERO };

/// What a step depends on.
pub(super) struct Scene<'a> {
    pub(super) pod: &'a Pod,
    pub(super) behaviour: &'a Behaviour,
    pub(super) timing: Timing,
    pub(super) host_ip: &'a str,
    pub(super) pod_ip: &'a str,
    pub(super) now: Timestamp,
    /// ConfigMaps and Secrets that are not there.
    pub(super) missing: &'a Missing,
}

/// What a step leads to.
pub(super) struct Step {
    pub(super) status: PodStatus,
    pub(super) events: Vec<Event>,
    /// When to look again, if nothing else happens.
    pub(super) next: Option<Duration>,
    /// Whether the Pod has ended and can be removed.
    pub(super) gone: bool,
}

impl Step {
    fn nothing(scene: &Scene<'_>, next: Option<Duration>) -> Self {
        let status = scene.pod.status.clone().unwrap_or_default();
        Self { status, events: Vec::new(), next, gone: false }
    }
}

/// The next step of a Pod's life.
pub(super) fn step(scene: &Scene<'_>) -> Step {
    let status = scene.pod.status.as_ref();
    if pods::is_terminating(&scene.pod.metadata) {
        return stop(scene);
    }
    if pods::is_finished(scene.pod) {
        return Step::nothing(scene, None);
    }
    match status.and_then(|status| status.start_time.as_ref()) {
        None => accept(scene),
        Some(start) => advance(scene, scene.since(start.0)),
    }
}

impl Scene<'_> {
    fn since(&self, then: Timestamp) -> Duration {
        Duration::try_from(self.now.duration_since(then)).unwrap_or_default()
    }

    fn spec(&self) -> PodSpec {
        self.pod.spec.clone().unwrap_or_default()
    }

    /// The status with conditions that fit it.
    fn finish(&self, mut status: PodStatus, sandbox: bool) -> PodStatus {
        status.observed_generation = self.pod.metadata.generation;
        status.conditions = Some(conditions::of(self.pod, &status, sandbox, self.now));
        status
    }

    /// How long the Pod may be active.
    fn deadline(&self) -> Option<Duration> {
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn wait_for_deadline(&self, moves: &mut Moves, age: Duration) {
        if let Some(left) = self.deadline().and_then(|deadline| left(deadline, age)) {
            moves.wait(left);
        }
    }

    /// How long a container runs before it is ready; `None` if its probe can only fail.
    fn ready_after(&self, name: &str) -> Option<Duration> {
        let containers = self.pod.spec.iter().flat_map(|spec| &spec.containers);
        let probe =
            containers.filter(|container| container.name == name).find_map(|c| c.readiness_probe.as_ref());
        let Some(probe) = probe else { return Some(self.timing.ready) };
        if checks::can_only_fail(probe.exec.as_ref()) {
            return None;
        }
        let delay = u64::try_from(probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0);
        Some(self.timing.ready.max(Duration::from_secs(delay)))
    }

    /// Whether an image cannot be pulled.
    fn lacks(&self, image: &str) -> bool {
        match self.behaviour {
            Behaviour::PullFails => true,
            Behaviour::Command(_) => {
                image.rsplit_once(':').is_some_and(|(_, tag)| MISSING_TAGS.contains(&tag))
            }
            _ => false,
        }
    }

    /// How a container ends, if it does.
    fn end_of(&self, name: &str) -> Option<Exit> {
        let spec = self.pod.spec.as_ref()?;
        if let Some(init) = spec.init_containers.iter().flatten().find(|init| init.name == name) {
            // What the others wait for ends, whatever ports it declares, unless its command says otherwise.
            return if is_sidecar(init) {
                ended(command::of(init), None)
            } else {
                ended(command::told(init), Some(DONE))
            };
        }
        if let Some(debug) = spec.ephemeral_containers.iter().flatten().find(|debug| debug.name == name) {
            return ended(command::of(&moves::plain(debug)), None);
        }
        match self.behaviour {
            Behaviour::Exit(exit) => Some(exit.clone()),
            Behaviour::Command(otherwise) => {
                let container = spec.containers.iter().find(|container| container.name == name)?;
                ended(command::of(container), otherwise.clone())
            }
            _ => None,
        }
    }

    fn restarts(&self, code: i32) -> bool {
        match self.spec().restart_policy.as_deref() {
            Some("Never") => false,
            Some("OnFailure") => code != 0,
            _ => true,
        }
    }
}

/// How a container ends in its course, or in the way of its like where that does not say.
fn ended(course: Course, otherwise: Option<Exit>) -> Option<Exit> {
    match course {
        Course::Endless => None,
        Course::Ends { code, after } => Some(Exit::with(code, after)),
        Course::Unknown => otherwise,
    }
}

/// What is left of a time after some of it has passed; `None` if nothing is.
fn left(time: Duration, passed: Duration) -> Option<Duration> {
    time.checked_sub(passed).filter(|left| *left > Duration::ZERO)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The node has seen the Pod and begins to make its containers.
fn accept(scene: &Scene<'_>) -> Step {
    let spec = scene.spec();
    let init = spec.init_containers.unwrap_or_default();
    let reason = if init.is_empty() { CREATING } else { INITIALIZING };
    let waiting =
        |all: &[Container]| all.iter().map(|one| containers::waiting(one, reason)).collect::<Vec<_>>();
    let mut status = scene.pod.status.clone().unwrap_or_default();
    status.phase = Some("Pending".into());
    status.start_time = Some(Time(scene.now));
    status.host_ip = Some(scene.host_ip.to_owned());
    status.host_ips = Some(vec![HostIP { ip: scene.host_ip.to_owned() }]);
    status.container_statuses = Some(waiting(&spec.containers));
    status.init_container_statuses = Some(waiting(&init)).filter(|all| !all.is_empty());
    Step {
        status: scene.finish(status, false),
        events: Vec::new(),
        next: Some(scene.timing.start),
        gone: false,
    }
}

/// The node will not have the Pod, whoever put it there.
pub(super) fn reject(scene: &Scene<'_>, reason: &'static str, why: &str) -> Step {
    let message = format!("Pod was rejected: {why}");
    let mut status = scene.pod.status.clone().unwrap_or_default();
    status.phase = Some("Failed".into());
    status.reason = Some(reason.into());
    status.message = Some(message.clone());
    status.start_time = Some(Time(scene.now));
    let events = vec![Event::warning(reason, why).action("Admitting")];
    Step { status: scene.finish(status, false), events, next: None, gone: false }
}

/// Takes every container one step on.
fn advance(scene: &Scene<'_>, age: Duration) -> Step {
    if let Some(left) = left(scene.timing.start, age) {
        return Step::nothing(scene, Some(left));
    }
    let old = scene.pod.status.clone().unwrap_or_default();
    if let Behaviour::Evicted(after) = scene.behaviour
        && left(scene.timing.start.saturating_add(*after), age).is_none()
    {
        return evict(scene, old);
    }
    if scene.deadline().is_some_and(|deadline| left(deadline, age).is_none()) {
        return expire(scene, old);
    }
    let mut moves = Moves::default();
    let init = old.init_container_statuses.as_deref().map(|init| moves.initialize(scene, init, age));
    let initialized = init.as_ref().is_none_or(|init| init.iter().all(|one| one.ready));
    let step = |one: &ContainerStatus| {
        if initialized { moves.container(scene, one, age) } else { one.clone() }
    };
    let statuses: Vec<ContainerStatus> = old.container_statuses.iter().flatten().map(step).collect();
    let debug = moves.debug(scene, old.ephemeral_container_statuses.as_deref());
    scene.wait_for_deadline(&mut moves, age);
    let same = Some(&statuses) == old.container_statuses.as_ref()
        && init == old.init_container_statuses
        && debug == old.ephemeral_container_statuses
        && old.observed_generation == scene.pod.metadata.generation;
    if same {
        // Nothing has happened here; but others may have said that the Pod is not ready, while the node was down.
        let status = scene.finish(old.clone(), conditions::has_sandbox(&old));
        return Step { status, ..Step::nothing(scene, moves.next) };
    }
    let mut status = old;
    status.ephemeral_container_statuses = debug;
    status.pod_ip = Some(scene.pod_ip.to_owned());
    status.pod_ips = Some(vec![PodIP { ip: scene.pod_ip.to_owned() }]);
    status.phase = Some(phase(scene, init.as_deref().unwrap_or_default(), &statuses).into());
    status.init_container_statuses = init;
    status.container_statuses = Some(statuses);
    Step { status: scene.finish(status, true), events: moves.events, next: moves.next, gone: false }
}

/// The Pod has had the time that it may take.
fn expire(scene: &Scene<'_>, old: PodStatus) -> Step {
    let message = "Pod was active on the node longer than the specified deadline";
    let status = killed(scene, old, "DeadlineExceeded", message);
    let events = vec![Event::normal("DeadlineExceeded", message).action("Killing")];
    Step { status: scene.finish(status, true), events, next: None, gone: false }
}

/// The status of a Pod whose containers were ended by the node.
fn killed(scene: &Scene<'_>, old: PodStatus, reason: &str, message: &str) -> PodStatus {
    let killed = Exit { code: 137, reason: "Error", after: Duration::ZERO };
    let end =
        |all: &[ContainerStatus]| all.iter().map(|one| containers::end(one, &killed, scene.now)).collect();
    let mut status = old;
    status.phase = Some("Failed".into());
    status.reason = Some(reason.into());
    status.message = Some(message.into());
    status.container_statuses = status.container_statuses.as_deref().map(end);
    status
}

/// The node is short of something and throws the Pod out.
fn evict(scene: &Scene<'_>, old: PodStatus) -> Step {
    let message = "The node was low on resource: memory. Simulated by annotation windlass.dev/simulate.";
    let mut status = killed(scene, old, "Evicted", message);
    status.conditions.get_or_insert_default().push(PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        reason: Some("TerminationByKubelet".into()),
        message: Some(message.into()),
        last_transition_time: Some(Time(scene.now)),
        observed_generation: scene.pod.metadata.generation,
        ..PodCondition::default()
    });
    let events = vec![Event::warning("Evicted", message).action("Evicting")];
    Step { status: scene.finish(status, true), events, next: None, gone: false }
}

fn phase(scene: &Scene<'_>, init: &[ContainerStatus], statuses: &[ContainerStatus]) -> &'static str {
    let fails =
        |status: &ContainerStatus| containers::terminated(status).is_some_and(|end| end.exit_code != 0);
    if !scene.restarts(1) && init.iter().any(fails) {
        return "Failed";
    }
    if init.iter().any(|status| !status.ready) {
        return "Pending";
    }
    let ended = |status: &ContainerStatus| {
        containers::terminated(status).map(|end| end.exit_code).filter(|code| !scene.restarts(*code))
    };
    let codes: Vec<i32> = statuses.iter().filter_map(ended).collect();
    if !statuses.is_empty() && codes.len() == statuses.len() {
        return if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
    }
    if statuses.iter().any(|status| status.container_id.is_some()) { "Running" } else { "Pending" }
}

/// The Pod is being deleted: its containers end, then it can go.
fn stop(scene: &Scene<'_>) -> Step {
    let meta = &scene.pod.metadata;
    let old = scene.pod.status.clone().unwrap_or_default();
    if old.start_time.is_none() || pods::is_finished(scene.pod) {
        return Step { gone: true, ..Step::nothing(scene, None) };
    }
    let grace = Duration::from_secs(
        meta.deletion_grace_period_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0),
    );
    let deadline = meta.deletion_timestamp.as_ref().map_or(scene.now, |time| time.0);
    let until = Duration::try_from(deadline.duration_since(scene.now)).unwrap_or_default();
    // The timestamp is when the grace period ends, so this is how long it has been running.
    let passed = grace.saturating_sub(until);
    if let Some(left) = left(scene.stop_time().min(grace), passed) {
        return Step::nothing(scene, Some(left));
    }
    let mut events = Vec::new();
    // A server ends well when it is told to; work that is cut short is not done.
    let done = !matches!(scene.spec().restart_policy.as_deref(), Some("Never" | "OnFailure"));
    let mut end = |status: &ContainerStatus| {
        if containers::terminated(status).is_some() {
            return status.clone();
        }
        if status.container_id.is_none() {
            let lost = Exit { code: 137, reason: "ContainerStatusUnknown", after: Duration::ZERO };
            return containers::end(status, &lost, scene.now);
        }
        if scene.fails(Check::PreStop, &status.name) {
            let failed = Event::warning("FailedPreStopHook", "PreStopHook failed").action("Killing");
            events.push(failed.field_path(format!("spec.containers{{{}}}", status.name)));
        }
        let note = format!("Stopping container {}", status.name);
        let path = format!("spec.containers{{{}}}", status.name);
        events.push(Event::normal("Killing", note).action("Killing").field_path(path));
        containers::end(status, if done { &DONE } else { &TERMINATED }, scene.now)
    };
    let statuses: Vec<ContainerStatus> = old.container_statuses.iter().flatten().map(&mut end).collect();
    let init = old.init_container_statuses.as_ref().map(|init| init.iter().map(&mut end).collect());
    let well = statuses.iter().filter_map(containers::terminated).all(|end| end.exit_code == 0);
    let mut status = old;
    status.phase = Some(if well { "Succeeded" } else { "Failed" }.into());
    status.container_statuses = Some(statuses);
    status.init_container_statuses = init;
    Step { status: scene.finish(status, true), events, next: None, gone: true }
}

#[cfg(test)]
mod tests;
