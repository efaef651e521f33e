//! `autoscaling/v1`: what it cannot say travels in annotations, in the shape that old clients know.

use serde_json::{Map, Value, json};

use crate::registry::metadata;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// The utilization of the processor that is meant where nothing is said.
const CPU: u8 = 80;
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Fields of a metric in the old shape: where they are in the new one.
const TARGETS: [(&str, &str); 3] = [
    ("targetAverageUtilization", "averageUtilization"),
    ("targetAverageValue", "averageValue"),
    ("targetValue", "value"),
];

/// A stored autoscaler as `autoscaling/v1` shows it.
pub(super) fn to_old(mut stored: Value) -> Value {
    stored["apiVersion"] = json!("autoscaling/v1");
    let mut annotations = Map::new();
    let spec = &mut stored["spec"];
    let mut metrics = take_list(spec, "metrics");
    if let Some(index) = metrics.iter().position(is_cpu_utilization) {
        let cpu = metrics.remove(index);
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"].clone();
    }
    if !metrics.is_empty() {
        let old: Vec<String> = metrics.iter().map(|metric| old_metric(metric, "target", &TARGETS)).collect();
        annotations.insert(METRICS.into(), json!(format!("[{}]", old.join(","))));
    }
    if let Some(behavior) = spec.as_object_mut().and_then(|spec| spec.remove("behavior")) {
        annotations.insert(BEHAVIOR.into(), json!(old_behavior(&behavior)));
    }
    old_status(&mut stored["status"], &mut annotations);
    for (key, value) in annotations {
        let all = metadata::metadata(&mut stored).entry("annotations").or_insert_with(|| json!({}));
        all[key] = value;
    }
    stored
}

fn old_status(status: &mut Value, annotations: &mut Map<String, Value>) {
    const NOW: [(&str, &str); 3] = [
        ("currentAverageUtilization", "averageUtilization"),
        ("currentAverageValue", "averageValue"),
        ("currentValue", "value"),
    ];
    let current = take_list(status, "currentMetrics");
    if let Some(cpu) = current.iter().find(|metric| metric.pointer("/resource/name") == Some(&json!("cpu")))
        && let Some(percent) = cpu.pointer("/resource/current/averageUtilization")
    {
        status["currentCPUUtilizationPercentage"] = percent.clone();
    }
    if !current.is_empty() {
        let old: Vec<String> = current.iter().map(|metric| old_metric(metric, "current", &NOW)).collect();
        annotations.insert(CURRENT.into(), json!(format!("[{}]", old.join(","))));
    }
    let conditions = take_list(status, "conditions");
    if !conditions.is_empty() {
        let shown: Vec<String> = conditions
            .iter()
            .map(|one| object_text(one, &["type", "status", "lastTransitionTime", "reason", "message"]))
            .collect();
        annotations.insert(CONDITIONS.into(), json!(format!("[{}]", shown.join(","))));
    }
    if status.get("currentReplicas").is_none()
        && let Some(status) = status.as_object_mut()
    {
        status.insert("currentReplicas".into(), json!(0));
    }
}

fn take_list(object: &mut Value, field: &str) -> Vec<Value> {
    match object.as_object_mut().and_then(|map| map.remove(field)) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric.pointer("/resource/name") == Some(&json!("cpu"))
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

/// The fields of an object that it has, in this order.
fn object_text(object: &Value, fields: &[&str]) -> String {
    let pairs: Vec<String> = fields
        .iter()
        .filter_map(|field| object.get(*field).map(|value| format!("{}:{value}", json!(field))))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

/// A metric in the shape of the first version that had several.
fn old_metric(metric: &Value, amounts: &str, fields: &[(&str, &str)]) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut name = kind.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let source = &metric[&name];
    let mut pairs = Vec::new();
    if let Some(named) = source.get("name") {
        pairs.push(format!("\"name\":{named}"));
    }
    if let Some(named) = source.pointer("/metric/name") {
        pairs.push(format!("\"metricName\":{named}"));
    }
    for (old, new) in fields {
        if let Some(amount) = source[amounts].get(*new) {
            pairs.push(format!("{}:{amount}", json!(old)));
        }
    }
    format!("{{\"type\":{},{}:{{{}}}}}", json!(kind), json!(name), pairs.join(","))
}

/// Rules of behaviour with the names of the server's own fields.
fn old_behavior(behavior: &Value) -> String {
    let null = Value::Null;
    let rules = |direction: &str| -> String {
        let Some(rules) = behavior.get(direction) else { return "null".into() };
        let field = |name: &str| rules.get(name).unwrap_or(&null).to_string();
        let policies = rules.get("policies").and_then(Value::as_array).map(|list| {
            let one = |policy: &Value| {
                let (kind, value, period) = (&policy["type"], &policy["value"], &policy["periodSeconds"]);
                format!("{{\"Type\":{kind},\"Value\":{value},\"PeriodSeconds\":{period}}}")
            };
            format!("[{}]", list.iter().map(one).collect::<Vec<_>>().join(","))
        });
        format!(
            "{{\"StabilizationWindowSeconds\":{},\"SelectPolicy\":{},\"Policies\":{},\"Tolerance\":{}}}",
            field("stabilizationWindowSeconds"),
            field("selectPolicy"),
            policies.unwrap_or_else(|| "null".into()),
            field("tolerance")
        )
    };
    format!("{{\"ScaleUp\":{},\"ScaleDown\":{}}}", rules("scaleUp"), rules("scaleDown"))
}

/// Who names no metric at all means the processor's. Said here too, so that everybody who is asked about the object sees it.
pub(super) fn default_percentage(object: &mut Value) {
    let others = object["metadata"]["annotations"].get(METRICS).and_then(Value::as_str);
    let others = others.and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let spec = &mut object["spec"];
    if others.is_none_or(|others| others.is_empty()) && spec["targetCPUUtilizationPercentage"].is_null() {
        spec["targetCPUUtilizationPercentage"] = json!(CPU);
    }
}

/// An autoscaler of `autoscaling/v1` as it is stored.
pub(super) fn to_stored(mut old: Value) -> Value {
    old["apiVersion"] = json!("autoscaling/v2");
    let mut metrics = Vec::new();
    if let Some(text) = take_annotation(&mut old, METRICS) {
        let list: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        metrics.extend(list.iter().map(new_metric));
    }
    let spec = &mut old["spec"];
    let percent = spec.as_object_mut().and_then(|spec| spec.remove("targetCPUUtilizationPercentage"));
    if let Some(percent) = percent {
        metrics.insert(0, cpu_metric(percent));
    }
    if metrics.is_empty() {
        metrics.push(cpu_metric(json!(CPU)));
    }
    spec["metrics"] = Value::Array(metrics);
    if let Some(text) = take_annotation(&mut old, BEHAVIOR)
        && let Ok(behavior) = serde_json::from_str::<Value>(&text)
    {
        old["spec"]["behavior"] = lower_names(behavior);
    }
    new_status(&mut old);
    old
}

fn new_status(old: &mut Value) {
    let conditions = take_annotation(old, CONDITIONS).and_then(|text| serde_json::from_str(&text).ok());
    let current =
        take_annotation(old, CURRENT).and_then(|text| serde_json::from_str::<Vec<Value>>(&text).ok());
    let Some(status) = old.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.remove("currentCPUUtilizationPercentage");
    if status.get("currentReplicas") == Some(&json!(0)) {
        status.remove("currentReplicas");
    }
    let current = current.map(|list| list.iter().map(new_current).collect::<Vec<_>>());
    status.insert("currentMetrics".into(), json!(current));
    if let Some(Value::Array(conditions)) = conditions {
        status.insert("conditions".into(), Value::Array(conditions));
    }
}

fn cpu_metric(percent: Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

fn take_annotation(object: &mut Value, name: &str) -> Option<String> {
    let annotations = metadata::metadata(object).get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(name).and_then(|value| value.as_str().map(str::to_owned));
    let empty = annotations.is_empty();
    if empty {
        metadata::metadata(object).remove("annotations");
    }
    taken
}

/// Kind, field and content of a metric in the old shape.
fn source_of(old: &Value) -> (String, String, &Value) {
    let kind = old["type"].as_str().unwrap_or_default().to_owned();
    let mut name = kind.clone();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let content = old.get(&name).unwrap_or(&Value::Null);
    (kind, name, content)
}

fn new_metric(old: &Value) -> Value {
    let (kind, name, content) = source_of(old);
    let mut target = json!({});
    for (field, into) in TARGETS {
        if let Some(amount) = content.get(field) {
            target[into] = amount.clone();
            let meant = match into {
                "averageUtilization" => "Utilization",
                "averageValue" => "AverageValue",
                _ => "Value",
            };
            target["type"] = json!(meant);
        }
    }
    let mut source = json!({"target": target});
    name_source(&mut source, content);
    json!({"type": kind, name: source})
}

fn new_current(old: &Value) -> Value {
    let (kind, name, content) = source_of(old);
    let mut current = json!({});
    for (field, into) in [
        ("currentAverageUtilization", "averageUtilization"),
        ("currentAverageValue", "averageValue"),
        ("currentValue", "value"),
    ] {
        if let Some(amount) = content.get(field) {
            current[into] = amount.clone();
        }
    }
    let mut source = json!({"current": current});
    name_source(&mut source, content);
    json!({"type": kind, name: source})
}

fn name_source(source: &mut Value, content: &Value) {
    if let Some(named) = content.get("name") {
        source["name"] = named.clone();
    }
    if let Some(named) = content.get("metricName") {
        source["metric"] = json!({"name": named});
    }
}

/// Go's field names as JSON names; nulls are left out.
fn lower_names(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(mut key, value)| {
                if let Some(first) = key.get_mut(..1) {
                    first.make_ascii_lowercase();
                }
                (key, lower_names(value))
            })
            .collect(),
        Value::Array(list) => list.into_iter().map(lower_names).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_old_version_cannot_say_survives_a_round_trip() {
        let stored = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 60}}},
                {"type": "Pods", "pods": {"metric": {"name": "qps"},
                    "target": {"type": "AverageValue", "averageValue": "10"}}}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        let old = to_old(stored.clone());
        assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 60);
        assert_eq!(to_stored(old), stored);
    }
}
