//! Label and field selectors: what they say, and whether an object matches.

mod demand;

use self::demand::{FieldDemands, LabelDemands};
use super::{metadata::qualified_name_error, resource::Resource};
use crate::{
    error::{Error, Result},
    store::Object,
};

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector and a field selector, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: LabelDemands,
    fields: FieldDemands,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    place: FieldPlace,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldPlace {
    Name,
    Namespace,
    /// The place in the object's own list of selectable fields.
    Own(usize),
}

impl Selector {
    /// Parses both selectors of a request for `resource`.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self> {
        let labels = LabelDemands::new(parse_labels(labels)?);
        Ok(Self { labels, fields: FieldDemands::new(parse_fields(resource, fields)?) })
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can match, if the selector says so.
    pub fn name(&self) -> Option<&str> {
        self.fields.name()
    }

    /// Whether the object matches.
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.hold(object.labels.iter().map(|(key, value)| (&**key, &**value)))
            && self.fields.hold(object)
    }
}

impl Requirement {
    fn key(&self) -> &str {
        match self {
            Self::In(key, _) | Self::NotIn(key, _) => key,
            Self::Exists(key) | Self::Absent(key) | Self::Greater(key, _) | Self::Less(key, _) => key,
        }
    }
}

fn unparsable(part: &str) -> Error {
    let words: Vec<&str> = part.split_whitespace().collect();
    if part.starts_with('=') {
        return Error::bad_request("found '=', expected: !, identifier, or 'end of string'");
    }
    Error::bad_request(match words.as_slice() {
        [_, "in" | "notin", ..] | [_, _] if part.contains('(') => {
            "unable to parse requirement: found '', expected: ',' or ')'".to_owned()
        }
        [_, second, ..] => {
            format!("unable to parse requirement: found '{second}', expected: in, notin, =, ==, !=, gt, lt")
        }
        _ => format!("unable to parse requirement: found an invalid requirement in \"{part}\""),
    })
}

fn parse_labels(selector: &str) -> Result<Vec<Requirement>> {
    split_outside_parentheses(selector)
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let requirement = parse_requirement(part).ok_or_else(|| unparsable(part))?;
            match qualified_name_error(requirement.key()) {
                None => Ok(requirement),
                Some(why) => Err(Error::bad_request(format!(
                    "unable to parse requirement: <nil>: Invalid value: \"{}\": {why}",
                    requirement.key()
                ))),
            }
        })
        .collect()
}

/// Splits at commas that are not inside a set.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(part: &str) -> Option<Requirement> {
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(label_key(key)?, vec![label_value(value)?]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(label_key(key)?, vec![label_value(value)?]));
    }
    if let Some((key, value)) = part.split_once('>') {
        return Some(Requirement::Greater(label_key(key)?, value.trim().parse().ok()?));
    }
    if let Some((key, value)) = part.split_once('<') {
        return Some(Requirement::Less(label_key(key)?, value.trim().parse().ok()?));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Some(Requirement::Absent(label_key(key)?));
    }
    if let Some((head, set)) = part.split_once('(') {
        let values = set.trim_end().strip_suffix(')')?;
        let values: Vec<String> = values.split(',').map(label_value).collect::<Option<_>>()?;
        let mut words = head.split_whitespace();
        let (key, operator, rest) = (words.next()?, words.next()?, words.next());
        return match (operator, rest) {
            ("in", None) => Some(Requirement::In(label_key(key)?, values)),
            ("notin", None) => Some(Requirement::NotIn(label_key(key)?, values)),
            _ => None,
        };
    }
    Some(Requirement::Exists(label_key(part)?))
}

fn label_key(text: &str) -> Option<String> {
    let text = text.trim();
    let valid = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    (!text.is_empty() && text.chars().all(valid)).then(|| text.to_owned())
}

fn label_value(text: &str) -> Option<String> {
    let text = text.trim();
    let valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    text.chars().all(valid).then(|| text.to_owned())
}

fn parse_fields(resource: &Resource, selector: &str) -> Result<Vec<FieldRequirement>> {
    selector
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (field, value, equal) = part
                .split_once("!=")
                .map(|(field, value)| (field, value, false))
                .or_else(|| part.split_once("==").map(|(field, value)| (field, value, true)))
                .or_else(|| part.split_once('=').map(|(field, value)| (field, value, true)))
                .ok_or_else(|| {
                    Error::bad_request(format!("invalid selector: '{selector}'; can't understand '{part}'"))
                })?;
            Ok(FieldRequirement {
                place: field_place(resource, field.trim())?,
                value: unescape(value),
                equal,
            })
        })
        .collect()
}

fn unescape(value: &str) -> String {
    value.trim().replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\")
}

fn field_place(resource: &Resource, field: &str) -> Result<FieldPlace> {
    let stored = match &resource.strategy.conversion {
        Some(conversion) => (conversion.stored_field)(field),
        None => field.into(),
    };
    match &*stored {
        "metadata.name" => Ok(FieldPlace::Name),
        "metadata.namespace" if resource.namespaced || resource.custom().is_none() => {
            Ok(FieldPlace::Namespace)
        }
        _ => resource
            .selectable
            .iter()
            .position(|known| known.name == stored)
            .map(FieldPlace::Own)
            .ok_or_else(|| unsupported_field(resource, field)),
    }
}

/// Kinds that have selectable fields of their own say it in their own words, all others in common ones.
fn unsupported_field(resource: &Resource, field: &str) -> Error {
    let own = resource.custom().is_some() || !resource.selectable.is_empty();
    Error::bad_request(match resource.strategy.unknown_field {
        Some(unknown) => unknown(field),
        None if own => format!("field label not supported: {field}"),
        None => {
            format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        LabelDemands::new(parse_labels(selector).unwrap()).hold(labels.iter().copied())
    }

    #[test]
    fn label_selectors_read_as_kubernetes_reads_them() {
        let labels = [("app", "web"), ("n", "7")];
        for selector in ["", "app", "app=web", "app==web", "app!=db", "!tier", "tier!=x", "app in (web,db)"] {
            assert!(matches(selector, &labels), "{selector}");
        }
        for selector in ["tier", "app=db", "app!=web", "!app", "app notin (web, db)", "n>7", "n<7"] {
            assert!(!matches(selector, &labels), "{selector}");
        }
        assert!(matches("n>6,n<8,app in (web)", &labels));
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        for selector in ["a in", "a in (b", "=b", "a b", "a in (b) c", "a>x"] {
            assert!(parse_labels(selector).is_err(), "{selector}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(selector in ".{0,40}") {
            let _ = parse_labels(&selector);
        }
    }
}
