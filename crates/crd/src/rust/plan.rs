//! From a schema to the items of a module: every object becomes a struct, every list of words an enum, and equal ones are
//! written once. Names are those of the fields; where two would be the same, the names above them are put in front.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Lost, Options,
    field::{self, Field},
    known, patch, print,
    types::{INTEGERS, Type},
};
use crate::{
    names,
    schema::{
        self, Schema, child, flag, is_int_or_string, items, normal, preserves, properties, strings, text,
    },
};

/// Names that mean something in every module, or in what the derives make of it.
const TAKEN: [&str; 45] = [
    "BTreeMap",
    "Box",
    "ByteString",
    "Clone",
    "Copy",
    "CustomResource",
    "Debug",
    "Default",
    "Deserialize",
    "Drop",
    "Eq",
    "Fn",
    "From",
    "Hash",
    "IntOrString",
    "Into",
    "Iterator",
    "JsonSchema",
    "KubeSchema",
    "ListMerge",
    "MapMerge",
    "Message",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Quantity",
    "RawExtension",
    "Reason",
    "Result",
    "Rule",
    "Schema",
    "SchemaGenerator",
    "Send",
    "Serialize",
    "Sized",
    "String",
    "StructMerge",
    "Sync",
    "Time",
    "ToOwned",
    "ToString",
    "Validated",
    "Value",
    "Vec",
];

/// Where a schema stands.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// As `kubectl explain` names it.
    pub(super) path: String,
    /// The names of types on the way here, the last one being this one's.
    names: Vec<String>,
}

impl Location {
    pub(super) fn new(path: &str, name: &str) -> Self {
        Self { path: path.to_owned(), names: vec![name.to_owned()] }
    }

    pub(super) fn field(&self, name: &str) -> Self {
        let mut names = self.names.clone();
        names.push(names::pascal(name));
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{name}", self.path), names }
    }

    fn item(&self, mark: &str) -> Self {
        let mut place = self.clone();
        place.path.push_str(mark);
        if let Some(last) = place.names.last_mut() {
            *last = names::singular(last);
        }
        place
    }
}

/// What a module is made of.
pub(super) struct Plan<'o> {
    pub(super) options: &'o Options,
    /// The structs and enums, each before those that it uses.
    pub(super) items: Vec<String>,
    /// The functions that give defaults, by their names: a type and an expression.
    pub(super) defaults: BTreeMap<String, (String, String)>,
    /// The functions that give schemas, by their names: a path and a document.
    pub(super) schemas: BTreeMap<String, (String, String)>,
    pub(super) imports: BTreeSet<String>,
    pub(super) kube_schema: bool,
    pub(super) json_schema: bool,
    pub(super) lost: Vec<Lost>,
    taken: BTreeSet<String>,
    known: BTreeMap<String, Type>,
}

impl<'o> Plan<'o> {
    pub(super) fn new(options: &'o Options, reserved: impl IntoIterator<Item = String>) -> Self {
        let mut taken: BTreeSet<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
        taken.extend(known::names().map(str::to_owned));
        taken.extend(reserved);
        Self {
            options,
            items: Vec::new(),
            defaults: BTreeMap::new(),
            schemas: BTreeMap::new(),
            imports: BTreeSet::new(),
            kube_schema: false,
            json_schema: false,
            lost: Vec::new(),
            taken,
            known: BTreeMap::new(),
        }
    }

    /// The type of a schema; what it is made of becomes part of the module.
    pub(super) fn type_of(&mut self, node: &Schema, place: &Location) -> Type {
        let ty = self.choose(node, place);
        ty.imports(&mut self.imports);
        ty
    }

    fn choose(&mut self, node: &Schema, place: &Location) -> Type {
        if is_int_or_string(node) {
            let quantity = text(node, "pattern").contains("[KMGTPE]i");
            return if quantity { Type::Quantity } else { Type::IntOrString };
        }
        if self.options.well_known
            && let Some(known) = known::find(node)
        {
            return Type::Known(known);
        }
        match text(node, "type") {
            "string" => self.string(node, place),
            "boolean" => Type::Plain("bool"),
            "integer" => Type::Plain(integer(node)),
            "number" if text(node, "format") == "float" => Type::Plain("f32"),
            "number" => Type::Plain("f64"),
            "array" => {
                let inner =
                    child(node, "items").map_or(Type::Value, |items| self.inner(items, &place.item("[]")));
                Type::List(inner.into())
            }
            "object" => self.object(node, place),
            _ => Type::Value,
        }
    }

    /// The type of what a list or a map holds.
    fn inner(&mut self, node: &Schema, place: &Location) -> Type {
        let ty = self.type_of(node, place);
        if flag(node, "nullable") && ty != Type::Value { Type::Option(ty.into()) } else { ty }
    }

    fn string(&mut self, node: &Schema, place: &Location) -> Type {
        let values = strings(node, "enum");
        if !values.is_empty() && values.len() == items(node, "enum").len() {
            return self.enumeration(node, &values, place);
        }
        match text(node, "format") {
            "date-time" => Type::Time,
            "byte" => Type::Bytes,
            _ => Type::Plain("String"),
        }
    }

    fn object(&mut self, node: &Schema, place: &Location) -> Type {
        if child(node, "properties").is_some_and(|properties| !properties.is_empty()) {
            return self.structure(node, place);
        }
        if flag(node, "x-kubernetes-embedded-resource") {
            return Type::Raw;
        }
        let inner = child(node, "additionalProperties")
            .map_or(Type::Value, |additional| self.inner(additional, &place.item("{}")));
        Type::Map(inner.into())
    }

    fn enumeration(&mut self, node: &Schema, values: &[&str], place: &Location) -> Type {
        let key = format!("enum {values:?}");
        if let Some(ty) = self.known.get(&key) {
            return ty.clone();
        }
        self.json_schema = true;
        let name = self.name(place);
        let mut taken = BTreeSet::new();
        let mut text = print::docs(0, schema::text(node, "description"));
        let default =
            schema::default(node).and_then(Value::as_str).filter(|default| values.contains(default));
        let derive = if default.is_some() { "Default, " } else { "" };
        text.push_str(&format!(
            "#[derive(JsonSchema, Clone, Copy, Debug, {derive}PartialEq, Eq, Serialize, Deserialize)]\n"
        ));
        text.push_str(&format!("pub enum {name} {{\n"));
        let mut variants = Vec::new();
        for value in values {
            let variant = unique(&names::pascal(value), &mut taken);
            if default == Some(*value) {
                text.push_str("    #[default]\n");
            }
            if variant != *value {
                text.push_str(&print::attribute(4, "serde", &[format!("rename = {}", print::string(value))]));
            }
            text.push_str(&format!("    {variant},\n"));
            variants.push(((*value).to_owned(), variant));
        }
        text.push_str("}\n");
        self.items.push(text);
        let ty = Type::Enum(name, variants, default.map(str::to_owned));
        self.known.insert(key, ty.clone());
        ty
    }

    fn structure(&mut self, node: &Schema, place: &Location) -> Type {
        let mut schema = normal(node);
        schema.remove("default");
        schema.remove("nullable");
        let key = print::tokens(&Value::Object(schema));
        if let Some(ty) = self.known.get(&key) {
            return ty.clone();
        }
        let name = self.name(place);
        let default = self.write(node, place, &name, &[], "");
        let ty = Type::Struct(name, default);
        self.known.insert(key, ty.clone());
        ty
    }

    /// Writes the struct `name`, with these attributes and derives before its own. Says whether it has a `Default`.
    pub(super) fn write(
        &mut self,
        node: &Schema,
        place: &Location,
        name: &str,
        head: &[String],
        derive: &str,
    ) -> bool {
        // Before what it uses.
        let index = self.items.len();
        self.items.push(String::new());
        let required: BTreeSet<&str> = strings(node, "required").into_iter().collect();
        let mut idents = BTreeSet::new();
        let mut fields = Vec::new();
        for (property, schema) in properties(node) {
            let ident = unique(&names::field(property), &mut idents);
            let field =
                Field { owner: name, name: property, ident, schema, required: required.contains(property) };
            fields.push(field::write(self, &field, &place.field(property)));
        }
        fields.extend(self.rest(node, place, &mut idents));
        let mut container = patch::container(node, fields.is_empty());
        let kube = container.kube_schema() || fields.iter().any(|field| field.kube_schema);
        let default = fields.iter().all(|field| field.has_default);
        if kube {
            self.kube_schema = true;
            container.crates(&self.options.sdk);
        } else {
            self.json_schema = true;
        }
        let schema = if kube { "KubeSchema" } else { "JsonSchema" };
        let default_derive = if default { "Default, " } else { "" };
        let mut text = print::docs(0, schema::text(node, "description"));
        text.push_str(&format!(
            "#[derive({derive}{schema}, Clone, Debug, {default_derive}PartialEq, Serialize, Deserialize)]\n"
        ));
        text.push_str(&head.concat());
        text.push_str(&container.lines(0));
        if fields.is_empty() {
            text.push_str(&format!("pub struct {name} {{}}\n"));
        } else {
            text.push_str("#[serde(rename_all = \"camelCase\")]\n");
            let fields: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
            text.push_str(&format!("pub struct {name} {{\n{}}}\n", fields.join("\n")));
        }
        self.items[index] = text;
        default
    }

    /// The field for what the schema does not name and keeps.
    fn rest(
        &mut self,
        node: &Schema,
        place: &Location,
        idents: &mut BTreeSet<String>,
    ) -> Option<field::Written> {
        let additional = node.get("additionalProperties").filter(|value| **value != Value::Bool(false));
        let inner = match additional.and_then(Value::as_object) {
            Some(schema) => self.inner(schema, &place.item("{}")),
            None if preserves(node) || additional.is_some() => Type::Value,
            None => return None,
        };
        let ty = Type::Map(inner.into());
        ty.imports(&mut self.imports);
        let ident = unique("other", idents);
        let mut text = "    /// Fields that the schema does not name.\n    #[serde(flatten)]\n".to_owned();
        if ty.shown() != ty {
            text.push_str(&print::attribute(4, "schemars", &[format!("with = {:?}", ty.shown().rust())]));
        }
        text.push_str(&format!("    pub {ident}: {},\n", ty.rust()));
        Some(field::Written { text, kube_schema: false, has_default: true })
    }

    /// A name that is free, as short as it can be.
    fn name(&mut self, place: &Location) -> String {
        for count in 1..=place.names.len() {
            let name = place.names[place.names.len() - count..].concat();
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
        unique(&place.names.concat(), &mut self.taken)
    }

    /// A name for a function that is free, or has the same content already.
    pub(super) fn function(
        functions: &mut BTreeMap<String, (String, String)>,
        names: [String; 2],
        content: (String, String),
    ) -> String {
        let numbered = (2..).map(|number| format!("{}_{number}", names[1]));
        for name in names.iter().cloned().chain(numbered) {
            match functions.get(&name) {
                Some(found) if *found != content => {}
                _ => {
                    functions.insert(name.clone(), content);
                    return name;
                }
            }
        }
        unreachable!("there is always another number")
    }
}

/// The name, with a number behind it where it is taken.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).expect("there must be another number")
}

/// The integer that holds every value that the schema lets through, and whose own bounds it has.
fn integer(node: &Schema) -> &'static str {
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_i64);
    let found = INTEGERS.iter().find(|(format, _, minimum, maximum)| {
        *format == text(node, "format")
            && minimum.is_none_or(|own| bound("minimum").is_some_and(|bound| bound >= own))
            && maximum.is_none_or(|own| bound("maximum").is_some_and(|bound| bound <= own))
    });
    found.map_or("i64", |(_, rust, ..)| rust)
}
