//! Container statuses: one container's step from one state to the next. Pure.

use std::{fmt::Write, time::Duration};

use sha2::{Digest, Sha256};
use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{
            Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
            ContainerStateWaiting, ContainerStatus, Pod, ResourceRequirements, VolumeMountStatus,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use super::behaviour::Exit;

pub(super) const CREATING: &str = "ContainerCreating";
pub(super) const INITIALIZING: &str = "PodInitializing";
pub(super) const PULL_FAILED: &str = "ErrImagePull";
pub(super) const PULL_BACK_OFF: &str = "ImagePullBackOff";
pub(super) const CRASH_LOOP: &str = "CrashLoopBackOff";
pub(super) const CONFIG_ERROR: &str = "CreateContainerConfigError";

/// The longest wait between two restarts.
const LONGEST_BACK_OFF: u64 = 300;

/// The status of a container that has not started.
pub(super) fn waiting(container: &Container, reason: &str) -> ContainerStatus {
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        image_id: String::new(),
        ready: false,
        started: Some(false),
        restart_count: 0,
        state: Some(waiting_state(reason, None)),
        last_state: Some(ContainerState::default()),
        volume_mounts: mounts(container),
        ..ContainerStatus::default()
    }
}

pub(super) fn waiting_state(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts = container.volume_mounts.as_ref()?;
    let status = |mount: &windlass::k8s_openapi::api::core::v1::VolumeMount| VolumeMountStatus {
        mount_path: mount.mount_path.clone(),
        name: mount.name.clone(),
        read_only: mount.read_only,
        recursive_read_only: mount.read_only.filter(|read_only| *read_only).map(|_| "Disabled".into()),
        ..VolumeMountStatus::default()
    };
    Some(mounts.iter().map(status).collect())
}

/// Starts a container for the first time or anew.
pub(super) fn start(pod: &Pod, status: &ContainerStatus, now: Timestamp) -> ContainerStatus {
    let mut new = status.clone();
    let again = status.container_id.is_some();
    if again {
        new.restart_count = new.restart_count.saturating_add(1);
        if let Some(ended) = status.state.as_ref().filter(|state| state.terminated.is_some()) {
            new.last_state = Some(ended.clone());
        }
    }
    new.container_id =
        Some(format!("windlass://{}", digest(pod, &[&status.name, &new.restart_count.to_string()])));
    new.image_id = format!("sha256:{}", hex(Sha256::digest(status.image.as_bytes()).as_slice()));
    new.image = full_image(&status.image);
    new.resources = Some(ResourceRequirements::default());
    new.started = Some(true);
    new.ready = false;
    new.state = Some(ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(Time(now)) }),
        ..ContainerState::default()
    });
    new
}

/// Ends a container.
pub(super) fn end(status: &ContainerStatus, exit: &Exit, now: Timestamp) -> ContainerStatus {
    let mut new = status.clone();
    new.ready = false;
    new.started = Some(false);
    new.state = Some(ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: exit.code,
            reason: Some(exit.reason.to_owned()),
            started_at: Some(Time(started_at(status).unwrap_or(now))),
            finished_at: Some(Time(now)),
            container_id: status.container_id.clone(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    });
    new
}

/// A container that cannot be made as it is asked for.
pub(super) fn misconfigured(status: &ContainerStatus, why: &str) -> ContainerStatus {
    let mut new = status.clone();
    if let Some(ended) = status.state.as_ref().filter(|state| state.terminated.is_some()) {
        new.last_state = Some(ended.clone());
    }
    new.state = Some(waiting_state(CONFIG_ERROR, Some(why.to_owned())));
    new
}

/// Puts a container that ended into its wait for the next start.
pub(super) fn back_off(pod: &Pod, status: &ContainerStatus) -> ContainerStatus {
    let mut new = status.clone();
    new.last_state.clone_from(&status.state);
    let meta = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let wait = describe(back_off_time(status.restart_count));
    let message = format!(
        "back-off {wait} restarting failed container={} pod={}_{}({})",
        status.name,
        text(&meta.name),
        text(&meta.namespace),
        text(&meta.uid),
    );
    new.state = Some(waiting_state(CRASH_LOOP, Some(message)));
    new
}

/// How long a container waits that was restarted this often: 10 s, 20 s, 40 s, … five minutes.
pub(super) fn back_off_time(restarts: i32) -> Duration {
    let doublings = u32::try_from(restarts.saturating_sub(1)).unwrap_or(0).min(10);
    Duration::from_secs((10_u64 << doublings).min(LONGEST_BACK_OFF))
}

/// As Go prints a duration.
fn describe(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

pub(super) fn is_waiting_for(status: &ContainerStatus, reasons: &[&str]) -> bool {
    let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
    waiting.and_then(|waiting| waiting.reason.as_deref()).is_some_and(|reason| reasons.contains(&reason))
}

pub(super) fn started_at(status: &ContainerStatus) -> Option<Timestamp> {
    let running = status.state.as_ref()?.running.as_ref()?;
    Some(running.started_at.as_ref()?.0)
}

pub(super) fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// When the container last ended.
pub(super) fn last_end(status: &ContainerStatus) -> Option<Timestamp> {
    let ended = terminated(status).or_else(|| status.last_state.as_ref()?.terminated.as_ref())?;
    Some(ended.finished_at.as_ref()?.0)
}

/// An image's full name: `nginx` is `docker.io/library/nginx:latest`.
fn full_image(image: &str) -> String {
    let (first, rest) = image.split_once('/').unwrap_or(("", image));
    let named = if first.contains(['.', ':']) || first == "localhost" {
        image.to_owned()
    } else if first.is_empty() {
        format!("docker.io/library/{rest}")
    } else {
        format!("docker.io/{image}")
    };
    let last = named.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) { named } else { format!("{named}:latest") }
}

fn digest(pod: &Pod, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    hash.update(pod.metadata.uid.as_deref().unwrap_or_default());
    for part in parts {
        hash.update([0]);
        hash.update(part);
    }
    hex(hash.finalize().as_slice())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string must succeed");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_get_their_full_names() {
        for (short, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.27", "docker.io/library/nginx:1.27"),
            ("bitnami/redis", "docker.io/bitnami/redis:latest"),
            ("ghcr.io/a/b:1", "ghcr.io/a/b:1"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            ("a@sha256:ff", "docker.io/library/a@sha256:ff"),
        ] {
            assert_eq!(full_image(short), full);
        }
    }

    #[test]
    fn the_wait_doubles_to_five_minutes() {
        let waits: Vec<u64> = (1..8).map(|restarts| back_off_time(restarts).as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(describe(back_off_time(4)), "1m20s");
    }
}
