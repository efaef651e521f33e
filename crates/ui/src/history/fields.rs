//! What differs between versions of an object, field by field and line by line, and who wrote it. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Version;
use crate::lines;

/// One write of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The version's revision.
    pub revision: u64,
    /// What the field became; `None` if it was taken out.
    pub value: Option<Value>,
    /// Who wrote the version.
    pub writers: Vec<String>,
}

/// Who wrote a version: those whose entries in the server's book are new or other than before. Where none is, because
/// somebody wrote again within a second: those who own what is new, or else those whose entries are gone.
pub fn writers(before: Option<&Value>, after: &Value) -> Vec<String> {
    let entries =
        |object: &Value| object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let name = |entry: &Value| entry["manager"].as_str().unwrap_or_default().to_owned();
    let (known, now) = (before.map(entries).unwrap_or_default(), entries(after));
    let wrote = |entry: &&Value| !known.iter().any(|old| old == *entry || has_only_lost(old, entry));
    let mut names: Vec<String> = now.iter().filter(wrote).map(name).collect();
    if names.is_empty()
        && let Some(before) = before
    {
        let (managers, old) = (lines::managers(after), lines::lines(&without_books(before)));
        let books = |line: &lines::Line| line.text.trim_start().starts_with("resourceVersion:");
        let is_new = |line: &&lines::Line| !books(line) && !old.iter().any(|known| known.text == line.text);
        let owners = lines::lines(after);
        let owners = owners.iter().filter(is_new).flat_map(|line| line.owners.iter().copied());
        names = owners.filter_map(|owner| Some(managers.get(owner)?.name.clone())).collect();
        if names.is_empty() {
            names = known.iter().filter(|entry| !now.contains(entry)).map(name).collect();
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Whether an entry of the book is one from before that somebody else has taken fields from.
fn has_only_lost(before: &Value, after: &Value) -> bool {
    fn within(inner: &Value, outer: &Value) -> bool {
        match (inner.as_object(), outer.as_object()) {
            (Some(inner), Some(outer)) => {
                inner.iter().all(|(key, value)| outer.get(key).is_some_and(|outer| within(value, outer)))
            }
            _ => inner == outer,
        }
    }
    let same =
        ["manager", "operation", "subresource", "time"].iter().all(|name| before[*name] == after[*name]);
    same && within(&after["fieldsV1"], &before["fieldsV1"])
}

/// For every field that has ever had a value, its writes, oldest first. "Why is this field so": the last one.
pub fn writes(versions: &[Version]) -> BTreeMap<String, Vec<Write>> {
    let mut all: BTreeMap<String, Vec<Write>> = BTreeMap::new();
    let mut before: BTreeMap<String, Value> = BTreeMap::new();
    for version in versions {
        let mut after = BTreeMap::new();
        flatten(&version.object, &mut String::new(), &mut after);
        let write = |value| Write { revision: version.revision, value, writers: version.writers.clone() };
        for (path, value) in &after {
            if before.get(path) != Some(value) {
                all.entry(path.clone()).or_default().push(write(Some(value.clone())));
            }
        }
        for path in before.keys().filter(|path| !after.contains_key(*path)) {
            all.entry(path.clone()).or_default().push(write(None));
        }
        before = after;
    }
    all
}

/// The fields of an object that hold values, by their paths. The server's own books are left out.
fn flatten(value: &Value, path: &mut String, fields: &mut BTreeMap<String, Value>) {
    let begin = path.len();
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                if begin > 0 {
                    path.push('.');
                }
                path.push_str(key);
                if !matches!(path.as_str(), "metadata.managedFields" | "metadata.resourceVersion") {
                    flatten(value, path, fields);
                }
                path.truncate(begin);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                // By name where it has one, so that a new item before it is no change of it.
                let name = ["name", "type", "uid"].iter().find_map(|key| value[*key].as_str());
                path.push('[');
                match name {
                    Some(name) => path.push_str(name),
                    None => path.push_str(&at.to_string()),
                }
                path.push(']');
                flatten(value, path, fields);
                path.truncate(begin);
            }
        }
        value => {
            fields.insert(path.clone(), value.clone());
        }
    }
}

/// The difference between two versions as a unified diff of their YAML; empty if there is none. `None` is an object that
/// is not there.
pub fn unified(before: Option<&Value>, after: Option<&Value>) -> String {
    let text =
        |object: Option<&Value>| object.map(|object| lines::yaml(&without_books(object))).unwrap_or_default();
    let (before, after) = (text(before), text(after));
    if before == after {
        return String::new();
    }
    let patch = diffy::create_patch(&before, &after).to_string();
    // The names of the files are nobody's.
    patch.lines().filter(|line| !line.starts_with("--- ") && !line.starts_with("+++ ")).fold(
        String::new(),
        |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        },
    )
}

fn without_books(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    object
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{super::Happened, *};

    fn version(revision: u64, replicas: Option<i64>, image: &str, writer: &str) -> Version {
        let mut spec = json!({"containers": [{"name": "web", "image": image}]});
        if let Some(replicas) = replicas {
            spec["replicas"] = replicas.into();
        }
        let object = json!({"metadata": {"resourceVersion": revision.to_string()}, "spec": spec});
        Version { revision, happened: Happened::Changed, time: None, writers: vec![writer.into()], object }
    }

    #[test]
    fn the_writes_of_a_field_tell_why_it_is_so() {
        let versions = [
            version(3, Some(1), "a", "kubectl"),
            version(5, Some(1), "b", "operator"),
            version(8, Some(2), "b", "autoscaler"),
            version(9, None, "b", "kubectl"),
        ];
        let writes = writes(&versions);
        let shown = |path: &str| {
            let writes = writes[path].iter();
            writes.map(|w| (w.revision, w.value.clone(), w.writers[0].clone())).collect::<Vec<_>>()
        };
        assert_eq!(
            shown("spec.replicas"),
            [
                (3, Some(json!(1)), "kubectl".to_owned()),
                (8, Some(json!(2)), "autoscaler".to_owned()),
                (9, None, "kubectl".to_owned()),
            ]
        );
        assert_eq!(shown("spec.containers[web].image").last().unwrap().2, "operator");
        assert!(!writes.contains_key("metadata.resourceVersion"));
    }

    #[test]
    fn a_writer_is_whoever_has_a_new_entry() {
        let object = |entries: Value| json!({"metadata": {"managedFields": entries}});
        let (a, b) = (json!({"manager": "a", "time": "1"}), json!({"manager": "b", "time": "1"}));
        let later = json!({"manager": "b", "time": "2"});
        let first = object(json!([a, b]));
        assert_eq!(writers(None, &first), ["a", "b"]);
        assert_eq!(writers(Some(&first), &object(json!([a, later]))), ["b"]);
        assert!(writers(Some(&first), &first).is_empty());
        assert_eq!(writers(Some(&first), &object(json!([a]))), ["b"], "whose entry is gone");
        let entry =
            |manager: &str, fields: Value| json!({"manager": manager, "time": "1", "fieldsV1": fields});
        let taken = object(json!([entry("a", json!({"f:x": {}})), entry("b", json!({"f:y": {}}))]));
        let had = object(json!([entry("a", json!({"f:x": {}, "f:y": {}}))]));
        assert_eq!(writers(Some(&had), &taken), ["b"], "who has lost a field has not written");
        // Twice within a second: the book is the same, the value is not.
        let counted = |count: i64| json!({"metadata": {"managedFields": [a, {"manager": "c", "fieldsV1": {"f:count": {}}}]}, "count": count});
        assert_eq!(writers(Some(&counted(1)), &counted(2)), ["c"]);
    }

    #[test]
    fn a_diff_leaves_the_books_out() {
        let (old, new) = (version(1, Some(1), "a", ""), version(2, Some(3), "a", ""));
        let diff = unified(Some(&old.object), Some(&new.object));
        assert!(
            diff.contains("-  replicas: 1\n+  replicas: 3\n") && !diff.contains("resourceVersion"),
            "{diff}"
        );
        assert_eq!(unified(Some(&old.object), Some(&version(7, Some(1), "a", "").object)), "");
        assert!(unified(None, Some(&new.object)).lines().skip(1).all(|line| line.starts_with('+')));
    }

    proptest! {
        #[test]
        fn the_last_writes_of_all_fields_are_the_object(values in prop::collection::vec((0_i64..3, "[ab]"), 1..8)) {
            let versions: Vec<Version> = (1..).zip(&values).map(|(revision, (replicas, image))| version(revision, (*replicas > 0).then_some(*replicas), image, "w")).collect();
            let mut fields = BTreeMap::new();
            flatten(&versions.last().unwrap().object, &mut String::new(), &mut fields);
            let last: BTreeMap<String, Value> = writes(&versions).into_iter().filter_map(|(path, writes)| Some((path, writes.last()?.value.clone()?))).collect();
            prop_assert_eq!(last, fields);
        }
    }
}
