//! Paths into an object, which name list items by what they are and not by where they stand.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use crate::schema::json as value;

/// One step into an object.
#[derive(Clone, Debug)]
pub(crate) enum PathElement {
    /// A field of a struct or a key of a map.
    Field(String),
    /// The item of a list whose key fields have these values, sorted by field name.
    Key(Vec<(String, Value)>),
    /// The item of a set that has this value.
    Value(Value),
    /// The item at this place of an atomic list.
    Index(i64),
}

/// The steps from the root to a field.
pub(crate) type Path = Vec<PathElement>;

impl PathElement {
    /// A field by name.
    pub(crate) fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

fn compare_keys(left: &[(String, Value)], right: &[(String, Value)]) -> Ordering {
    for ((left_name, left_value), (right_name, right_value)) in left.iter().zip(right) {
        let order = left_name.cmp(right_name).then_with(|| value::compare(left_value, right_value));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", Shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// `path` as the real server prints it: `.spec.containers[name="web"].image`.
pub(crate) fn shown(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{}", Shown(item))?;
                }
                f.write_str("]")
            }
            Value::Object(object) => show_object(object, f),
            scalar => write!(f, "{scalar}"),
        }
    }
}

fn show_object(object: &Map<String, Value>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    object.iter().try_for_each(|(key, value)| write!(f, "{key}={}", Shown(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_prints_as_the_server_prints_it() {
        let path = [
            PathElement::field("spec"),
            PathElement::field("ports"),
            PathElement::Key(vec![("port".to_owned(), json!(80)), ("protocol".to_owned(), json!("TCP"))]),
            PathElement::field("name"),
        ];
        assert_eq!(shown(&path), r#".spec.ports[port=80,protocol="TCP"].name"#);
        assert_eq!(shown(&[PathElement::Value(json!("x"))]), r#"[="x"]"#);
    }

    #[test]
    fn fields_come_before_keys_before_values_before_indices() {
        let mut elements = [
            PathElement::Index(0),
            PathElement::Value(json!(1)),
            PathElement::Key(vec![("name".to_owned(), json!("a"))]),
            PathElement::field("z"),
        ];
        elements.sort();
        let ranks: Vec<u8> = elements.iter().map(PathElement::rank).collect();
        assert_eq!(ranks, [0, 1, 2, 3]);
    }
}
