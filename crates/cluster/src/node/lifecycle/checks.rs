//! Probes and hooks of containers: which of them fail, and how long that is borne. Pure.

use std::time::Duration;

use windlass::k8s_openapi::api::core::v1::{Container, ExecAction, LifecycleHandler, Probe};

use super::{
    super::{
        behaviour::{Behaviour, Check},
        command::{self, Course},
    },
    Scene, is_sidecar,
};

/// Whether a command ends badly whatever happens.
pub(super) fn can_only_fail(exec: Option<&ExecAction>) -> bool {
    matches!(course(exec), Some(Course::Ends { code, .. }) if code != 0)
}

fn course(exec: Option<&ExecAction>) -> Option<Course> {
    exec?.command.as_deref().map(command::of_words)
}

/// From the start of a container to the failure of a probe that is one too many.
fn patience(probe: &Probe) -> Duration {
    let seconds =
        |number: Option<i32>, default: u64| number.map_or(default, |n| u64::try_from(n).unwrap_or(0));
    let (delay, period) = (seconds(probe.initial_delay_seconds, 0), seconds(probe.period_seconds, 10));
    let failures = seconds(probe.failure_threshold, 3).saturating_sub(1);
    Duration::from_secs(delay.saturating_add(period.saturating_mul(failures)))
}

impl Scene<'_> {
    /// A container that goes on, by its name.
    fn lasting(&self, name: &str) -> Option<&Container> {
        let spec = self.pod.spec.as_ref()?;
        let sidecars = spec.init_containers.iter().flatten().filter(|init| is_sidecar(init));
        spec.containers.iter().chain(sidecars).find(|container| container.name == name)
    }

    fn is_told(&self, check: Check) -> bool {
        *self.behaviour == Behaviour::Fails(check)
    }

    /// How long a container runs whose probe fails; `None` if it does not.
    pub(super) fn patience(&self, check: Check, name: &str) -> Option<Duration> {
        let container = self.lasting(name)?;
        let probe = match check {
            Check::Startup => container.startup_probe.as_ref()?,
            Check::Liveness => container.liveness_probe.as_ref()?,
            Check::PostStart | Check::PreStop => return None,
        };
        (self.is_told(check) || can_only_fail(probe.exec.as_ref())).then(|| patience(probe))
    }

    fn hook(&self, check: Check, name: &str) -> Option<&LifecycleHandler> {
        let hooks = self.lasting(name)?.lifecycle.as_ref()?;
        match check {
            Check::PostStart => hooks.post_start.as_ref(),
            Check::PreStop => hooks.pre_stop.as_ref(),
            Check::Startup | Check::Liveness => None,
        }
    }

    /// Whether a container has a hook and it fails.
    pub(super) fn fails(&self, check: Check, name: &str) -> bool {
        self.hook(check, name).is_some_and(|hook| self.is_told(check) || can_only_fail(hook.exec.as_ref()))
    }

    /// How long the containers take to stop: their hooks come first, all at the same time.
    pub(super) fn stop_time(&self) -> Duration {
        let containers = self.pod.spec.iter().flat_map(|spec| &spec.containers);
        let longest =
            containers.filter_map(|container| self.hook(Check::PreStop, &container.name)).map(|hook| {
                let sleep = hook.sleep.as_ref().and_then(|sleep| u64::try_from(sleep.seconds).ok());
                match (sleep, course(hook.exec.as_ref())) {
                    (Some(seconds), _) => Duration::from_secs(seconds),
                    (None, Some(Course::Ends { after, .. })) => after,
                    (None, Some(Course::Endless)) => Duration::MAX,
                    _ => Duration::ZERO,
                }
            });
        self.timing.stop.saturating_add(longest.max().unwrap_or_default())
    }
}
