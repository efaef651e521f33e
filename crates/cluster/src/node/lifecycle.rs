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
    behaviour::{Behaviour, Exit},
    conditions,
    containers::{self, CRASH_LOOP, CREATING, INITIALIZING, PULL_BACK_OFF, PULL_FAILED},
};
use crate::pods;

/// How long after a failed pull kubelet says that it waits.
const PULL_RETRY: Duration = Duration::from_secs(10);

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

    fn restarts(&self, code: i32) -> bool {
        match self.spec().restart_policy.as_deref() {
            Some("Never") => false,
            Some("OnFailure") => code != 0,
            _ => true,
        }
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

/// Takes every container one step on.
fn advance(scene: &Scene<'_>, age: Duration) -> Step {
    if let Some(left) = left(scene.timing.start, age) {
        return Step::nothing(scene, Some(left));
    }
    let old = scene.pod.status.clone().unwrap_or_default();
    if let Behaviour::Evicted(after) = scene.behaviour
        && left(scene.timing.start + *after, age).is_none()
    {
        return evict(scene, old);
    }
    let mut moves = Moves { events: Vec::new(), next: None };
    let statuses: Vec<ContainerStatus> =
        old.container_statuses.iter().flatten().map(|one| moves.container(scene, one, age)).collect();
    if Some(&statuses) == old.container_statuses.as_ref() {
        return Step::nothing(scene, moves.next);
    }
    let mut status = old;
    status.pod_ip = Some(scene.pod_ip.to_owned());
    status.pod_ips = Some(vec![PodIP { ip: scene.pod_ip.to_owned() }]);
    status.init_container_statuses = status.init_container_statuses.map(|init| initialize(scene, &init));
    status.phase = Some(phase(scene, &statuses).into());
    status.container_statuses = Some(statuses);
    Step { status: scene.finish(status, true), events: moves.events, next: moves.next, gone: false }
}

/// The node is short of something and throws the Pod out.
fn evict(scene: &Scene<'_>, old: PodStatus) -> Step {
    let message = "The node was low on resource: memory. Simulated by annotation windlass.dev/simulate.";
    let killed = Exit { code: 137, reason: "Error", after: Duration::ZERO };
    let end =
        |all: &[ContainerStatus]| all.iter().map(|one| containers::end(one, &killed, scene.now)).collect();
    let mut status = old;
    status.phase = Some("Failed".into());
    status.reason = Some("Evicted".into());
    status.message = Some(message.into());
    status.container_statuses = status.container_statuses.as_deref().map(end);
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

/// Init containers end well before the others start; sidecars go on.
fn initialize(scene: &Scene<'_>, init: &[ContainerStatus]) -> Vec<ContainerStatus> {
    let spec = scene.spec();
    let sidecar = |name: &str| spec.init_containers.iter().flatten().any(|c| c.name == name && is_sidecar(c));
    let run = |status: &ContainerStatus| {
        if status.container_id.is_some() {
            return status.clone();
        }
        let started = containers::start(scene.pod, status, scene.now);
        let mut status =
            if sidecar(&status.name) { started } else { containers::end(&started, &DONE, scene.now) };
        status.ready = true;
        status
    };
    init.iter().map(run).collect()
}

fn phase(scene: &Scene<'_>, statuses: &[ContainerStatus]) -> &'static str {
    let ended = |status: &ContainerStatus| {
        containers::terminated(status).map(|end| end.exit_code).filter(|code| !scene.restarts(*code))
    };
    let codes: Vec<i32> = statuses.iter().filter_map(ended).collect();
    if !statuses.is_empty() && codes.len() == statuses.len() {
        return if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
    }
    if statuses.iter().any(|status| status.container_id.is_some()) { "Running" } else { "Pending" }
}

/// What the steps of the containers add up to.
struct Moves {
    events: Vec<Event>,
    next: Option<Duration>,
}

impl Moves {
    fn wait(&mut self, left: Duration) {
        self.next = Some(self.next.map_or(left, |next| next.min(left)));
    }

    fn container(&mut self, scene: &Scene<'_>, status: &ContainerStatus, age: Duration) -> ContainerStatus {
        if containers::is_waiting_for(status, &[CREATING, INITIALIZING]) {
            return if *scene.behaviour == Behaviour::PullFails {
                self.fail_pull(status)
            } else {
                self.start(scene, status)
            };
        }
        if containers::is_waiting_for(status, &[PULL_FAILED]) {
            return self.retry_pull(scene, status, age);
        }
        if containers::is_waiting_for(status, &[CRASH_LOOP]) {
            let since = containers::last_end(status).map_or(Duration::MAX, |end| scene.since(end));
            return match left(containers::back_off_time(status.restart_count), since) {
                Some(left) => {
                    self.wait(left);
                    status.clone()
                }
                None => self.start(scene, status),
            };
        }
        match containers::terminated(status) {
            Some(end) if scene.restarts(end.exit_code) => self.restart(scene, status),
            None if containers::started_at(status).is_some() => self.run(scene, status),
            // Ended for good, or waiting for ever.
            _ => status.clone(),
        }
    }

    fn start(&mut self, scene: &Scene<'_>, status: &ContainerStatus) -> ContainerStatus {
        let note = format!(
            "Container image \"{}\" already present on machine and can be accessed by the pod",
            status.image
        );
        self.events.push(Event::normal("Pulled", note).action("Pulling"));
        self.events.push(Event::normal("Created", "Container created").action("Creating"));
        self.events.push(Event::normal("Started", "Container started").action("Starting"));
        let started = containers::start(scene.pod, status, scene.now);
        // A container that ends at once is never seen running: its Deployment must not seem available.
        self.run(scene, &started)
    }

    /// A running container ends, becomes ready, or goes on.
    fn run(&mut self, scene: &Scene<'_>, status: &ContainerStatus) -> ContainerStatus {
        let age = containers::started_at(status).map_or(Duration::ZERO, |start| scene.since(start));
        if let Behaviour::Exit(exit) = scene.behaviour {
            match left(exit.after, age) {
                Some(left) => self.wait(left),
                None => return containers::end(status, exit, scene.now),
            }
        }
        if let Behaviour::Evicted(after) = scene.behaviour
            && let Some(left) = left(*after, age)
        {
            self.wait(left);
        }
        if status.ready || *scene.behaviour == Behaviour::NeverReady {
            return status.clone();
        }
        if let Some(left) = left(scene.timing.ready, age) {
            self.wait(left);
            return status.clone();
        }
        ContainerStatus { ready: true, ..status.clone() }
    }

    /// The first restart comes at once, later ones after a wait.
    fn restart(&mut self, scene: &Scene<'_>, status: &ContainerStatus) -> ContainerStatus {
        if status.restart_count == 0 {
            return self.start(scene, status);
        }
        let meta = &scene.pod.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let note = format!(
            "Back-off restarting failed container {} in pod {}_{}({})",
            status.name,
            text(&meta.name),
            text(&meta.namespace),
            text(&meta.uid)
        );
        self.events.push(Event::warning("BackOff", note).action("Restarting"));
        containers::back_off(scene.pod, status)
    }

    fn fail_pull(&mut self, status: &ContainerStatus) -> ContainerStatus {
        let image = &status.image;
        let note = format!("Failed to pull image \"{image}\": {}", pull_error(image));
        self.events.push(Event::normal("Pulling", format!("Pulling image \"{image}\"")).action("Pulling"));
        self.events.push(Event::warning("Failed", note).action("Pulling"));
        self.events.push(Event::warning("Failed", format!("Error: {PULL_FAILED}")).action("Pulling"));
        self.wait(PULL_RETRY);
        let state = containers::waiting_state(PULL_FAILED, Some(pull_error(image)));
        ContainerStatus { state: Some(state), ..status.clone() }
    }

    fn retry_pull(&mut self, scene: &Scene<'_>, status: &ContainerStatus, age: Duration) -> ContainerStatus {
        if let Some(left) = left(scene.timing.start + PULL_RETRY, age) {
            self.wait(left);
            return status.clone();
        }
        let image = &status.image;
        self.events
            .push(Event::normal("BackOff", format!("Back-off pulling image \"{image}\"")).action("Pulling"));
        self.events.push(Event::warning("Failed", format!("Error: {PULL_BACK_OFF}")).action("Pulling"));
        let message = format!("Back-off pulling image \"{image}\": {PULL_FAILED}: {}", pull_error(image));
        ContainerStatus {
            state: Some(containers::waiting_state(PULL_BACK_OFF, Some(message))),
            ..status.clone()
        }
    }
}

fn pull_error(image: &str) -> String {
    format!("failed to pull and unpack image \"{image}\": not found (simulated)")
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
    if let Some(left) = left(scene.timing.stop.min(grace), passed) {
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
        let note = format!("Stopping container {}", status.name);
        events.push(Event::normal("Killing", note).action("Killing"));
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
