//! The part of JSONPath that printer columns use: fields, indexes, wildcards and equality filters.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter { path: Vec<Step>, value: Option<Value> },
}

/// What the path finds in the object. A path that cannot be read finds nothing.
pub(super) fn find<'a>(path: &str, object: &'a Value) -> Vec<&'a Value> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}');
    parse(path).map_or_else(Vec::new, |steps| walk(&steps, vec![object]))
}

fn walk<'a>(steps: &[Step], mut found: Vec<&'a Value>) -> Vec<&'a Value> {
    for step in steps {
        found = found.into_iter().flat_map(|value| apply(step, value)).collect();
    }
    found
}

fn apply<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
        (Step::Index(index), Value::Array(list)) => {
            let index = if *index < 0 { list.len() as i64 + index } else { *index };
            usize::try_from(index).ok().and_then(|index| list.get(index)).into_iter().collect()
        }
        (Step::All, Value::Array(list)) => list.iter().collect(),
        (Step::All, Value::Object(map)) => map.values().collect(),
        (Step::Filter { path, value: wanted }, Value::Array(list)) => list
            .iter()
            .filter(|item| {
                let found = walk(path, vec![item]);
                match wanted {
                    Some(wanted) => found.contains(&wanted),
                    None => !found.is_empty(),
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after)?;
            steps.push(bracket(&after[..end])?);
            rest = &after[end + 1..];
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (name, next) = field(after);
            if name.is_empty() {
                return None;
            }
            steps.push(if name == "*" { Step::All } else { Step::Field(name) });
            rest = next;
        }
    }
    Some(steps)
}

/// A field name up to the next dot or bracket; a backslash takes the meaning from a dot.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, &text[index..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            other => name.push(other),
        }
    }
    (name, "")
}

/// Where the bracket that is already open closes, quotes and inner brackets skipped.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (path, value) = match filter.split_once("==") {
            Some((path, value)) => (path, Some(literal(value.trim())?)),
            None => (filter, None),
        };
        return Some(Step::Filter { path: parse(path.trim().strip_prefix('@')?)?, value });
    }
    if let Some(Value::String(name)) = literal(inside) {
        return Some(Step::Field(name));
    }
    inside.parse().ok().map(Step::Index)
}

fn literal(text: &str) -> Option<Value> {
    if let Some(inner) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(Value::String(inner.to_owned()));
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_paths_of_printer_columns_work() {
        let object = json!({"spec": {"replicas": 3, "a.b": "dotted"}, "status": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}});
        let text = |path: &str| find(path, &object).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(text(".spec.replicas"), [json!(3)]);
        assert_eq!(text("{.spec.replicas}"), [json!(3)]);
        assert_eq!(text(".status.conditions[?(@.type==\"Ready\")].status"), [json!("True")]);
        assert_eq!(text(".status.conditions[?(@.type=='Other')].status"), [json!("False")]);
        assert_eq!(text(".status.conditions[*].type"), [json!("Ready"), json!("Other")]);
        assert_eq!(text(".status.conditions[-1].type"), [json!("Other")]);
        assert_eq!(text(".spec['a.b']"), [json!("dotted")]);
        assert_eq!(text(".spec.a\\.b"), [json!("dotted")]);
        assert!(text(".spec.missing.more").is_empty());
    }

    proptest! {
        #[test]
        fn no_path_makes_the_reader_panic(path in ".{0,40}") {
            find(&path, &json!({"a": [1]}));
        }
    }
}
