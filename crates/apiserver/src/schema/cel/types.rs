//! The types that the check of an expression knows, and how a schema declares them.

use std::{fmt, sync::Arc};

use serde_json::Value as Json;

use super::convert::escaped;

/// The keyword by which a schema says that its type has a name, and fields that need no escaping. No schema of a
/// user can have it.
pub(super) const BUILT_IN: &str = "$name";

/// What is known of a value before there is one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type<'a> {
    /// Anything: nothing can be wrong with it.
    Dyn,
    /// The real server may know what it is, but nothing is known here: nothing is said about it.
    Unknown,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Timestamp,
    Duration,
    List(Box<Type<'a>>),
    Map(Box<Type<'a>>, Box<Type<'a>>),
    Optional(Box<Type<'a>>),
    /// A value that only functions can look into, such as a quantity.
    Opaque(&'static str),
    /// An object whose fields a schema declares; a resource has a kind and a name as well.
    Object {
        schema: &'a Json,
        resource: bool,
    },
    /// The metadata of a resource, of which the name can be seen.
    Metadata,
    /// What a policy has computed before.
    Variables(Arc<Vec<(String, Type<'static>)>>),
}

impl<'a> Type<'a> {
    /// The type that a schema declares. `None`: it says too little, and expressions cannot see the value.
    pub(super) fn of(schema: &'a Json, root: bool) -> Option<Self> {
        if schema["x-kubernetes-int-or-string"] == true {
            return Some(Self::Dyn);
        }
        let resource = root || schema["x-kubernetes-embedded-resource"] == true;
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        Some(match text("type") {
            "array" => Self::List(Box::new(Self::of(schema.get("items")?, false)?)),
            "object" => match schema.get("additionalProperties").filter(|schema| schema.is_object()) {
                Some(values) if !resource => {
                    Self::Map(Box::new(Self::Text), Box::new(Self::of(values, false)?))
                }
                _ => Self::Object { schema, resource },
            },
            "string" => match text("format") {
                "byte" => Self::Bytes,
                "date" | "date-time" => Self::Timestamp,
                "duration" => Self::Duration,
                _ => Self::Text,
            },
            "boolean" => Self::Bool,
            "integer" => Self::Int,
            "number" => Self::Double,
            _ => return None,
        })
    }

    /// A field of an object; `None` if it has no such field.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Metadata => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Variables(known) => {
                known.iter().rev().find(|(known, _)| known == name).map(|(_, of)| of.clone())
            }
            Self::Object { resource: true, .. } if matches!(name, "apiVersion" | "kind") => Some(Self::Text),
            Self::Object { resource: true, .. } if name == "metadata" => Some(Self::Metadata),
            Self::Object { schema, .. } => {
                let properties = schema["properties"].as_object()?;
                let is_built_in = schema.get(BUILT_IN).is_some();
                let is_meant =
                    |property: &str| if is_built_in { property == name } else { escaped(property) == name };
                let (_, property) = properties.iter().find(|(property, _)| is_meant(property))?;
                Self::of(property, false)
            }
            _ => None,
        }
    }

    pub(super) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    /// Whether a value of one type may be where the other is wanted.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Unknown, _) | (_, Self::Dyn | Self::Unknown) => true,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.fits(other)
            }
            (Self::Map(key, value), Self::Map(other_key, other)) => key.fits(other_key) && value.fits(other),
            (Self::Null, other) | (other, Self::Null) => other.may_be_null(),
            (one, other) => one == other,
        }
    }

    /// Whether both are one type, as far as that is known.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.is_same(other)
            }
            (Self::Map(key, value), Self::Map(other_key, other)) => {
                key.is_same(other_key) && value.is_same(other)
            }
            (one, other) => one == other,
        }
    }

    fn may_be_null(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Timestamp
                | Self::Duration
                | Self::Object { .. }
                | Self::Metadata
                | Self::Opaque(_)
                | Self::Optional(_)
        )
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// What both branches of a choice have in common, if anything.
    pub(super) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Null, other) | (other, Self::Null) => other,
            (one, other) if one == other => one,
            _ => Self::Dyn,
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Unknown => f.write_str("dyn"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Opaque(name) => f.write_str(name),
            // The real server's name for a custom one has a number that is another one every time.
            Self::Object { schema, .. } => f.write_str(schema[BUILT_IN].as_str().unwrap_or("selfType")),
            Self::Metadata => f.write_str("selfType"),
            Self::Variables(_) => f.write_str("kubernetes.variables"),
        }
    }
}
