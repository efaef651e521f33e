//! HorizontalPodAutoscalers: stored as `autoscaling/v2`, and also served as `v1`, which knows one metric.

mod v1;

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::strategy::{Conversion, Generation},
    schema::quantity,
};

/// HorizontalPodAutoscaler.
pub(super) static AUTOSCALER: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults,
    validate: |new, _| validate(&new["spec"]),
    row: Some(row),
    ..Strategy::PLAIN
};

/// HorizontalPodAutoscaler of `autoscaling/v1`.
pub(super) static AUTOSCALER_V1: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |object| {
        default(object, "spec", || json!({}));
        default(&mut object["spec"], "minReplicas", || json!(1));
        v1::default_percentage(object);
    },
    validate: AUTOSCALER.validate,
    conversion: Some(Conversion {
        show: v1::to_old,
        store: v1::to_stored,
        stored_field: |field| Cow::Borrowed(field),
    }),
    row: Some(|object, now| row(&v1::to_stored(object.clone()), now)),
    ..Strategy::PLAIN
};

const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

fn defaults(object: &mut Value) {
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

fn validate(spec: &Value) -> Causes {
    let mut causes = Vec::new();
    let number = |field: &str| spec[field].as_i64().unwrap_or(0);
    let (least, most) = (number("minReplicas"), number("maxReplicas"));
    if most < least {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), why));
    }
    let reference = &spec["scaleTargetRef"];
    check::required(&mut causes, reference, "spec.scaleTargetRef", "kind");
    check::required(&mut causes, reference, "spec.scaleTargetRef", "name");
    let version = text(reference, "/apiVersion");
    if !version.contains('/') && version != "v1" {
        let why = "apiVersion must specify API group";
        causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &json!(version), why));
    }
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        validate_metric(&mut causes, metric, &format!("spec.metrics[{index}]"));
    }
    let outside =
        list(spec, "metrics").iter().any(|metric| matches!(text(metric, "/type"), "Object" | "External"));
    if spec.get("minReplicas").is_some() && least == 0 && !outside {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", why));
    }
    for rules in ["scaleUp", "scaleDown"] {
        let tolerance = spec.pointer(&format!("/behavior/{rules}/tolerance"));
        let shown = tolerance.map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
        if let Some(shown) = shown.filter(|shown| quantity::parse(shown) < quantity::parse("0")) {
            let field = format!("spec.behavior.{rules}.tolerance");
            causes.push(Cause::invalid(field, &json!(shown), "must be greater than or equal to 0"));
        }
    }
    if least < 0 {
        causes.push(Cause::invalid("spec.minReplicas", &json!(least), "must be greater than or equal to 0"));
    }
    if most == 0 {
        causes.push(Cause::required("spec.maxReplicas", ""));
    } else if most < 0 {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), "must be greater than or equal to 1"));
    }
    causes
}

fn validate_metric(causes: &mut Causes, metric: &Value, place: &str) {
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        text(object, "/spec/scaleTargetRef/kind"),
        text(object, "/spec/scaleTargetRef/name")
    );
    let current = cells::list(object, "/status/currentMetrics");
    let shown: Vec<String> = cells::list(object, "/spec/metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| self::metric(metric, current.get(index)))
        .collect();
    let metrics = if shown.is_empty() { "<none>".to_owned() } else { cells::some_of(shown, 2, ", ") };
    vec![
        cells::name(object),
        json!(reference),
        json!(metrics),
        cells::or(&cells::plain(object.pointer("/spec/minReplicas")), "<unset>"),
        json!(cells::number(object, "/spec/maxReplicas")),
        json!(cells::number(object, "/status/currentReplicas")),
        cells::age(object, now),
    ]
}

/// `cpu: 30%/80%`: what is measured and what is wanted.
fn metric(metric: &Value, current: Option<&Value>) -> String {
    let kind = text(metric, "/type");
    let mut field = kind.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let Some(source) = metric.get(&field) else { return "<unknown type>".into() };
    let measured = |name: &str| {
        let found = current.and_then(|current| current.get(&field)?.get("current")?.get(name));
        if found.is_none() { "<unknown>".to_owned() } else { cells::plain(found) }
    };
    let target = |name: &str| source.pointer(&format!("/target/{name}"));
    if matches!(kind, "Resource" | "ContainerResource") {
        let resource = text(source, "/name");
        if let Some(wanted) = target("averageValue") {
            return format!("{resource}: {}/{}", measured("averageValue"), cells::plain(Some(wanted)));
        }
        let percent = match measured("averageUtilization").as_str() {
            "<unknown>" => "<unknown>".to_owned(),
            known => format!("{known}%"),
        };
        let wanted = target("averageUtilization").map_or("<auto>".to_owned(), |wanted| format!("{wanted}%"));
        return format!("{resource}: {percent}/{wanted}");
    }
    match (target("averageValue"), kind) {
        (Some(wanted), "Pods") => format!("{}/{}", measured("averageValue"), cells::plain(Some(wanted))),
        (Some(wanted), _) => format!("{}/{} (avg)", measured("averageValue"), cells::plain(Some(wanted))),
        (None, _) => format!("{}/{}", measured("value"), cells::plain(target("value"))),
    }
}
