//! Sizes and the limits within which a rollout moves: maxSurge and maxUnavailable in Pods. Pure.

use windlass::k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet, RollingUpdateDeployment};

use crate::amount;

/// How many Pods the Deployment asks for.
pub(super) fn desired(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

/// How many Pods a ReplicaSet asks for.
pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// How many Pods of a ReplicaSet are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// How many Pods some ReplicaSets ask for together.
pub(super) fn total<'a>(sets: impl IntoIterator<Item = &'a std::sync::Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().fold(0, |sum: i32, set| sum.saturating_add(replicas(set)))
}

/// Whether old and new Pods may run side by side.
pub(super) fn is_rolling(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    strategy.is_none_or(|strategy| strategy == "RollingUpdate")
}

/// How many Pods may run beyond the desired number.
pub(super) fn max_surge(spec: &DeploymentSpec) -> i32 {
    if is_rolling(spec) { fenceposts(spec).0 } else { 0 }
}

/// How many Pods may run at most. The surge may be any number, so the sum may be more than a number can say.
pub(super) fn most(spec: &DeploymentSpec) -> i32 {
    desired(spec).saturating_add(max_surge(spec))
}

/// How many Pods of the desired number may be unavailable.
pub(super) fn max_unavailable(spec: &DeploymentSpec) -> i32 {
    if is_rolling(spec) { fenceposts(spec).1.min(desired(spec)) } else { 0 }
}

fn fenceposts(spec: &DeploymentSpec) -> (i32, i32) {
    let nothing = RollingUpdateDeployment::default();
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let rolling = rolling.unwrap_or(&nothing);
    let surge = rolling.max_surge.as_ref().map_or(0, |value| amount::rounded_up(value, desired(spec)));
    let unavailable =
        rolling.max_unavailable.as_ref().map_or(0, |value| amount::rounded_down(value, desired(spec)));
    // Percentages may both round to nothing, and then no step would be allowed.
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

#[cfg(test)]
pub(super) mod tests {
    use windlass::k8s_openapi::{
        api::apps::v1::DeploymentStrategy, apimachinery::pkg::util::intstr::IntOrString,
    };

    use super::*;

    pub(crate) fn rolling(replicas: i32, surge: &str, unavailable: &str) -> DeploymentSpec {
        let amount = |text: &str| match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String(text.into()),
        };
        DeploymentSpec {
            replicas: Some(replicas),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".into()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(amount(surge)),
                    max_unavailable: Some(amount(unavailable)),
                }),
            }),
            ..DeploymentSpec::default()
        }
    }

    #[test]
    fn a_surge_rounds_up_and_unavailability_rounds_down() {
        let spec = rolling(10, "25%", "25%");
        assert_eq!((max_surge(&spec), max_unavailable(&spec)), (3, 2));
        let spec = rolling(1, "25%", "25%");
        assert_eq!((max_surge(&spec), max_unavailable(&spec)), (1, 0));
    }

    #[test]
    fn one_step_is_always_allowed() {
        let spec = rolling(3, "0%", "10%");
        assert_eq!((max_surge(&spec), max_unavailable(&spec)), (0, 1));
    }

    #[test]
    fn no_more_can_be_unavailable_than_are_wanted() {
        assert_eq!(max_unavailable(&rolling(2, "0", "5")), 2);
        assert_eq!(max_unavailable(&rolling(0, "0", "5")), 0);
    }

    #[test]
    fn recreation_knows_no_surge() {
        let mut spec = rolling(4, "50%", "50%");
        spec.strategy.as_mut().unwrap().type_ = Some("Recreate".into());
        assert_eq!((max_surge(&spec), max_unavailable(&spec)), (0, 0));
    }
}
