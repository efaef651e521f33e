//! What Go says of the built-in types and OpenAPI does not: field numbers, pointers, what JSON leaves out.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

/// One type per line, as `xtask/testbed/types` prints them.
const TYPES: &str = include_str!("go_types.txt");

/// A field of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) json: String,
    pub(crate) number: u32,
    pub(crate) repeat: Repeat,
    pub(crate) kind: Kind,
    /// A pointer in Go: when it is there, it was meant.
    pub(crate) pointer: bool,
    /// JSON leaves it out when it is empty.
    pub(crate) omit_empty: bool,
    /// Its own fields stand in the parent.
    pub(crate) inline: bool,
}

/// How often a field may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    One,
    List,
    Map,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    Bytes,
    Boolean,
    Integer,
    Double,
    Message(&'static str),
    ListOf(Box<Kind>),
}

impl Kind {
    fn parse(text: &'static str) -> Self {
        match text {
            "s" => Self::Text,
            "y" => Self::Bytes,
            "b" => Self::Boolean,
            "i" => Self::Integer,
            "d" => Self::Double,
            _ => match text.strip_prefix('*') {
                Some(item) => Self::ListOf(Box::new(Self::parse(item))),
                None => Self::Message(text),
            },
        }
    }

    /// The value of a map entry that was left out because it is empty.
    pub(crate) fn zero(&self) -> Value {
        match self {
            Self::Text | Self::Bytes => json!(""),
            Self::Boolean => json!(false),
            Self::Integer | Self::Double => json!(0),
            Self::Message(_) => json!({}),
            Self::ListOf(_) => json!([]),
        }
    }
}

/// The fields of a type; none for a type that is not in the table.
pub(crate) fn fields_of(name: &str) -> Vec<Field> {
    static LINES: LazyLock<BTreeMap<&str, &str>> =
        LazyLock::new(|| TYPES.lines().filter_map(|line| line.split_once(' ')).collect());
    let line: Option<&&'static str> = LINES.get(name);
    line.map_or_else(Vec::new, |line| line.split(' ').filter_map(parse).collect())
}

/// The JSON names of the scalar fields that Go holds by pointer: their zero value was meant, and is written.
pub(crate) fn pointer_fields(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for field in fields_of(name) {
        match field.kind {
            Kind::Message(inner) if field.inline => names.extend(pointer_fields(inner)),
            Kind::Message(_) | Kind::ListOf(_) | Kind::Bytes => {}
            _ if field.pointer && field.repeat == Repeat::One => names.push(field.json),
            _ => {}
        }
    }
    names
}

/// The JSON names of the times that Go holds by value: it writes `null` for one that was never set.
pub(crate) fn value_times(name: &str) -> Vec<String> {
    // Metadata says of its times that zero is to be left out.
    if name.starts_with("io.k8s.apimachinery.") && !name.ends_with(".Condition") {
        return Vec::new();
    }
    let time = |kind: &Kind| matches!(kind, Kind::Message(inner) if inner.ends_with(".meta.v1.Time") || inner.ends_with(".meta.v1.MicroTime"));
    let fields = fields_of(name).into_iter();
    fields
        .filter(|field| !field.pointer && field.repeat == Repeat::One && time(&field.kind))
        .map(|field| field.json)
        .collect()
}

/// `replicas=1:po:i`
fn parse(text: &'static str) -> Option<Field> {
    let (json, rest) = text.split_once('=')?;
    let (number, rest) = rest.split_once(':')?;
    let (flags, kind) = rest.split_once(':')?;
    let repeat = match flags.chars().next() {
        Some('*') => Repeat::List,
        Some('%') => Repeat::Map,
        _ => Repeat::One,
    };
    Some(Field {
        json: json.to_owned(),
        number: number.parse().ok()?,
        repeat,
        kind: Kind::parse(kind),
        pointer: flags.contains('p'),
        omit_empty: flags.contains('o'),
        inline: json == "~",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_can_be_read() {
        for line in TYPES.lines() {
            let Some((name, fields)) = line.split_once(' ') else { continue };
            assert_eq!(fields_of(name).len(), fields.split(' ').count(), "{name}");
        }
    }

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        let names: Vec<&str> = TYPES.lines().filter_map(|line| line.split(' ').next()).collect();
        for name in &names {
            for field in fields_of(name) {
                if let Kind::Message(other) = field.kind {
                    assert!(names.contains(&other), "{name} names {other}");
                }
            }
        }
    }
}
