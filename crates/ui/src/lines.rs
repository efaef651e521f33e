//! An object as lines of YAML, and for each line who owns its field: an object as JSON enters, [`Line`]s leave. Pure.
//!
//! The API server notes in `metadata.managedFields` which manager wrote which field. Here that book is laid beside the
//! object: a line belongs to every manager whose entry names the field of the line, or a field around it that is owned as
//! a whole.

use serde::Serialize;
use serde_json::{Map, Value};

/// Who has written fields of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manager {
    /// The name of the field manager.
    pub name: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `status`, `scale` or empty.
    pub subresource: String,
    /// When it last wrote, as the server says it.
    pub time: String,
}

/// One line of YAML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The line without its end.
    pub text: String,
    /// Indexes of the managers that own it.
    pub owners: Vec<usize>,
}

/// The managers of an object, in the order of its own book.
pub fn managers(object: &Value) -> Vec<Manager> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| Manager {
        name: text(&entry["manager"]),
        operation: text(&entry["operation"]),
        subresource: text(&entry["subresource"]),
        time: text(&entry["time"]),
    };
    entries(object).iter().map(entry).collect()
}

fn entries(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// The object as YAML without its managed fields, each line with the managers that own it.
pub fn lines(object: &Value) -> Vec<Line> {
    let books: Vec<Book<'_>> = entries(object)
        .iter()
        .enumerate()
        .filter_map(|(manager, entry)| Some(Book { manager, fields: Some(entry["fieldsV1"].as_object()?) }))
        .collect();
    let mut writer = Writer { lines: Vec::new() };
    let mut shown = object.clone();
    if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    match &shown {
        Value::Object(map) if !map.is_empty() => writer.map(map, &books, 0, ""),
        other => writer.lines.push(Line { text: scalar(other), owners: Vec::new() }),
    }
    writer.lines
}

/// The object as YAML without its managed fields.
pub fn yaml(object: &Value) -> String {
    let mut text = String::new();
    for line in lines(object) {
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// What one manager owns at some place of the object.
#[derive(Clone, Copy)]
struct Book<'a> {
    manager: usize,
    /// The fields below; `None` where everything below is owned.
    fields: Option<&'a Map<String, Value>>,
}

impl<'a> Book<'a> {
    /// What it owns below, at the first name that it knows.
    fn below(self, mut name: impl FnMut(&str) -> bool) -> Option<Self> {
        let Some(fields) = self.fields else { return Some(self) };
        let (_, below) = fields.iter().find(|(key, _)| name(key))?;
        let below: &'a Map<String, Value> = below.as_object()?;
        // An empty set of fields below is the field as a whole.
        Some(Self { fields: (!below.is_empty()).then_some(below), ..self })
    }

    /// Whether it owns the place itself, rather than some of what is below.
    fn owns(self) -> bool {
        self.fields.is_none_or(|fields| fields.contains_key("."))
    }
}

fn owners(books: &[Book<'_>]) -> Vec<usize> {
    books.iter().filter(|book| book.owns()).map(|book| book.manager).collect()
}

struct Writer {
    lines: Vec<Line>,
}

impl Writer {
    /// `first` is what stands before the first key instead of its indentation: the dash of a list.
    fn map(&mut self, map: &Map<String, Value>, books: &[Book<'_>], indent: usize, first: &str) {
        for (at, (key, value)) in map.iter().enumerate() {
            let below: Vec<Book<'_>> = books
                .iter()
                .filter_map(|book| book.below(|name| name.strip_prefix("f:") == Some(key.as_str())))
                .collect();
            let before = if at == 0 && !first.is_empty() { first.to_owned() } else { " ".repeat(indent) };
            self.entry(format!("{before}{}:", self::key(key)), value, &below, indent);
        }
    }

    fn entry(&mut self, head: String, value: &Value, books: &[Book<'_>], indent: usize) {
        let owners = owners(books);
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.lines.push(Line { text: head, owners });
                self.map(map, books, indent + 2, "");
            }
            Value::Array(items) if !items.is_empty() => {
                self.lines.push(Line { text: head, owners });
                self.list(items, books, indent);
            }
            Value::String(text) if is_block(text) => self.block(&head, text, owners, indent + 2),
            other => self.lines.push(Line { text: format!("{head} {}", scalar(other)), owners }),
        }
    }

    fn list(&mut self, items: &[Value], books: &[Book<'_>], indent: usize) {
        let dash = format!("{}- ", " ".repeat(indent));
        for (index, item) in items.iter().enumerate() {
            let below: Vec<Book<'_>> =
                books.iter().filter_map(|book| book.below(|name| names_item(name, index, item))).collect();
            match item {
                Value::Object(map) if !map.is_empty() => self.map(map, &below, indent + 2, &dash),
                Value::Array(inner) if !inner.is_empty() => {
                    self.lines.push(Line { text: dash.trim_end().to_owned(), owners: owners(&below) });
                    self.list(inner, &below, indent + 2);
                }
                Value::String(text) if is_block(text) => {
                    self.block(dash.trim_end(), text, owners(&below), indent + 2);
                }
                other => {
                    self.lines
                        .push(Line { text: format!("{dash}{}", scalar(other)), owners: owners(&below) });
                }
            }
        }
    }

    /// Several lines as they are.
    fn block(&mut self, head: &str, text: &str, owners: Vec<usize>, indent: usize) {
        let chomp = if text.ends_with('\n') { "" } else { "-" };
        self.lines.push(Line { text: format!("{head} |{chomp}"), owners: owners.clone() });
        for line in text.lines() {
            let line = if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(indent)) };
            self.lines.push(Line { text: line, owners: owners.clone() });
        }
    }
}

/// Whether a name in the book is that of an item of a list: by its keys, its value or its place.
fn names_item(name: &str, index: usize, item: &Value) -> bool {
    if let Some(keys) = name.strip_prefix("k:") {
        let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
        return keys.iter().all(|(key, value)| item.get(key) == Some(value));
    }
    if let Some(value) = name.strip_prefix("v:") {
        return serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item);
    }
    name.strip_prefix("i:").is_some_and(|place| place.parse() == Ok(index))
}

fn key(key: &str) -> String {
    if is_plain(key) { key.to_owned() } else { quoted(key) }
}

/// A value without parts in one line.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Object(_) => "{}".into(),
        Value::Array(_) => "[]".into(),
        other => other.to_string(),
    }
}

/// In double quotes every character can be written, and anything that a terminal or a reader might act upon is.
fn quoted(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printed(c) => out.push(c),
            c if u32::from(c) > 0xffff => write!(out, "\\U{:08x}", u32::from(c)).unwrap_or_default(),
            c => write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
        }
    }
    out.push('"');
    out
}

/// Controls, and what changes the direction or the lines of a text, are not printed as they are.
fn is_printed(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a string needs no quotes: narrow on purpose, quotes are always right.
fn is_plain(text: &str) -> bool {
    let first =
        text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/' || byte == b'_');
    let rest = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./@+=, ()".contains(&byte) || byte == b':');
    // A colon ends a key only before a space, which no plain string here has after one.
    let colons = !text.contains(": ") && !text.ends_with(':');
    let word = text.to_ascii_lowercase();
    let reserved =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"].contains(&word.as_str());
    first && rest && colons && !reserved && !text.ends_with(' ') && text.len() < 200
}

/// Whether a string is shown as lines of its own: several, none of which needs an escape or begins with a space.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || is_printed(c))
        // A line of spaces alone, or one that ends in them, is not seen by whoever edits it.
        && !text.lines().any(|line| line.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(object: &Value) -> Vec<(String, Vec<usize>)> {
        lines(object).into_iter().map(|line| (line.text, line.owners)).collect()
    }

    #[test]
    fn every_line_says_who_owns_its_field() {
        let object = json!({
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "labels": {"app": "web", "team": "a"},
                "managedFields": [
                    {"manager": "operator", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app": {}}},
                        "f:spec": {"f:template": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}}},
                    }},
                    {"manager": "kubectl", "operation": "Update", "fieldsV1": {
                        "f:metadata": {"f:labels": {".": {}, "f:team": {}}},
                        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:finalizers": {"v:\"a\"": {}}, "f:places": {"i:1": {}}},
                    }},
                ],
            },
            "spec": {
                "finalizers": ["a", "b"],
                "places": ["x", "y"],
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"containers": [{"image": "nginx", "name": "web", "tty": true}]},
            },
        });
        let line = |text: &str, owners: &[usize]| (text.to_owned(), owners.to_vec());
        assert_eq!(
            shown(&object),
            [
                line("kind: Deployment", &[]),
                line("metadata:", &[]),
                line("  labels:", &[1]),
                line("    app: web", &[0]),
                line("    team: a", &[1]),
                line("  name: web", &[]),
                line("spec:", &[]),
                line("  finalizers:", &[]),
                line("  - a", &[1]),
                line("  - b", &[]),
                line("  places:", &[]),
                line("  - x", &[]),
                line("  - \"y\"", &[1]),
                line("  replicas: 3", &[1]),
                line("  selector:", &[1]),
                line("    matchLabels:", &[1]),
                line("      app: web", &[1]),
                line("  template:", &[]),
                line("    containers:", &[]),
                line("    - image: nginx", &[0]),
                line("      name: web", &[0]),
                line("      tty: true", &[]),
            ]
        );
        assert_eq!(managers(&object)[1].name, "kubectl");
    }

    fn anything() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~]{0,12}",
            "[a-z :#-]{0,8}",
            "([a-z #:-]{0,4}\n){0,3}[a-z]{0,3}\n?",
            any::<String>(),
            "(true|no|null|~|1e3|0x1f|2026-01-01|- a|a: b|\\|)",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000_i32..1000).prop_map(|number| json!(f64::from(number) / 8.0)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone().prop_map(String::from), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn what_is_shown_is_read_back_as_it_was(spec in anything()) {
            let object = json!({"spec": spec});
            let text = yaml(&object);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, object, "{}", text);
        }

        #[test]
        fn no_line_holds_what_a_terminal_or_a_reader_acts_upon(spec in anything()) {
            for line in lines(&json!({"spec": spec})) {
                prop_assert!(line.text.chars().all(is_printed), "{:?}", line.text);
            }
        }
    }
}
