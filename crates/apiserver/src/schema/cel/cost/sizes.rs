//! What a schema says about how large values can be.

use serde_json::Value as Json;

use super::{
    super::{convert::escaped, types::Type},
    range::Range,
};

/// The largest request that the real server reckons with.
const REQUEST: u64 = 3 * 1024 * 1024;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    Items,
    Indices,
    Keys,
    Values,
}

/// A value that a schema declares.
#[derive(Clone, Copy)]
enum Cursor<'a> {
    Schema {
        schema: &'a Json,
        resource: bool,
    },
    Metadata,
    /// A text of a resource that every resource has.
    Text,
    /// The name of a property.
    Key,
}

/// How large the value at a path can be. The path begins with a variable, whichever that is.
pub(super) fn declared(root: &Json, resource: bool, path: &[Step]) -> Option<Range> {
    let (_, steps) = path.split_first()?;
    let mut place = Cursor::Schema { schema: root, resource };
    for step in steps {
        place = place.step(step)?;
    }
    Some(Range { least: 0, most: place.most() })
}

impl<'a> Cursor<'a> {
    fn step(self, step: &Step) -> Option<Self> {
        let (schema, resource) = match (self, step) {
            (Self::Schema { schema, resource }, _) => (schema, resource),
            (Self::Metadata, Step::Field(name)) if matches!(&**name, "name" | "generateName") => {
                return Some(Self::Text);
            }
            _ => return None,
        };
        let below = |schema: &'a Json| {
            let resource = schema["x-kubernetes-embedded-resource"] == true;
            Type::of(schema, false).map(|_| Self::Schema { schema, resource })
        };
        if is_int_or_string(schema) {
            return None;
        }
        match step {
            Step::Items if schema["type"] == "array" => below(schema.get("items")?),
            Step::Values => below(values(schema, resource)?),
            Step::Keys => values(schema, resource).map(|_| Self::Key),
            Step::Field(name) if schema["type"] == "object" && values(schema, resource).is_none() => {
                match &**name {
                    "apiVersion" | "kind" if resource => Some(Self::Text),
                    "metadata" if resource => Some(Self::Metadata),
                    _ => {
                        let mut properties = schema["properties"].as_object()?.iter();
                        below(properties.find(|(property, _)| escaped(property) == *name)?.1)
                    }
                }
            }
            _ => None,
        }
    }

    /// How many items, properties or characters it has at most.
    fn most(self) -> u64 {
        let (schema, resource) = match self {
            Self::Schema { schema, resource } => (schema, resource),
            Self::Text => return REQUEST - 2,
            Self::Metadata | Self::Key => return 0,
        };
        let said = |keyword: &str| schema.get(keyword).and_then(Json::as_f64).map(whole);
        // A character takes up to four bytes.
        let by_length = || said("maxLength").map(|length| length.saturating_mul(4));
        if is_int_or_string(schema) {
            return by_length().unwrap_or(REQUEST - 2);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => said("maxItems").unwrap_or_else(|| {
                let item = schema.get("items").map_or(0, |items| least_bytes(items, false));
                (REQUEST - 2) / (item + 1)
            }),
            "object" => match values(schema, resource) {
                Some(values) => {
                    said("maxProperties").unwrap_or_else(|| (REQUEST - 2) / (least_bytes(values, false) + 6))
                }
                None => 0,
            },
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "byte" => said("maxLength").unwrap_or(REQUEST - 2),
                "duration" | "date-time" => 32,
                "date" => 12,
                _ => by_length().or_else(|| longest_choice(schema)).unwrap_or(REQUEST - 2),
            },
            _ => 0,
        }
    }
}

/// How many values of a schema can be in one request, with a comma between them.
pub(crate) fn most_in_a_request(schema: &Json, root: bool) -> u64 {
    REQUEST / (least_bytes(schema, root) + 1)
}

/// How many bytes of JSON a value has at least.
fn least_bytes(schema: &Json, root: bool) -> u64 {
    if is_int_or_string(schema) {
        return 1;
    }
    let resource = root || schema["x-kubernetes-embedded-resource"] == true;
    match schema["type"].as_str().unwrap_or_default() {
        "object" if values(schema, resource).is_none() => 2 + required(schema, resource),
        "string" => match schema["format"].as_str().unwrap_or_default() {
            "duration" => 3,
            "date" => 12,
            "date-time" => 21,
            _ => 2,
        },
        "boolean" => 4,
        "integer" | "number" => 1,
        _ => 2,
    }
}

/// What the fields that must be there take.
fn required(schema: &Json, resource: bool) -> u64 {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let least = |name: &str| match name {
        "apiVersion" | "kind" | "metadata" if resource => Some(2),
        _ => {
            let property = schema["properties"].get(name)?;
            Type::of(property, false)?;
            property.get("default").is_none().then(|| least_bytes(property, false))
        }
    };
    names.filter_map(|name| Some(name.len() as u64 + least(name)? + 4)).sum()
}

fn is_int_or_string(schema: &Json) -> bool {
    schema["x-kubernetes-int-or-string"] == true
}

/// The schema of a map's values.
fn values(schema: &Json, resource: bool) -> Option<&Json> {
    schema.get("additionalProperties").filter(|values| values.is_object() && !resource)
}

/// The length of the longest text that an enumeration allows.
fn longest_choice(schema: &Json) -> Option<u64> {
    let choices = schema["enum"].as_array().filter(|choices| !choices.is_empty())?;
    Some(choices.iter().filter_map(Json::as_str).map(str::len).max().unwrap_or(0) as u64)
}

/// A limit of a schema, which is written as any number is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a limit below zero counts as zero, and one beyond all integers as the largest"
)]
pub(crate) fn whole(limit: f64) -> u64 {
    limit as u64
}
