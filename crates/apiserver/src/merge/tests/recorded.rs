//! Replays `tests/fixtures/ssa`: requests which a real kube-apiserver answered, with the object
//! before and the answer. Identities and times are normalised, one second for each step.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value, json};

use super::{built_in, custom};
use crate::{
    merge::{
        ApplyError, ApplyOptions, FieldSet, UpdateOptions, Versions, apply, fields_of, keep_times,
        path::shown, track_update,
    },
    schema::{TypeRef, json::equal},
};

struct Case {
    ty: TypeRef,
    zero: Option<Value>,
    reset: FieldSet,
    reset_status: FieldSet,
}

impl Case {
    fn of(fixture: &Value) -> Self {
        let (ty, zero) = match fixture["definition"].as_str() {
            Some(name) => {
                let ty = built_in(name);
                let zero = ty.zero();
                (ty, Some(zero))
            }
            None => (custom(&fixture["schema"]), None),
        };
        Self { ty, zero, reset: paths(&fixture["reset"]), reset_status: paths(&fixture["resetStatus"]) }
    }

    /// Plays one step and says how the answer differs from the recorded one.
    fn play(&self, step: &Value, live: Option<&Value>) -> Vec<String> {
        if step["operation"] == "apply" {
            self.play_apply(step, live)
        } else if step["status"].as_u64().is_some_and(|status| status < 300) {
            self.play_update(step, live)
        } else {
            vec!["only applies are recorded as failures".to_owned()]
        }
    }

    fn reset_of(&self, step: &Value) -> &FieldSet {
        match text(step, "subresource") {
            "" => &self.reset,
            _ => &self.reset_status,
        }
    }

    fn play_apply(&self, step: &Value, live: Option<&Value>) -> Vec<String> {
        let api_version = step["body"]["apiVersion"].as_str().unwrap_or_default();
        let options = ApplyOptions {
            manager: text(step, "manager"),
            force: step["force"] == true,
            subresource: text(step, "subresource"),
            api_version,
            time: text(step, "time"),
            reset: self.reset_of(step),
            zero: self.zero.as_ref(),
            versions: Versions::default(),
        };
        let expected = &step["response"];
        match apply(&self.ty, live, &step["body"], &options) {
            Ok(mut merged) => {
                if self.zero.is_some() {
                    self.ty.normalize(&mut merged);
                }
                let mut problems = compare_managed(&merged, expected, live);
                let skipped = self.skipped(step);
                compare(&merged, expected, live, "", &skipped, &mut problems);
                problems
            }
            Err(error) => compare_error(&error, expected),
        }
    }

    /// What the endpoint resets and the server fills in later says nothing about merging.
    fn skipped<'v>(&'v self, step: &'v Value) -> Vec<String> {
        let reset = self.reset_of(step).paths();
        let reset = reset.iter().map(|path| shown(path).replace('.', "/"));
        reset.chain(filled(step).map(str::to_owned)).collect()
    }

    fn play_update(&self, step: &Value, live: Option<&Value>) -> Vec<String> {
        let expected = &step["response"];
        let mut new = expected.clone();
        // What the request says about managers is part of the input; what it does not say is not.
        let asked = step["body"].pointer("/metadata/managedFields").cloned();
        let kept = match (text(step, "operation"), live) {
            ("merge" | "strategic", Some(live)) => {
                asked.or_else(|| live.pointer("/metadata/managedFields").cloned())
            }
            _ => asked,
        };
        let metadata = new["metadata"].as_object_mut().expect("metadata must be there");
        metadata.remove("managedFields");
        if let Some(kept) = kept {
            metadata.insert("managedFields".to_owned(), kept);
        }
        let options = UpdateOptions {
            manager: text(step, "manager"),
            subresource: text(step, "subresource"),
            api_version: expected["apiVersion"].as_str().unwrap_or_default(),
            time: text(step, "time"),
            reset: self.reset_of(step),
            zero: self.zero.as_ref(),
            versions: Versions::default(),
        };
        for pointer in filled(step) {
            take(&mut new, pointer);
        }
        track_update(&self.ty, live, &mut new, &options);
        compare_managed(&new, expected, live)
    }
}

fn text<'v>(step: &'v Value, key: &str) -> &'v str {
    step[key].as_str().unwrap_or_default()
}

fn paths(list: &Value) -> FieldSet {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    FieldSet::of_paths(list.iter().filter_map(Value::as_str))
}

fn managed_of(object: &Value) -> Value {
    object.pointer("/metadata/managedFields").cloned().unwrap_or(Value::Null)
}

/// The fields that admission and storage set after ownership was recorded, as JSON pointers.
fn filled(step: &Value) -> impl Iterator<Item = &str> {
    let list = step["filled"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

fn take(object: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer must have a slash");
    if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
        parent.remove(key);
    }
}

fn compare_managed(ours: &Value, expected: &Value, live: Option<&Value>) -> Vec<String> {
    // What would be stored: the answer with our idea of who owns it.
    let mut stored = expected.clone();
    let metadata = stored["metadata"].as_object_mut().expect("metadata must be there");
    metadata.remove("managedFields");
    if let Some(managed) = ours.pointer("/metadata/managedFields") {
        metadata.insert("managedFields".to_owned(), managed.clone());
    }
    if let Some(live) = live {
        keep_times(live, &mut stored);
    }
    let (ours, expected) = (managed_of(&stored), managed_of(expected));
    if ours == expected {
        return Vec::new();
    }
    vec![format!("managedFields\n ours: {ours}\n real: {expected}")]
}

fn compare_error(error: &ApplyError, expected: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if error.to_string() != expected["message"] {
        problems.push(format!("message\n ours: {error}\n real: {}", expected["message"]));
    }
    if let ApplyError::Conflict(conflicts) = error {
        let causes: Vec<Value> = conflicts
            .causes()
            .into_iter()
            .map(|cause| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": cause.message,
                    "field": cause.field,
                })
            })
            .collect();
        // The real server lists managers in random order.
        let sorted = |causes: &Value| {
            let mut causes: Vec<String> = causes
                .as_array()
                .map(|causes| causes.iter().map(Value::to_string).collect())
                .unwrap_or_default();
            causes.sort();
            causes
        };
        let (ours, real) = (json!(causes), &expected["details"]["causes"]);
        if sorted(&ours) != sorted(real) {
            problems.push(format!("causes\n ours: {ours}\n real: {real}"));
        }
    }
    problems
}

/// Every field of ours must be in the answer. What the answer has beyond that the server filled
/// in, so the object cannot have had it before: then we would have removed it wrongly.
fn compare(
    ours: &Value,
    real: &Value,
    live: Option<&Value>,
    path: &str,
    skipped: &[String],
    problems: &mut Vec<String>,
) {
    const KEPT_BY_THE_SERVER: [&str; 5] = [
        "/metadata/managedFields",
        "/metadata/generation",
        "/metadata/resourceVersion",
        "/metadata/uid",
        "/metadata/creationTimestamp",
    ];
    if KEPT_BY_THE_SERVER.contains(&path) || skipped.iter().any(|skipped| skipped == path) {
        return;
    }
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            compare_maps(ours, real, live, path, skipped, problems);
        }
        (Value::Array(ours), Value::Array(real)) if ours.len() == real.len() => {
            for (index, (ours, real)) in ours.iter().zip(real).enumerate() {
                compare(ours, real, None, &format!("{path}/{index}"), skipped, problems);
            }
        }
        _ if equal(ours, real) => {}
        _ => problems.push(format!("{path}\n ours: {ours}\n real: {real}")),
    }
}

fn compare_maps(
    ours: &Map<String, Value>,
    real: &Map<String, Value>,
    live: Option<&Value>,
    path: &str,
    skipped: &[String],
    problems: &mut Vec<String>,
) {
    for (key, value) in ours {
        let at = format!("{path}/{key}");
        match real.get(key) {
            Some(real) => {
                let live = live.and_then(|live| live.get(key));
                compare(value, real, live, &at, skipped, problems);
            }
            None if value.is_null() || value.as_object().is_some_and(Map::is_empty) => {}
            None => problems.push(format!("{at}\n ours: {value}\n real: absent")),
        }
    }
    for (key, real) in real {
        let at = format!("{path}/{key}");
        // A default may come back with the value that was there; anything else must not.
        let was = live.and_then(|live| live.get(key));
        let defaulted = ["replicas", "strategy", "sessionAffinity", "type"].contains(&key.as_str());
        if !ours.contains_key(key) && was.is_some() && !defaulted {
            problems.push(format!("{at}\n ours: removed\n real: {real}"));
        }
    }
}

fn fixtures() -> Vec<(String, Value)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ssa");
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("the fixtures must be there")
        .map(|entry| entry.expect("the directory must be readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a fixture must be readable");
            let name = path.file_stem().expect("a fixture must have a name");
            let json = serde_json::from_str(&text).expect("a fixture must be JSON");
            (name.to_string_lossy().into_owned(), json)
        })
        .collect()
}

#[test]
fn every_recorded_step_gets_the_real_servers_answer() {
    let mut failures = Vec::new();
    let mut steps = 0;
    for (name, fixture) in fixtures() {
        let case = Case::of(&fixture);
        let mut last = Value::Null;
        for step in fixture["steps"].as_array().expect("a fixture must have steps") {
            // A step without `live` starts from the answer before it.
            let live = step.get("live").unwrap_or(&last).clone();
            let problems = case.play(step, Some(&live).filter(|live| !live.is_null()));
            for problem in problems {
                failures.push(format!("{name} / {}: {problem}", text(step, "name")));
            }
            steps += 1;
            if step["status"].as_u64().is_some_and(|status| status < 300) {
                last = step["response"].clone();
            } else {
                last = live;
            }
        }
    }
    assert!(steps >= 20, "only {steps} steps were found");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_recorded_intent_is_owned_by_its_applier() {
    for (name, fixture) in fixtures() {
        let case = Case::of(&fixture);
        for step in fixture["steps"].as_array().expect("a fixture must have steps") {
            if step["operation"] == "apply" {
                let fields = fields_of(&case.ty, &step["body"]);
                assert!(!fields.is_empty(), "{name}: an intent sets at least its name");
            }
        }
    }
}
