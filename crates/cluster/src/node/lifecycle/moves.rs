//! The steps of the containers of a Pod, and what they add up to. Pure.

use std::time::Duration;

use windlass::{
    Event,
    k8s_openapi::api::core::v1::{Container, ContainerStatus, EphemeralContainer},
};

use super::{
    super::{
        behaviour::{Behaviour, Check, Exit},
        containers::{self, CONFIG_ERROR, CRASH_LOOP, CREATING, INITIALIZING, PULL_BACK_OFF, PULL_FAILED},
    },
    PULL_RETRY, Scene, is_sidecar, left,
};

/// The end of a container that the node has had enough of.
const KILLED: Exit = Exit { code: 137, reason: "Error", after: Duration::ZERO };

/// What the steps of the containers add up to.
#[derive(Default)]
pub(super) struct Moves {
    pub(super) events: Vec<Event>,
    pub(super) next: Option<Duration>,
}

impl Moves {
    pub(super) fn wait(&mut self, left: Duration) {
        self.next = Some(self.next.map_or(left, |next| next.min(left)));
    }

    /// Init containers end well, one after the other, before the others start; sidecars go on. The first that has
    /// not yet keeps all after it waiting.
    pub(super) fn initialize(
        &mut self,
        scene: &Scene<'_>,
        init: &[ContainerStatus],
        age: Duration,
    ) -> Vec<ContainerStatus> {
        let spec = scene.spec();
        let sidecar =
            |name: &str| spec.init_containers.iter().flatten().any(|c| c.name == name && is_sidecar(c));
        let mut open = true;
        let mut step = |status: &ContainerStatus| {
            if !open {
                return status.clone();
            }
            let told = self.events.len();
            let status = match containers::terminated(status) {
                Some(end) if end.exit_code == 0 && !sidecar(&status.name) => status.clone(),
                Some(_) if scene.restarts(1) || sidecar(&status.name) => self.restart(scene, status),
                Some(_) => status.clone(),
                None => self.move_on(scene, status, age),
            };
            self.name_container(told, "initContainers", &status.name);
            let done = containers::terminated(&status).is_some_and(|end| end.exit_code == 0);
            let ready = if sidecar(&status.name) { status.container_id.is_some() } else { done };
            open = ready;
            ContainerStatus { ready, ..status }
        };
        init.iter().map(&mut step).collect()
    }

    /// Takes a container one step on; what is told about it names it.
    pub(super) fn container(
        &mut self,
        scene: &Scene<'_>,
        status: &ContainerStatus,
        age: Duration,
    ) -> ContainerStatus {
        let told = self.events.len();
        let next = self.move_on(scene, status, age);
        self.name_container(told, "containers", &status.name);
        next
    }

    /// Names the container in the events from one on.
    fn name_container(&mut self, from: usize, list: &str, name: &str) {
        let new = self.events.split_off(from);
        self.events.extend(new.into_iter().map(|event| event.field_path(format!("spec.{list}{{{name}}}"))));
    }

    fn move_on(&mut self, scene: &Scene<'_>, status: &ContainerStatus, age: Duration) -> ContainerStatus {
        if containers::is_waiting_for(status, &[CREATING, INITIALIZING]) {
            return if scene.lacks(&status.image) {
                self.fail_pull(status)
            } else {
                self.start(scene, status)
            };
        }
        if containers::is_waiting_for(status, &[CONFIG_ERROR]) {
            let lacks = scene.missing.containers.contains_key(&status.name);
            return if lacks { status.clone() } else { self.start(scene, status) };
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
        if let Some(why) = scene.missing.containers.get(&status.name) {
            self.events.push(Event::warning("Failed", format!("Error: {why}")).action("Creating"));
            return containers::misconfigured(status, why);
        }
        self.events.push(Event::normal("Created", "Container created").action("Creating"));
        self.events.push(Event::normal("Started", "Container started").action("Starting"));
        let started = containers::start(scene.pod, status, scene.now);
        if scene.fails(Check::PostStart, &status.name) {
            let failed = Event::warning("FailedPostStartHook", "PostStartHook failed");
            self.events.push(failed.action("Starting"));
            self.events.push(Event::normal("Killing", "FailedPostStartHook").action("Killing"));
            return containers::end(&started, &KILLED, scene.now);
        }
        // A container that ends at once is never seen running: its Deployment must not seem available.
        self.run(scene, &started)
    }

    /// A running container ends, becomes ready, or goes on.
    fn run(&mut self, scene: &Scene<'_>, status: &ContainerStatus) -> ContainerStatus {
        let age = containers::started_at(status).map_or(Duration::ZERO, |start| scene.since(start));
        if let Some(exit) = scene.end_of(&status.name) {
            match left(exit.after, age) {
                Some(left) => self.wait(left),
                None => return containers::end(status, &exit, scene.now),
            }
        }
        if let Behaviour::Evicted(after) = scene.behaviour
            && let Some(left) = left(*after, age)
        {
            self.wait(left);
        }
        for (check, name) in [(Check::Startup, "Startup"), (Check::Liveness, "Liveness")] {
            let Some(patience) = scene.patience(check, &status.name) else { continue };
            match left(patience, age) {
                Some(left) => self.wait(left),
                None => return self.kill(scene, status, name),
            }
            if check == Check::Startup {
                return ContainerStatus { started: Some(false), ready: false, ..status.clone() };
            }
        }
        // It may be told while it runs.
        if *scene.behaviour == Behaviour::NeverReady {
            return ContainerStatus { ready: false, ..status.clone() };
        }
        if status.ready {
            return status.clone();
        }
        let Some(ready) = scene.ready_after(&status.name) else { return status.clone() };
        if let Some(left) = left(ready, age) {
            self.wait(left);
            return status.clone();
        }
        ContainerStatus { ready: true, ..status.clone() }
    }

    /// A probe has failed too often.
    fn kill(&mut self, scene: &Scene<'_>, status: &ContainerStatus, probe: &str) -> ContainerStatus {
        let note = format!("{probe} probe failed: simulated by Windlass");
        self.events.push(Event::warning("Unhealthy", note).action("Probing"));
        let then = if scene.restarts(KILLED.code) { ", will be restarted" } else { "" };
        let note = format!("Container {} failed {} probe{then}", status.name, probe.to_lowercase());
        self.events.push(Event::normal("Killing", note).action("Killing"));
        containers::end(status, &KILLED, scene.now)
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
        if let Some(left) = left(scene.timing.start.saturating_add(PULL_RETRY), age) {
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

impl Moves {
    /// Debug containers come at any time, start at once, and are never started again.
    pub(super) fn debug(
        &mut self,
        scene: &Scene<'_>,
        old: Option<&[ContainerStatus]>,
    ) -> Option<Vec<ContainerStatus>> {
        let known = old.unwrap_or_default();
        let wanted = scene.pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
        let mut step = |container: &EphemeralContainer| {
            let status = known.iter().find(|status| status.name == container.name);
            let told = self.events.len();
            let next = match status {
                Some(status) if containers::started_at(status).is_some() => self.run(scene, status),
                Some(status) => status.clone(),
                None => self.start(scene, &containers::waiting(&plain(container), CREATING)),
            };
            self.name_container(told, "ephemeralContainers", &container.name);
            next
        };
        // Nobody asks a debug container whether it is ready.
        let all: Vec<_> =
            wanted.map(|container| ContainerStatus { ready: false, ..step(container) }).collect();
        (!all.is_empty()).then_some(all)
    }
}

/// A debug container as the container that it is.
pub(super) fn plain(container: &EphemeralContainer) -> Container {
    Container {
        name: container.name.clone(),
        image: container.image.clone(),
        command: container.command.clone(),
        args: container.args.clone(),
        volume_mounts: container.volume_mounts.clone(),
        ..Container::default()
    }
}
