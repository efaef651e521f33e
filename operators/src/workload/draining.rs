//! How one version of a server takes over from another without a request lost. Pure.
//!
//! A Pod that is to go is told so at the same time as every proxy of the cluster, and these need a moment to hear it.
//! A server that stopped at once would refuse what they still send.

use k8s_openapi::{
    api::{
        apps::v1::{DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{Lifecycle, LifecycleHandler, PodTemplateSpec, SleepAction},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

/// For how long a Pod that is to go serves on, in seconds.
const LINGER: i64 = 5;
/// What Kubernetes gives a Pod to end, unless told otherwise.
const GRACE: i64 = 30;

/// Lets the first container serve on for a while after the Pod's end was decided. The kubelet waits, not a program of
/// the image, which may have none.
pub(crate) fn lingering(mut template: PodTemplateSpec) -> PodTemplateSpec {
    let spec = template.spec.get_or_insert_default();
    // The wait is a part of the time that the Pod has to end, and must leave some of it.
    let seconds = LINGER.min(spec.termination_grace_period_seconds.unwrap_or(GRACE) - 1);
    if let Some(container) = spec.containers.first_mut().filter(|_| seconds > 0) {
        let sleep = LifecycleHandler { sleep: Some(SleepAction { seconds }), ..LifecycleHandler::default() };
        container.lifecycle = Some(Lifecycle { pre_stop: Some(sleep), ..Lifecycle::default() });
    }
    template
}

/// No Pod goes before the one that replaces it serves.
pub(crate) fn without_a_gap() -> DeploymentStrategy {
    DeploymentStrategy {
        type_: Some("RollingUpdate".into()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::String("25%".into())),
            max_unavailable: Some(IntOrString::Int(0)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Container, PodSpec};

    use super::*;

    #[test]
    fn a_pod_serves_on_only_as_long_as_its_grace_lasts() {
        let wait = |grace: Option<i64>| {
            let spec = PodSpec {
                termination_grace_period_seconds: grace,
                containers: vec![Container::default()],
                ..PodSpec::default()
            };
            let template = lingering(PodTemplateSpec { metadata: None, spec: Some(spec) });
            let container = template.spec.unwrap().containers.remove(0);
            container.lifecycle.map(|lifecycle| lifecycle.pre_stop.unwrap().sleep.unwrap().seconds)
        };
        assert_eq!(
            [None, Some(60), Some(3), Some(1), Some(0)].map(wait),
            [Some(5), Some(5), Some(2), None, None]
        );
    }
}
