//! Answers without what no two servers say alike: uids, revisions, times, generated names, addresses.
//!
//! Equal values stay equal: the first uid of a script becomes `<uid 1>` wherever it appears, so that a write
//! that changes nothing is seen to keep its revision.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::script::Script;

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").unwrap());
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+[smhdy])+$").unwrap());
static RECORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(in record \(|resourceVersion: |current: )\d+").unwrap());
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^10\.\d+\.\d+\.\d+$").unwrap());

/// The volume of a service account's token, whose name ends in chance.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| Regex::new("kube-api-access-[a-z0-9]{5}").unwrap());

/// What is known about the values of one run of a script.
pub(super) struct Normal<'a> {
    script: &'a Script,
    uids: Vec<String>,
    revisions: Vec<String>,
    /// Texts to replace wherever they appear, such as the name of the namespace.
    names: Vec<(String, String)>,
}

impl<'a> Normal<'a> {
    pub(super) fn new(script: &'a Script, names: Vec<(String, String)>) -> Self {
        Self { script, uids: Vec::new(), revisions: Vec::new(), names }
    }

    pub(super) fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(list) => list.into_iter().map(|one| self.value(one)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        }
    }

    fn object(&mut self, map: Map<String, Value>) -> Value {
        let stored = map.get("uid").is_some_and(Value::is_string);
        if let (Some(prefix), Some(name)) = (string(&map, "generateName"), string(&map, "name"))
            && name.starts_with(&prefix)
            && name.len() == prefix.len() + 5
        {
            self.names.push((name, format!("{prefix}<suffix>")));
        }
        let mut out = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("managedFields", _) if !self.script.managed => continue,
                ("resourceVersion", Value::String(revision)) => json!(self.revision(&revision, stored)),
                ("continue", Value::String(token)) if !token.is_empty() => json!("<continue>"),
                ("nodePort" | "healthCheckNodePort", Value::Number(port)) => self.port(&port.to_string()),
                ("cells", Value::Array(cells)) => cells.into_iter().map(|cell| self.cell(cell)).collect(),
                (_, value) => self.value(value),
            };
            out.insert(self.text(&key), value);
        }
        Value::Object(out)
    }

    fn revision(&mut self, revision: &str, stored: bool) -> String {
        if !stored || self.says(&format!("\"{revision}\"")) {
            return if revision.is_empty() || self.says(&format!("\"{revision}\"")) {
                revision.to_owned()
            } else {
                "<revision>".into()
            };
        }
        format!("<revision {}>", ordinal(&mut self.revisions, revision))
    }

    fn port(&self, port: &str) -> Value {
        if self.says(port) { json!(port) } else { json!("<port>") }
    }

    fn cell(&mut self, cell: Value) -> Value {
        match cell {
            Value::String(text) if AGE.is_match(&text) => json!("<age>"),
            Value::String(text) => {
                let text = Regex::new(r"\((\d+[smhdy])+ ago\)")
                    .unwrap()
                    .replace_all(&text, "(<age> ago)")
                    .into_owned();
                let ports = Regex::new(r":3\d{4}/").unwrap().replace_all(&text, ":<port>/").into_owned();
                self.value(Value::String(ports))
            }
            other => self.value(other),
        }
    }

    fn says(&self, literal: &str) -> bool {
        self.script.text.contains(literal)
    }

    /// A text in which everything generated has a stable name.
    pub(super) fn text(&mut self, text: &str) -> String {
        if (TIME.is_match(text) || ADDRESS.is_match(text)) && !self.says(text) {
            return if ADDRESS.is_match(text) { "<address>" } else { "<time>" }.into();
        }
        let mut out = text.to_owned();
        for (from, to) in &self.names {
            out = out.replace(from, to);
        }
        let out = TOKEN.replace_all(&out, "kube-api-access-<suffix>").into_owned();
        let script = self.script;
        let uids = &mut self.uids;
        let out = UID.replace_all(&out, |found: &Captures<'_>| {
            if script.text.contains(&found[0]) {
                return found[0].to_owned();
            }
            format!("<uid {}>", ordinal(uids, &found[0]))
        });
        RECORD.replace_all(&out, "$1<revision>").into_owned()
    }
}

fn string(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// The place of a value among those seen, from one.
fn ordinal(seen: &mut Vec<String>, value: &str) -> usize {
    match seen.iter().position(|known| known == value) {
        Some(index) => index + 1,
        None => {
            seen.push(value.to_owned());
            seen.len()
        }
    }
}
