//! Whether a built-in object would decode into its Go type, and what the decoder says if not.
//!
//! Built-in kinds are not validated against OpenAPI by the real server: a value of the wrong type
//! fails earlier, in Go's JSON decoder, and clients see the decoder's words.

use serde_json::Value;

use super::{
    Additional, TypeRef, bytes,
    node::{Kind, Node, NodeId, Types},
    normal::{MICRO_TIME, QUANTITY, TIME},
    quantity,
};

const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

impl TypeRef {
    /// Why `object` cannot be decoded, in the words of Go's decoder; `None` when it can be.
    pub fn decode_error(&self, object: &Value) -> Option<String> {
        let place = FieldPosition { owner: short_name(self.node()), path: String::new() };
        decode(self.types(), self.id(), object, &place)
    }
}

/// The struct that holds a value, and the path to it: Go names both, and no list indices.
struct FieldPosition<'a> {
    owner: &'a str,
    path: String,
}

fn decode(types: &Types, id: NodeId, value: &Value, place: &FieldPosition<'_>) -> Option<String> {
    let node = types.get(id);
    if value.is_null() {
        return None;
    }
    match node.name.as_deref() {
        Some(QUANTITY) => return quantity_error(value),
        Some(TIME) => return time_error(value, "2006-01-02T15:04:05Z07:00"),
        Some(MICRO_TIME) => return time_error(value, "2006-01-02T15:04:05.000000Z07:00"),
        Some(INT_OR_STRING) => return int_or_string_error(value, place),
        _ => {}
    }
    match (node.kind, value) {
        (None, _) => None,
        (Some(Kind::Object), Value::Object(object)) => {
            object.iter().find_map(|(key, value)| field(types, node, key, value, place))
        }
        (Some(Kind::Array), Value::Array(items)) => {
            let child = node.items?;
            items.iter().find_map(|item| decode(types, child, item, place))
        }
        (Some(Kind::String), Value::String(text)) => bytes_error(node, text),
        (Some(Kind::Boolean), Value::Bool(_)) | (Some(Kind::Number), Value::Number(_)) => None,
        (Some(Kind::Integer), Value::Number(number)) => {
            let fits = match node.format.as_deref() {
                Some("int32") => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
                _ => number.as_i64().is_some(),
            };
            if fits { None } else { Some(mismatch(&format!("number {number}"), types, id, place)) }
        }
        _ => Some(mismatch(json_word(value), types, id, place)),
    }
}

fn field(types: &Types, node: &Node, key: &str, value: &Value, place: &FieldPosition<'_>) -> Option<String> {
    if let Some(child) = node.properties.get(key) {
        let path = if place.path.is_empty() { key.to_owned() } else { format!("{}.{key}", place.path) };
        let owner = if node.name.is_some() { short_name(node) } else { place.owner };
        return decode(types, *child, value, &FieldPosition { owner, path });
    }
    match node.additional {
        // The values of a map are reported as the map itself.
        Additional::Schema(child) => decode(types, child, value, place),
        _ => None,
    }
}

fn mismatch(found: &str, types: &Types, id: NodeId, place: &FieldPosition<'_>) -> String {
    let wanted = go_type(types, id);
    if place.path.is_empty() {
        return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
    }
    let (owner, path) = (place.owner, &place.path);
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")
}

fn json_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type as the decoder prints it: `int32`, `[]v1.Container`, `map[string]string`.
fn go_type(types: &Types, id: NodeId) -> String {
    let node = types.get(id);
    match (node.kind, node.format.as_deref()) {
        (Some(Kind::Integer), Some(format)) => format.to_owned(),
        (Some(Kind::Integer), None) => "int64".to_owned(),
        (Some(Kind::Number), _) => "float64".to_owned(),
        (Some(Kind::Boolean), _) => "bool".to_owned(),
        (Some(Kind::String), Some("byte")) => "[]uint8".to_owned(),
        (Some(Kind::String), _) => "string".to_owned(),
        (Some(Kind::Array), _) => {
            let item = node.items.map_or_else(|| "interface {}".to_owned(), |child| go_type(types, child));
            format!("[]{item}")
        }
        (Some(Kind::Object), _) => match (&node.name, node.additional) {
            (Some(name), _) => qualified_name(name),
            (None, Additional::Schema(child)) => format!("map[string]{}", go_type(types, child)),
            _ => "map[string]interface {}".to_owned(),
        },
        (None, _) => node.name.as_deref().map_or_else(|| "interface {}".to_owned(), qualified_name),
    }
}

/// `v1.Container` of `io.k8s.api.core.v1.Container`.
fn qualified_name(name: &str) -> String {
    let mut segments = name.rsplit('.');
    match (segments.next(), segments.next()) {
        (Some(last), Some(package)) => format!("{package}.{last}"),
        _ => name.to_owned(),
    }
}

fn short_name(node: &Node) -> &str {
    let name = node.name.as_deref().unwrap_or_default();
    name.rsplit('.').next().unwrap_or(name)
}

fn quantity_error(value: &Value) -> Option<String> {
    let valid = match value {
        Value::String(text) => quantity::canonical(text).is_some(),
        Value::Number(number) => quantity::canonical(&number.to_string()).is_some(),
        _ => false,
    };
    (!valid).then(|| {
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    })
}

fn time_error(value: &Value, layout: &str) -> Option<String> {
    let Value::String(text) = value else {
        return Some(format!("json: cannot unmarshal {} into Go value of type string", json_word(value)));
    };
    if text.parse::<jiff::Timestamp>().is_ok() {
        return None;
    }
    Some(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}

fn int_or_string_error(value: &Value, place: &FieldPosition<'_>) -> Option<String> {
    let found = match value {
        Value::String(_) => return None,
        Value::Number(number) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            if fits {
                return None;
            }
            format!("number {number}")
        }
        other => json_word(other).to_owned(),
    };
    let (owner, path) = (place.owner, &place.path);
    Some(format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type int32"))
}

fn bytes_error(node: &Node, text: &str) -> Option<String> {
    if node.format.as_deref() != Some("byte") {
        return None;
    }
    let at = bytes::decode(text).err()?;
    Some(format!("illegal base64 data at input byte {at}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::KUBERNETES;

    fn error(definition: &str, object: &Value) -> Option<String> {
        let resolve = |name: &str| {
            let line = KUBERNETES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            serde_json::from_str(line).ok()
        };
        TypeRef::named(definition, &resolve).expect("the definition must load").decode_error(object)
    }

    /// The texts are a real server's.
    #[test]
    fn wrong_types_are_reported_as_go_reports_them() {
        const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
        const POD: &str = "io.k8s.api.core.v1.Pod";
        const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
        let unmarshal = |rest: &str| Some(format!("json: cannot unmarshal {rest}"));
        let cases = [
            (
                DEPLOYMENT,
                json!({"spec": {"replicas": "3"}}),
                "string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                DEPLOYMENT,
                json!({"spec": {"replicas": 1.5}}),
                "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                DEPLOYMENT,
                json!({"spec": {"replicas": 3_000_000_000_u64}}),
                "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                DEPLOYMENT,
                json!({"spec": {"selector": "x"}}),
                "string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
            ),
            (
                DEPLOYMENT,
                json!({"spec": "x"}),
                "string into Go struct field Deployment.spec of type v1.DeploymentSpec",
            ),
            (
                POD,
                json!({"spec": {"containers": "x"}}),
                "string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                POD,
                json!({"spec": {"containers": ["x"]}}),
                "string into Go struct field PodSpec.spec.containers of type v1.Container",
            ),
            (
                POD,
                json!({"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}}),
                "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            ),
            (
                POD,
                json!({"spec": {"nodeSelector": {"a": 1}}}),
                "number into Go struct field PodSpec.spec.nodeSelector of type string",
            ),
            (
                CONFIG_MAP,
                json!({"metadata": {"labels": {"x": 1}}}),
                "number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                CONFIG_MAP,
                json!({"data": "x"}),
                "string into Go struct field ConfigMap.data of type map[string]string",
            ),
        ];
        for (definition, object, rest) in cases {
            assert_eq!(error(definition, &object), unmarshal(rest));
        }
        let time = json!({"metadata": {"creationTimestamp": "x"}});
        let text = "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"";
        assert_eq!(error(CONFIG_MAP, &time).as_deref(), Some(text));
        let bytes = json!({"binaryData": {"x": "!!"}});
        assert_eq!(error(CONFIG_MAP, &bytes).as_deref(), Some("illegal base64 data at input byte 0"));
    }

    #[test]
    fn what_go_accepts_is_accepted() {
        let pod = json!({"metadata": {"creationTimestamp": null}, "spec": {"containers": [{
            "name": "a",
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"port": "http"}},
        }]}});
        assert_eq!(error("io.k8s.api.core.v1.Pod", &pod), None);
    }
}
