//! Every field of a kind that holds a number, from the schema that was recorded from Kubernetes.
//!
//! A specimen has a number wherever a controller is known to look; here are the others, so that a field that somebody
//! begins to look at tomorrow is walked already.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};
use windlass_apiserver::schema::KUBERNETES;

/// A step on the way to a field.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(Value),
}

/// A field that holds a number.
pub(super) struct Field {
    way: Vec<Step>,
    /// Whether its numbers are written as text.
    pub(super) is_text: bool,
}

fn definitions() -> &'static BTreeMap<&'static str, Value> {
    static KNOWN: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(|| {
        let lines = KUBERNETES.lines().map(|line| line.split_once(' ').unwrap());
        lines.map(|(name, schema)| (name, serde_json::from_str(schema).unwrap())).collect()
    });
    &KNOWN
}

fn resolved(schema: &Value) -> (&Value, Option<&str>) {
    let reference = schema.get("$ref").or_else(|| schema["allOf"].get(0).and_then(|inner| inner.get("$ref")));
    match reference.and_then(Value::as_str).and_then(|text| text.rsplit('/').next()) {
        Some(name) => (&definitions()[name], Some(name)),
        None => (schema, None),
    }
}

/// The fields of the spec of a kind. Templates of Pods are left to the Pod itself.
pub(super) fn numbers(group_version: &str, kind: &str) -> Vec<Field> {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let id = json!({"group": group, "kind": kind, "version": version});
    let is_it = |schema: &&Value| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|ids| ids.contains(&id))
    };
    let schema = definitions().values().find(is_it).expect("the kind must be in the schema");
    let mut found = Vec::new();
    walk(&schema["properties"]["spec"], &mut vec![Step::Key("spec".into())], &mut Vec::new(), &mut found);
    found
}

fn walk(schema: &Value, way: &mut Vec<Step>, names: &mut Vec<String>, found: &mut Vec<Field>) {
    let (schema, name) = resolved(schema);
    let known = name.unwrap_or_default();
    let is_text = known.ends_with("Quantity");
    if is_text
        || known.ends_with("IntOrString")
        || matches!(schema["type"].as_str(), Some("integer" | "number"))
    {
        found.push(Field { way: way.clone(), is_text });
        return;
    }
    if known.ends_with("PodTemplateSpec") || names.iter().any(|name| name == known) {
        return;
    }
    let depth = names.len();
    names.extend(name.map(str::to_owned));
    if let Some(items) = schema.get("items") {
        way.push(Step::Item(entry(items)));
        walk(items, way, names, found);
        way.pop();
    } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        way.push(Step::Key("memory".into()));
        walk(values, way, names, found);
        way.pop();
    }
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        way.push(Step::Key(key.clone()));
        walk(field, way, names, found);
        way.pop();
    }
    names.truncate(depth);
}

/// An entry of a list with what it must have.
fn entry(schema: &Value) -> Value {
    let (schema, _) = resolved(schema);
    let mut fields = serde_json::Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let (field, _) = resolved(&schema["properties"][name]);
        let value = match (field["enum"].get(0), field["type"].as_str()) {
            (Some(first), _) => first.clone(),
            (_, Some("string")) => json!("x"),
            (_, Some("integer")) => json!(7),
            _ => continue,
        };
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

impl Field {
    /// The field as a path.
    pub(super) fn path(&self) -> String {
        self.way.iter().fold(String::new(), |path, step| match step {
            Step::Key(key) => format!("{path}/{key}"),
            Step::Item(_) => format!("{path}/0"),
        })
    }

    /// Puts a number there.
    pub(super) fn set(&self, object: &mut Value, number: Value) {
        let mut place = object;
        for step in &self.way {
            place = match step {
                Step::Key(key) => &mut place[key.as_str()],
                Step::Item(entry) => {
                    if place.as_array().is_none_or(Vec::is_empty) {
                        *place = json!([entry]);
                    }
                    &mut place[0]
                }
            };
        }
        *place = number;
    }
}
