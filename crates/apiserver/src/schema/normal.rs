//! The form in which a built-in object is stored: what remains after the real server has read it
//! into a Go struct and written it out again.
//!
//! Absent structs appear, nulls and empty lists disappear, quantities and times take their
//! canonical form. Custom objects are never touched by this: they stay as their author wrote them.

use serde_json::{Map, Value};

use super::{
    Additional, TypeRef, bytes,
    node::{Kind, Node, NodeId, Types},
    quantity,
    zero::{is_zero, zero_field},
};

pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
pub(super) const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
pub(super) const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

impl TypeRef {
    /// Brings a built-in object into its stored form. Unknown fields stay; see
    /// [`TypeRef::prune`](TypeRef::prune) for those. Values of the wrong type stay as they are.
    pub fn normalize(&self, object: &mut Value) {
        value(self.types(), self.id(), object);
    }
}

fn value(types: &Types, id: NodeId, at: &mut Value) {
    let node = types.get(id);
    match at {
        Value::Object(object) if node.kind == Some(Kind::Object) => struct_or_map(types, node, object),
        Value::Array(items) => {
            if let Some(child) = node.items {
                for item in items {
                    zero_for_null(types, child, item);
                    value(types, child, item);
                }
            }
        }
        _ => scalar(node, at),
    }
}

fn struct_or_map(types: &Types, node: &Node, object: &mut Map<String, Value>) {
    if let Additional::Schema(element) = node.additional {
        for item in object.values_mut() {
            zero_for_null(types, element, item);
            value(types, element, item);
        }
        return;
    }
    object.retain(|name, value| {
        let known = node.properties.contains_key(name);
        !known || !(value.is_null() || (is_empty(types, node, name, value)))
    });
    for (name, child) in &node.properties {
        if !object.contains_key(name)
            && let Some(zero) = zero_field(types, node, name, *child, 0)
        {
            object.insert(name.clone(), zero);
        }
        if let Some(at) = object.get_mut(name) {
            value(types, *child, at);
        }
    }
    for time in &node.times {
        object.entry(time.as_str()).or_insert(Value::Null);
    }
}

/// Whether `omitempty` drops the field: an empty list or map, or the zero value of a scalar that
/// is no pointer, in a field that may be absent.
fn is_empty(types: &Types, node: &Node, name: &str, value: &Value) -> bool {
    if node.required.iter().any(|required| required == name) {
        return false;
    }
    let Some(child) = node.properties.get(name).map(|id| types.get(*id)) else {
        return false;
    };
    match value {
        Value::Array(items) => items.is_empty() && child.kind == Some(Kind::Array),
        Value::Object(object) => object.is_empty() && matches!(child.additional, Additional::Schema(_)),
        Value::Null => false,
        scalar => !child.pointer && is_plain_scalar(child) && is_zero(scalar),
    }
}

/// A scalar that Go omits when it is zero; those it always writes have the zero as default.
fn is_plain_scalar(node: &Node) -> bool {
    let scalar = matches!(node.kind, Some(Kind::String | Kind::Integer | Kind::Number | Kind::Boolean));
    scalar && node.name.is_none() && !node.default.as_ref().is_some_and(is_zero)
}

/// A null among the items of a list or map is the zero value of their type.
fn zero_for_null(types: &Types, id: NodeId, at: &mut Value) {
    if !at.is_null() {
        return;
    }
    let node = types.get(id);
    *at = match node.kind {
        Some(Kind::Object) if !node.properties.is_empty() => Value::Object(Map::new()),
        Some(Kind::String) if matches!(node.format.as_deref(), None | Some("byte")) => {
            Value::String(String::new())
        }
        Some(Kind::Integer | Kind::Number) => 0.into(),
        Some(Kind::Boolean) => false.into(),
        _ => return,
    };
}

fn scalar(node: &Node, at: &mut Value) {
    match node.name.as_deref() {
        Some(QUANTITY) => {
            let text = match &*at {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return,
            };
            if let Some(canonical) = quantity::canonical(&text) {
                *at = Value::String(canonical);
            }
        }
        Some(name @ (TIME | MICRO_TIME)) => {
            let Some((text, time)) =
                at.as_str().and_then(|text| Some((text, text.parse::<jiff::Timestamp>().ok()?)))
            else {
                return;
            };
            // The server's own times, which are most, need not be written anew. (A leap second would be.)
            let own = text.len() == 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
            if name == TIME && own && !text.ends_with("60Z") {
                return;
            }
            let format = if name == TIME { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            *at = Value::String(time.strftime(format).to_string());
        }
        _ if node.format.as_deref() == Some("byte") => {
            if let Some(canonical) = at.as_str().and_then(bytes::canonical) {
                *at = Value::String(canonical);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::KUBERNETES;

    fn normal(definition: &str, mut object: Value) -> Value {
        let resolve = |name: &str| {
            let line = KUBERNETES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            serde_json::from_str(line).ok()
        };
        TypeRef::named(definition, &resolve).expect("the definition must load").normalize(&mut object);
        object
    }

    #[test]
    fn structs_appear_and_what_go_omits_disappears() {
        let pod = json!({"metadata": {"name": "p", "labels": {}}, "spec": {
            "hostNetwork": false,
            "automountServiceAccountToken": false,
            "nodeName": "",
            "volumes": [],
            "containers": [{"name": "c", "image": "", "tty": false, "ports": [{"containerPort": 80, "hostPort": 0}],
                "resources": {"limits": {"cpu": "0.5", "memory": 1024}}}],
        }});
        assert_eq!(
            normal("io.k8s.api.core.v1.Pod", pod),
            json!({"metadata": {"name": "p"}, "status": {}, "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "c", "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "500m", "memory": "1024"}}}],
            }})
        );
    }

    #[test]
    fn pointers_keep_their_zero() {
        let spec = json!({"spec": {"replicas": 0, "paused": false, "minReadySeconds": 0}});
        let deployment = normal("io.k8s.api.apps.v1.Deployment", spec);
        assert_eq!(deployment["spec"]["replicas"], 0);
        assert_eq!(deployment["spec"].get("paused"), None);
        assert_eq!(deployment["spec"].get("minReadySeconds"), None);
    }

    #[test]
    fn normal_objects_stay_as_they_are() {
        let once = normal("io.k8s.api.apps.v1.Deployment", json!({"spec": {"template": {"spec": {}}}}));
        assert_eq!(normal("io.k8s.api.apps.v1.Deployment", once.clone()), once);
    }

    #[test]
    fn times_are_in_seconds_and_utc() {
        let lease = json!({
            "metadata": {"creationTimestamp": "2026-01-01T02:00:00.5+02:00"},
            "spec": {"renewTime": "2026-01-01T00:00:00Z"},
        });
        let lease = normal("io.k8s.api.coordination.v1.Lease", lease);
        assert_eq!(lease["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(lease["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
    }
}
