//! The Rust type of a schema, and the schema that schemars makes of that type: where the two differ, attributes say the
//! rest.

use serde_json::{Value, json};

use super::known::Known;
use crate::schema::{Schema, child, normal};

/// A Rust type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// A type of std, by its name.
    Plain(&'static str),
    /// Base64.
    Bytes,
    /// A moment.
    Time,
    IntOrString,
    Quantity,
    /// A whole object of any kind.
    Raw,
    /// Anything.
    Value,
    /// An enum of the module, with the variants by their values, and the value of its `Default`.
    Enum(String, Vec<(String, String)>, Option<String>),
    /// A struct of the module, and whether it has a `Default`.
    Struct(String, bool),
    /// A struct of k8s-openapi.
    Known(&'static Known),
    Option(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

/// The integers, by their formats, with what schemars says of them.
pub(super) const INTEGERS: [(&str, &str, Option<i64>, Option<i64>); 8] = [
    ("int8", "i8", Some(i8::MIN as i64), Some(i8::MAX as i64)),
    ("int16", "i16", Some(i16::MIN as i64), Some(i16::MAX as i64)),
    ("int32", "i32", None, None),
    ("int64", "i64", None, None),
    ("uint8", "u8", Some(0), Some(u8::MAX as i64)),
    ("uint16", "u16", Some(0), Some(u16::MAX as i64)),
    ("uint32", "u32", Some(0), None),
    ("uint64", "u64", Some(0), None),
];

impl Type {
    /// How the type is written.
    pub(super) fn rust(&self) -> String {
        match self {
            Self::Plain(name) => (*name).to_owned(),
            Self::Bytes => "ByteString".to_owned(),
            Self::Time => "Time".to_owned(),
            Self::IntOrString => "IntOrString".to_owned(),
            Self::Quantity => "Quantity".to_owned(),
            Self::Raw => "RawExtension".to_owned(),
            Self::Value => "Value".to_owned(),
            Self::Enum(name, ..) | Self::Struct(name, _) => name.clone(),
            Self::Known(known) => known.name().to_owned(),
            Self::Option(inner) => format!("Option<{}>", inner.rust()),
            Self::List(inner) => format!("Vec<{}>", inner.rust()),
            Self::Map(inner) => format!("BTreeMap<String, {}>", inner.rust()),
        }
    }

    /// The type that schemars is shown: it knows nothing of `ByteString`.
    pub(super) fn shown(&self) -> Self {
        match self {
            Self::Bytes => Self::Plain("String"),
            Self::Option(inner) => Self::Option(inner.shown().into()),
            Self::List(inner) => Self::List(inner.shown().into()),
            Self::Map(inner) => Self::Map(inner.shown().into()),
            other => other.clone(),
        }
    }

    /// Where it is from, below the SDK; nothing for what needs no `use`.
    pub(super) fn imports(&self, imports: &mut std::collections::BTreeSet<String>) {
        let path = match self {
            Self::Bytes => "k8s_openapi::ByteString",
            Self::Time => "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time",
            Self::IntOrString => "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString",
            Self::Quantity => "k8s_openapi::apimachinery::pkg::api::resource::Quantity",
            Self::Raw => "k8s_openapi::apimachinery::pkg::runtime::RawExtension",
            Self::Value => "serde_json::Value",
            Self::Known(known) => known.path,
            Self::Option(inner) | Self::List(inner) => return inner.imports(imports),
            Self::Map(inner) => {
                imports.insert("std::collections::BTreeMap".to_owned());
                return inner.imports(imports);
            }
            Self::Plain(_) | Self::Enum(..) | Self::Struct(..) => return,
        };
        imports.insert(path.to_owned());
    }

    pub(super) fn has_default(&self) -> bool {
        match self {
            Self::Time => false,
            Self::Enum(_, _, default) => default.is_some(),
            Self::Struct(_, default) => *default,
            Self::Known(known) => known.has_default(),
            _ => true,
        }
    }

    /// The normal schema that schemars makes of this type, which was made for `node`.
    pub(super) fn predicted(&self, node: &Schema) -> Value {
        let below = |keyword: &str| child(node, keyword).cloned().unwrap_or_default();
        match self {
            Self::Plain(name) => plain(name),
            Self::Bytes => json!({"type": "string"}),
            Self::Time => json!({"type": "string", "format": "date-time"}),
            Self::IntOrString | Self::Quantity => json!({"x-kubernetes-int-or-string": true}),
            Self::Raw => json!({"type": "object"}),
            Self::Value => json!(true),
            Self::Enum(_, variants, _) => {
                let values: Vec<&str> = variants.iter().map(|(value, _)| value.as_str()).collect();
                json!({"type": "string", "enum": values})
            }
            // The struct says all that the schema says, but for what belongs to the field.
            Self::Struct(..) => {
                let mut schema = normal(node);
                schema.remove("default");
                schema.remove("nullable");
                Value::Object(schema)
            }
            Self::Known(known) => Value::Object(known.schema().clone()),
            Self::Option(inner) => {
                let mut schema = inner.predicted(node);
                schema["nullable"] = Value::Bool(true);
                schema
            }
            Self::List(inner) => json!({"type": "array", "items": inner.predicted(&below("items"))}),
            Self::Map(inner) => {
                json!({"type": "object", "additionalProperties": inner.predicted(&below("additionalProperties"))})
            }
        }
    }
}

fn plain(name: &str) -> Value {
    match name {
        "String" => json!({"type": "string"}),
        "bool" => json!({"type": "boolean"}),
        "f64" => json!({"type": "number"}),
        "f32" => json!({"type": "number", "format": "float"}),
        _ => {
            let (format, _, minimum, maximum) =
                INTEGERS.iter().find(|(_, rust, ..)| *rust == name).expect("the type must be an integer");
            let mut schema = json!({"type": "integer"});
            if *format != "int64" {
                schema["format"] = json!(format);
            }
            if let Some(minimum) = minimum {
                schema["minimum"] = json!(minimum);
            }
            if let Some(maximum) = maximum {
                schema["maximum"] = json!(maximum);
            }
            schema
        }
    }
}
