//! The differences between two runs of a script, said so that one can act on them.

use serde_json::Value;

use super::{
    play::Answer,
    script::{Request, Script},
};

/// One text per request whose answers differ.
pub(super) fn differences(script: &Script, recorded: &[Answer], ours: &[Answer]) -> Vec<String> {
    let requests = script.requests.iter().filter(|request| request.verb != "WAIT");
    let mut failures = Vec::new();
    if recorded.len() != ours.len() {
        failures.push(format!("{}: the script has changed: run `cargo xtask fidelity record`", script.name));
        return failures;
    }
    for ((request, recorded), ours) in requests.zip(recorded).zip(ours) {
        let found = of_answer(request, recorded.clone(), ours.clone());
        if !found.is_empty() {
            let place = format!("{}.http:{} {} {}", script.name, request.line, request.verb, request.path);
            failures.push(format!("{place}\n  {}\n", found.join("\n  ")));
        }
    }
    failures
}

pub(super) fn of_answer(request: &Request, mut recorded: Answer, mut ours: Answer) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.request != ours.request {
        return vec!["the script has changed: run `cargo xtask fidelity record`".to_owned()];
    }
    if recorded.status != ours.status {
        let said = |answer: &Answer| answer.body["message"].as_str().unwrap_or_default().to_owned();
        found.push(format!("status: recorded {} {}", recorded.status, said(&recorded)));
        found.push(format!("        ours     {} {}", ours.status, said(&ours)));
        return found;
    }
    if request.differs.is_some() {
        return found;
    }
    if recorded.warnings != ours.warnings {
        found.push(format!("warnings: recorded {:?}, ours {:?}", recorded.warnings, ours.warnings));
    }
    if request.unordered {
        sort_causes(&mut recorded.body);
        sort_causes(&mut ours.body);
    }
    for (pointer, _) in &request.except {
        remove(&mut recorded.body, pointer);
        remove(&mut ours.body, pointer);
    }
    walk("", Some(&recorded.body), Some(&ours.body), &mut found);
    found
}

/// Sorts the causes of a failure; a message of several is nothing but the causes again.
fn sort_causes(body: &mut Value) {
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    if causes.len() > 1 {
        causes.sort_by_key(Value::to_string);
        remove(body, "/message");
    }
}

/// Removes what a pointer leads to; `*` stands for every element.
fn remove(value: &mut Value, pointer: &str) {
    let Some((head, tail)) = pointer.trim_start_matches('/').split_once('/') else {
        let last = pointer.trim_start_matches('/').replace("~1", "/");
        if let Some(map) = value.as_object_mut() {
            map.remove(&last);
        }
        return;
    };
    match value {
        Value::Object(map) => {
            if let Some(inner) = map.get_mut(&head.replace("~1", "/")) {
                remove(inner, tail);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter_mut().enumerate() {
                if head == "*" || head == index.to_string() {
                    remove(inner, tail);
                }
            }
        }
        _ => {}
    }
}

fn walk(path: &str, recorded: Option<&Value>, ours: Option<&Value>, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for (key, value) in a {
                walk(&format!("{path}/{key}"), Some(value), b.get(key), found);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                walk(&format!("{path}/{key}"), None, Some(value), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}/{index}"), Some(a), Some(b), found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}:\n    recorded {}\n    ours     {}", shown(a), shown(b))),
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".into(), ToString::to_string)
}
