//! A field of a struct: its type, its default, and the attributes that make serde and schemars say what the schema says.
//! What no attribute can say is a function that gives the schema as it is.

use serde_json::Value;

use super::{
    patch::{Patch, guarded},
    plan::{Location, Plan},
    print,
    types::Type,
};
use crate::{
    names,
    schema::{self, Schema, flag, is_int_or_string},
};

/// Above this many characters, a schema goes without its descriptions.
const HUGE: usize = 20_000;

/// What a field is made from.
pub(super) struct Field<'a> {
    pub(super) owner: &'a str,
    pub(super) name: &'a str,
    pub(super) ident: String,
    pub(super) schema: &'a Schema,
    pub(super) required: bool,
}

/// A field as text.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) kube_schema: bool,
    pub(super) has_default: bool,
}

pub(super) fn write(plan: &mut Plan<'_>, field: &Field<'_>, place: &Location) -> Written {
    let node = field.schema;
    let base = plan.type_of(node, place);
    let default = schema::default(node);
    let optional = !field.required && default.is_none();
    // Their emptiness says that they are absent.
    let empties = matches!(base, Type::List(_) | Type::Map(_) | Type::Value);
    let wrapped = base != Type::Value && (flag(node, "nullable") || (optional && !empties));
    let ty = if wrapped { Type::Option(base.clone().into()) } else { base.clone() };

    let mut serde = Vec::new();
    if names::camel(&field.ident) != field.name {
        serde.push(format!("rename = {}", print::string(field.name)));
    }
    let mut patch = Patch::new(node, &base);
    let mut has_default = ty.has_default();
    if let Some(default) = default {
        if !is_own_default(&ty, default) {
            has_default = false;
            serde.push(format!("default = {:?}", default_function(plan, field, &ty, default)));
            if !is_written_alike(&ty) {
                patch.extend.push(("default".to_owned(), default.clone()));
            }
        } else {
            serde.push("default".to_owned());
        }
    } else if optional {
        serde.push("default".to_owned());
        let test = match &ty {
            Type::List(_) => "Vec::is_empty",
            Type::Map(_) => "BTreeMap::is_empty",
            Type::Value => "Value::is_null",
            _ => "Option::is_none",
        };
        serde.push(format!("skip_serializing_if = {test:?}"));
    }
    // kube's derive takes every int-or-string that may be missing for one that may be null.
    if is_int_or_string(node) && !flag(node, "nullable") && (!field.required || default.is_some()) {
        patch.extend.push(("nullable".to_owned(), Value::Bool(false)));
    }

    let mut text = print::docs(4, schema::text(node, "description"));
    if !serde.is_empty() {
        text.push_str(&print::attribute(4, "serde", &serde));
    }
    if patch.whole {
        let function = schema_function(plan, field, place);
        text.push_str(&print::attribute(4, "schemars", &[format!("schema_with = {function:?}")]));
        patch.extend.retain(|(keyword, _)| keyword == "default");
        patch.meta.clear();
        patch.kube.clear();
    } else if wrapped || base.shown() != base {
        patch.meta.insert(0, format!("with = {:?}", base.shown().rust()));
    }
    text.push_str(&patch.lines(4));
    text.push_str(&format!("    pub {}: {},\n", field.ident, ty.rust()));
    Written { text, kube_schema: !patch.kube.is_empty(), has_default }
}

/// Whether `Default` gives this value.
fn is_own_default(ty: &Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::Plain(_), Value::String(text)) => text.is_empty(),
        (Type::Plain("bool"), value) => *value == Value::Bool(false),
        (Type::Plain(_), Value::Number(number)) => number.as_f64() == Some(0.0),
        (Type::Enum(_, _, default), value) => {
            value.as_str().is_some_and(|value| default.as_deref() == Some(value))
        }
        (Type::List(_), Value::Array(items)) => items.is_empty(),
        (Type::Map(_), Value::Object(object)) => object.is_empty(),
        _ => false,
    }
}

/// Whether a value that was read is written as it was.
fn is_written_alike(ty: &Type) -> bool {
    match ty {
        Type::Struct(..) | Type::Known(_) | Type::Time | Type::Bytes | Type::Quantity => false,
        Type::Option(inner) | Type::List(inner) | Type::Map(inner) => is_written_alike(inner),
        _ => true,
    }
}

/// The name of the function that gives the default.
fn default_function(plan: &mut Plan<'_>, field: &Field<'_>, ty: &Type, value: &Value) -> String {
    let sdk = &plan.options.sdk;
    let expression = expression(ty, value).unwrap_or_else(|| {
        let json = print::string(&value.to_string());
        let call = format!("{sdk}::serde_json::from_str({json})");
        print::expect(&call, "the default must fit its type")
    });
    let ident = field.ident.trim_start_matches("r#");
    let names = [format!("default_{ident}"), format!("default_{}_{ident}", names::field(field.owner))];
    Plan::function(&mut plan.defaults, names, (ty.rust(), expression))
}

/// A value as an expression, where that is short.
fn expression(ty: &Type, value: &Value) -> Option<String> {
    Some(match (ty, value) {
        (Type::Plain("String"), Value::String(text)) => format!("{}.to_owned()", print::string(text)),
        (Type::Plain("bool"), Value::Bool(value)) => value.to_string(),
        (Type::Plain("f32" | "f64"), Value::Number(number)) => format!("{:?}", number.as_f64()?),
        (Type::Plain(_), Value::Number(number)) => number.to_string(),
        (Type::Enum(name, variants, _), Value::String(value)) => {
            let (_, variant) = variants.iter().find(|(known, _)| known == value)?;
            format!("{name}::{variant}")
        }
        (Type::IntOrString, Value::Number(number)) => format!("IntOrString::Int({number})"),
        (Type::IntOrString, Value::String(text)) => {
            format!("IntOrString::String({}.to_owned())", print::string(text))
        }
        (Type::Quantity, Value::String(text)) => format!("Quantity({}.to_owned())", print::string(text)),
        (Type::Option(inner), value) => format!("Some({})", expression(inner, value)?),
        (Type::List(inner), Value::Array(items)) => {
            let items: Option<Vec<_>> = items.iter().map(|item| expression(inner, item)).collect();
            format!("vec![{}]", items?.join(", "))
        }
        _ => return None,
    })
    .filter(|expression| expression.len() <= print::WIDTH - 10)
}

/// The name of the function that gives the schema; equal ones share it.
fn schema_function(plan: &mut Plan<'_>, field: &Field<'_>, place: &Location) -> String {
    // The field has the description.
    let mut schema = field.schema.clone();
    schema.remove("description");
    let raw = guarded(&Value::Object(schema));
    let mut document = print::document(&raw);
    if document.len() > HUGE {
        document = print::document(&without_descriptions(&raw));
    }
    if let Some((name, _)) = plan.schemas.iter().find(|(_, (_, known))| *known == document) {
        return name.clone();
    }
    let ident = field.ident.trim_start_matches("r#");
    let names = [format!("{ident}_schema"), format!("{}_{ident}_schema", names::field(field.owner))];
    Plan::function(&mut plan.schemas, names, (place.path.clone(), document))
}

/// The schema without the descriptions below it.
fn without_descriptions(value: &Value) -> Value {
    let Value::Object(schema) = value else { return value.clone() };
    let mut schema = schema.clone();
    schema.remove("description");
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(keyword) {
            *below = without_descriptions(below);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = without_descriptions(property));
    }
    Value::Object(schema)
}
