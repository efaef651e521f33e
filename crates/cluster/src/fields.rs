//! Fields that Kubernetes would act on and this cluster does not: whoever sets one is told.
//!
//! Enters an object as it was asked for; leaves a warning for each such field in it. The table (`fields.txt`) has every
//! field of every built-in kind; the paths that matter for a kind are found once, when its first object is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use windlass::serde_json::Value;
use windlass_apiserver::registry::catalog;

static IGNORED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    include_str!("fields.txt").lines().filter_map(|line| line.strip_suffix(" ignored")).collect()
});

static PATHS: LazyLock<Mutex<BTreeMap<String, Arc<Vec<Path>>>>> = LazyLock::new(Mutex::default);

/// How to come from an object to a field of it.
type Path = Vec<Step>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    /// Every element of a list.
    Elements,
    /// Every value of a map.
    Values,
}

/// What to tell whoever wrote an object of this definition, such as `io.k8s.api.core.v1.Pod`.
pub(crate) fn warnings(definition: &str, object: &Value) -> Vec<String> {
    let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = paths.entry(definition.to_owned()).or_insert_with(|| Arc::new(paths_of(definition)));
    let found = Arc::clone(found);
    drop(paths);
    let mut places = Vec::new();
    for path in found.iter() {
        places_of(object, path, "", &mut places);
    }
    let told = |place: String| format!("{place}: stored, but no part of this cluster acts on it");
    places.into_iter().map(told).collect()
}

fn paths_of(definition: &str) -> Vec<Path> {
    let mut paths = Vec::new();
    descend(definition, &mut Vec::new(), &mut vec![definition.to_owned()], &mut paths);
    paths
}

/// Looks at every field of a definition, and below those that are honoured.
fn descend(definition: &str, path: &mut Path, above: &mut Vec<String>, paths: &mut Vec<Path>) {
    let Some(schema) = catalog::definitions().get(definition) else { return };
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(Step::Field(field.clone()));
        if IGNORED.contains(format!("{}.{field}", short(definition)).as_str()) {
            paths.push(path.clone());
        } else {
            follow(property, path, above, paths);
        }
        path.pop();
    }
}

fn follow(schema: &Value, path: &mut Path, above: &mut Vec<String>, paths: &mut Vec<Path>) {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    if let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) {
        // Types that contain themselves end here; Pods are deep enough without.
        if !above.iter().any(|known| known == name) {
            above.push(name.to_owned());
            descend(name, path, above, paths);
            above.pop();
        }
    }
    for (keyword, step) in [("items", Step::Elements), ("additionalProperties", Step::Values)] {
        if let Some(inner) = schema.get(keyword) {
            path.push(step);
            follow(inner, path, above, paths);
            path.pop();
        }
    }
}

/// A definition's name as the table has it.
fn short(definition: &str) -> &str {
    let name = definition.strip_prefix("io.k8s.").unwrap_or(definition);
    ["api.", "apiextensions-apiserver.pkg.apis.", "kube-aggregator.pkg.apis."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

/// Where in a value the path leads to something.
fn places_of(value: &Value, path: &[Step], place: &str, places: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        let empty = match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::String(text) => text.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !empty {
            places.push(place.to_owned());
        }
        return;
    };
    match (step, value) {
        (Step::Field(field), Value::Object(map)) => {
            if let Some(inner) = map.get(field) {
                let dot = if place.is_empty() { "" } else { "." };
                places_of(inner, rest, &format!("{place}{dot}{field}"), places);
            }
        }
        (Step::Elements, Value::Array(list)) => {
            for (index, inner) in list.iter().enumerate() {
                places_of(inner, rest, &format!("{place}[{index}]"), places);
            }
        }
        (Step::Values, Value::Object(map)) => {
            for (key, inner) in map {
                places_of(inner, rest, &format!("{place}[{key}]"), places);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::json;

    use super::*;

    #[test]
    fn what_is_ignored_is_told_wherever_it_stands() {
        let pod = json!({"resourceClaims": [{"name": "gpu"}], "schedulingGroup": {}, "containers": [
            {"name": "a"},
            {"name": "b", "restartPolicyRules": [{"action": "Restart"}], "resources": {"claims": [{"name": "gpu"}]}},
        ]});
        let deployment = json!({"spec": {"replicas": 1, "template": {"spec": pod}}});
        let told = |place: &str| {
            format!("spec.template.spec.{place}: stored, but no part of this cluster acts on it")
        };
        assert_eq!(
            warnings("io.k8s.api.apps.v1.Deployment", &deployment),
            ["containers[1].resources.claims", "containers[1].restartPolicyRules", "resourceClaims"]
                .map(told)
        );
    }

    #[test]
    fn what_is_honoured_is_not_told() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "b"}]}});
        assert_eq!(warnings("io.k8s.api.core.v1.Pod", &pod), [""; 0]);
        assert_eq!(warnings("of.nobody", &pod), [""; 0]);
    }
}
