//! What the autoscaler of a WebApp says of itself. Pure.

use k8s_openapi::{
    api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use windlass::conditions::{is_false, is_true, is_unknown};

/// The condition that says whether the load decides how many Pods serve.
pub(super) const READY: &str = "AutoscalerReady";

/// Whether an autoscaler does its work. `live` is the one of the cluster.
pub(super) fn judge(live: Option<&HorizontalPodAutoscaler>) -> Condition {
    let said = live.and_then(|live| live.status.as_ref()?.conditions.as_deref()).unwrap_or_default();
    if said.is_empty() {
        return is_unknown(READY, "AutoscalerPending", "the autoscaler has not said anything yet");
    }
    match said.iter().find(|condition| is_trouble(condition)) {
        Some(trouble) => {
            let reason = trouble.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("Failed");
            let message = trouble.message.as_deref().unwrap_or_default();
            is_false(READY, reason, format!("the autoscaler does not scale: {message}"))
        }
        None => is_true(READY, "ScalingActive", "the autoscaler decides how many Pods serve"),
    }
}

/// Whether a person has to do something. An autoscaler that rests because nothing is to run is in order.
fn is_trouble(condition: &HorizontalPodAutoscalerCondition) -> bool {
    condition.status == "False"
        && match condition.type_.as_str() {
            "AbleToScale" => true,
            "ScalingActive" => condition.reason.as_deref() != Some("ScalingDisabled"),
            _ => false,
        }
}
