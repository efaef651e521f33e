//! Kinds that bound and scale what others run.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::autoscaler::to_stored;

use super::{
    age,
    cells::{list, name, number, or, plain, some_of, text},
};

pub(super) fn budget(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        or(&plain(object.pointer("/spec/minAvailable")), "N/A"),
        or(&plain(object.pointer("/spec/maxUnavailable")), "N/A"),
        json!(number(object, "/status/disruptionsAllowed")),
        age(object, now),
    ]
}

pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    if text(object, "/apiVersion") == "autoscaling/v1" {
        return autoscaler(&to_stored(object.clone()), now);
    }
    let reference = format!(
        "{}/{}",
        text(object, "/spec/scaleTargetRef/kind"),
        text(object, "/spec/scaleTargetRef/name")
    );
    let current = list(object, "/status/currentMetrics");
    let shown: Vec<String> = list(object, "/spec/metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| self::metric(metric, current.get(index)))
        .collect();
    let metrics = if shown.is_empty() { "<none>".to_owned() } else { some_of(shown, 2, ", ") };
    vec![
        name(object),
        json!(reference),
        json!(metrics),
        or(&plain(object.pointer("/spec/minReplicas")), "<unset>"),
        json!(number(object, "/spec/maxReplicas")),
        json!(number(object, "/status/currentReplicas")),
        age(object, now),
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
        if found.is_none() { "<unknown>".to_owned() } else { plain(found) }
    };
    let target = |name: &str| source.pointer(&format!("/target/{name}"));
    if matches!(kind, "Resource" | "ContainerResource") {
        let resource = text(source, "/name");
        if let Some(wanted) = target("averageValue") {
            return format!("{resource}: {}/{}", measured("averageValue"), plain(Some(wanted)));
        }
        let percent = match measured("averageUtilization").as_str() {
            "<unknown>" => "<unknown>".to_owned(),
            known => format!("{known}%"),
        };
        let wanted = target("averageUtilization").map_or("<auto>".to_owned(), |wanted| format!("{wanted}%"));
        return format!("{resource}: {percent}/{wanted}");
    }
    match (target("averageValue"), kind) {
        (Some(wanted), "Pods") => format!("{}/{}", measured("averageValue"), plain(Some(wanted))),
        (Some(wanted), _) => format!("{}/{} (avg)", measured("averageValue"), plain(Some(wanted))),
        (None, _) => format!("{}/{}", measured("value"), plain(target("value"))),
    }
}

pub(super) fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, most) in hard {
        let used = object.pointer("/status/used").and_then(|used| used.get(resource));
        let used = used.map_or("0".to_owned(), |used| plain(Some(used)));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {used}/{}", plain(Some(most))));
    }
    vec![name(object), json!(requests.join(", ")), json!(limits.join(", ")), age(object, now)]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default = object.get("globalDefault").and_then(Value::as_bool).unwrap_or(false);
    vec![
        name(object),
        json!(number(object, "/value")),
        json!(default),
        age(object, now),
        json!(text(object, "/preemptionPolicy")),
    ]
}

pub(super) fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let dangling = list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Dangling");
    vec![
        name(object),
        json!(text(object, "/spec/priorityLevelConfiguration/name")),
        json!(number(object, "/spec/matchingPrecedence")),
        or(text(object, "/spec/distinguisherMethod/type"), "<none>"),
        age(object, now),
        json!(dangling.map_or("?", |one| text(one, "/status"))),
    ]
}

pub(super) fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    let none = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_else(|| json!("<none>"));
    vec![
        name(object),
        json!(text(object, "/spec/type")),
        none("/spec/limited/nominalConcurrencyShares"),
        none("/spec/limited/limitResponse/queuing/queues"),
        none("/spec/limited/limitResponse/queuing/handSize"),
        none("/spec/limited/limitResponse/queuing/queueLengthLimit"),
        age(object, now),
    ]
}
