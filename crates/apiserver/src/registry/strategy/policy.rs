//! Disruption budgets and autoscalers.

use serde_json::{Value, json};

use super::{
    Resource,
    check::{self, Causes, at, list},
    default, text,
};
use crate::error::Cause;

const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Defaults of an object of this room.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match (&*resource.plural, &*resource.version) {
        ("horizontalpodautoscalers", "v1") => {
            default(object, "spec", || json!({}));
            default(&mut object["spec"], "minReplicas", || json!(1));
        }
        ("horizontalpodautoscalers", _) => default_autoscaler(object),
        ("poddisruptionbudgets", _) => default(object, "spec", || json!({})),
        _ => {}
    }
}

fn default_autoscaler(object: &mut Value) {
    default(object, "spec", || json!({}));
    let spec = &mut object["spec"];
    default(spec, "minReplicas", || json!(1));
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentMetrics").or_insert(Value::Null);
    }
    let spec = &mut object["spec"];
    if list(spec, "metrics").is_empty() {
        spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
    if let Some(behavior) = spec.get_mut("behavior") {
        default_behavior(behavior);
    }
}

fn default_behavior(behavior: &mut Value) {
    default(behavior, "scaleUp", || json!({}));
    default(behavior, "scaleDown", || json!({}));
    let all = |value: i64, kind: &str| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = &mut behavior["scaleUp"];
    default(up, "stabilizationWindowSeconds", || json!(0));
    default(up, "selectPolicy", || json!("Max"));
    default(up, "policies", || json!([all(4, "Pods"), all(100, "Percent")]));
    let down = &mut behavior["scaleDown"];
    default(down, "selectPolicy", || json!("Max"));
    default(down, "policies", || json!([all(100, "Percent")]));
}

/// What is wrong with an object of this room.
pub(super) fn validate(resource: &Resource, new: &Value) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "poddisruptionbudgets" => budget(&mut causes, &new["spec"]),
        "horizontalpodautoscalers" => autoscaler(&mut causes, &new["spec"]),
        _ => {}
    }
    causes
}

fn budget(causes: &mut Causes, spec: &Value) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if let (Some(least), Some(most)) = (least, most) {
        let null = Value::Null;
        let shown = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec.get("selector").unwrap_or(&null),
            spec.get("unhealthyPodEvictionPolicy").unwrap_or(&null)
        );
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {shown}: minAvailable and maxUnavailable cannot be both set"),
            field: "spec".into(),
        });
    }
    for (field, value) in [("spec.minAvailable", least), ("spec.maxUnavailable", most)] {
        if let Some(value) = value {
            check::int_or_percent(causes, value, field);
            check::not_above_all(causes, value, field);
        }
    }
    check::selector(causes, &spec["selector"], "spec.selector");
    check::one_of(causes, spec, "spec", "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"]);
}

fn autoscaler(causes: &mut Causes, spec: &Value) {
    let number = |field: &str| spec[field].as_i64().unwrap_or(0);
    let (least, most) = (number("minReplicas"), number("maxReplicas"));
    if most < least {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), why));
    }
    let reference = &spec["scaleTargetRef"];
    check::required(causes, reference, "spec.scaleTargetRef", "kind");
    check::required(causes, reference, "spec.scaleTargetRef", "name");
    let version = text(reference, "/apiVersion");
    if !version.contains('/') && version != "v1" {
        let why = "apiVersion must specify API group";
        causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &json!(version), why));
    }
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(causes, metric, &format!("spec.metrics[{index}]"));
    }
    let outside =
        list(spec, "metrics").iter().any(|metric| matches!(text(metric, "/type"), "Object" | "External"));
    if spec.get("minReplicas").is_some() && least == 0 && !outside {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", why));
    }
    if least < 0 {
        causes.push(Cause::invalid("spec.minReplicas", &json!(least), "must be greater than or equal to 0"));
    }
    if most == 0 {
        causes.push(Cause::required("spec.maxReplicas", ""));
    } else if most < 0 {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), "must be greater than or equal to 1"));
    }
}

fn metric(causes: &mut Causes, metric: &Value, place: &str) {
    let kind = text(metric, "/type");
    if !METRICS.contains(&kind) {
        causes.push(Cause::not_supported(at(place, "type"), kind, &METRICS));
        return;
    }
    let mut field = kind.to_owned();
    field[..1].make_ascii_lowercase();
    let Some(source) = metric.get(&field) else {
        let why = "must populate information for the given metric source";
        causes.push(Cause::required(at(place, &field), why));
        return;
    };
    let target = &source["target"];
    let path = format!("{place}.{field}.target");
    if !matches!(kind, "Resource" | "ContainerResource") {
        return;
    }
    match (target.get("averageUtilization"), target.get("averageValue")) {
        (None, None) => {
            let why = "must set either a target raw value or a target utilization";
            causes.push(Cause::required(at(&path, "averageUtilization"), why));
        }
        (Some(_), Some(_)) => {
            let why = "may not set both a target raw value and a target utilization";
            causes.push(Cause::forbidden(at(&path, "averageValue"), why));
        }
        _ => {}
    }
}
