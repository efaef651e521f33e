//! Reads OpenAPI v3 JSON into an arena.
//!
//! References are followed by name, each definition once, so recursion ends by itself. Kubernetes
//! writes a reference that has siblings as `allOf: [{$ref}]` beside them; such a use becomes a
//! copy of the definition with the siblings laid over it, made after everything is loaded because
//! the definition may still be under construction when it is used.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{
    TypeRef,
    node::{
        Additional, DEDUCED, Kind, ListRelation, ListShape, MapShape, Node, NodeId, OBJECT_META, ScalarKind,
        Shape, Types, UNTYPED,
    },
};
use keywords::{flag, kind_of, limits_of, rules_of, string_of, strings_of};

mod keywords;

/// Schemas nest no deeper than this; deeper input is refused instead of exhausting the stack.
const MAX_DEPTH: usize = 256;

/// Why a schema could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LoadError {
    /// A reference names a definition that the resolver does not have.
    #[error("failed to resolve the reference {0:?}: no such definition")]
    UnknownReference(String),
    /// A keyword has a value of the wrong type or an unknown value.
    #[error("failed to read {path}: {problem}")]
    Malformed {
        /// Where in the document.
        path: String,
        /// What is wrong there.
        problem: String,
    },
    /// The document nests too deeply.
    #[error("failed to read the schema: it nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

type Resolve<'a> = &'a dyn Fn(&str) -> Option<Value>;

impl TypeRef {
    /// Reads a schema as it stands.
    pub fn from_openapi(root: &Value, resolve: Resolve<'_>) -> Result<Self, LoadError> {
        let mut loader = Loader::new(resolve);
        let id = loader.schema(root, &SchemaPosition::root())?;
        Ok(loader.finish(id))
    }

    /// Reads the definition `name`.
    pub fn named(name: &str, resolve: Resolve<'_>) -> Result<Self, LoadError> {
        let mut loader = Loader::new(resolve);
        let id = loader.definition(name)?;
        Ok(loader.finish(id))
    }

    /// Reads a CRD version's `openAPIV3Schema`: as [`Self::from_openapi`], plus the `apiVersion`,
    /// `kind` and `metadata` that every object has whatever its author wrote.
    pub fn custom(schema: &Value, preserve_unknown: bool, resolve: Resolve<'_>) -> Result<Self, LoadError> {
        let mut loader = Loader::new(resolve);
        let mut place = SchemaPosition::root();
        place.preserve = preserve_unknown;
        let id = loader.schema(schema, &place)?;
        loader.add_object_fields(id)?;
        Ok(loader.finish(id))
    }

    /// The type of objects without any schema.
    pub fn untyped() -> Self {
        TypeRef::new(Arc::new(Types::new(vec![Node::deduced(), Node::untyped()])), DEDUCED)
    }
}

/// Where the loader is, and what the surroundings decide for the schema there.
#[derive(Clone)]
struct SchemaPosition {
    path: String,
    depth: usize,
    preserve: bool,
}

impl SchemaPosition {
    fn root() -> Self {
        Self { path: String::new(), depth: 0, preserve: false }
    }

    fn below(&self, keyword: &str, preserve: bool) -> Self {
        Self { path: format!("{}.{keyword}", self.path), depth: self.depth + 1, preserve }
    }

    fn malformed(&self, keyword: &str, problem: impl Into<String>) -> LoadError {
        LoadError::Malformed { path: format!("{}.{keyword}", self.path), problem: problem.into() }
    }
}

/// A use of a definition with siblings, to be laid over the definition at the end.
struct Overlay {
    target: NodeId,
    own: Node,
}

struct Loader<'a> {
    resolve: Resolve<'a>,
    nodes: Vec<Node>,
    names: BTreeMap<String, NodeId>,
    overlays: Vec<(NodeId, Overlay)>,
}

impl<'a> Loader<'a> {
    fn new(resolve: Resolve<'a>) -> Self {
        Self {
            resolve,
            nodes: vec![Node::deduced(), Node::untyped()],
            names: BTreeMap::new(),
            overlays: Vec::new(),
        }
    }

    fn reserve(&mut self) -> NodeId {
        self.nodes.push(Node::default());
        (self.nodes.len() - 1) as NodeId
    }

    fn finish(mut self, root: NodeId) -> TypeRef {
        for (id, overlay) in std::mem::take(&mut self.overlays) {
            let base = self.nodes[overlay.target as usize].clone();
            self.nodes[id as usize] = overlay.over(base);
        }
        TypeRef::new(Arc::new(Types::new(self.nodes)), root)
    }

    fn definition(&mut self, name: &str) -> Result<NodeId, LoadError> {
        if let Some(id) = self.names.get(name) {
            return Ok(*id);
        }
        let schema = (self.resolve)(name).ok_or_else(|| LoadError::UnknownReference(name.to_owned()))?;
        let id = self.reserve();
        self.names.insert(name.to_owned(), id);
        let place = SchemaPosition { path: name.to_owned(), ..SchemaPosition::root() };
        let mut node = self.node(&schema, &place)?;
        node.name = Some(name.to_owned());
        name_special(&mut node, name);
        self.mark_pointers(&node, name);
        node.times = super::go_types::value_times(name);
        self.nodes[id as usize] = node;
        Ok(id)
    }

    fn mark_pointers(&mut self, node: &Node, name: &str) {
        for field in super::go_types::pointer_fields(name) {
            if let Some(id) = node.properties.get(&field) {
                self.nodes[*id as usize].pointer = true;
            }
        }
    }

    fn schema(&mut self, schema: &Value, place: &SchemaPosition) -> Result<NodeId, LoadError> {
        if place.depth > MAX_DEPTH {
            return Err(LoadError::TooDeep);
        }
        let Some(object) = schema.as_object() else {
            return Err(place.malformed("", "a schema must be an object"));
        };
        let Some(reference) = reference_of(object) else {
            let id = self.reserve();
            let node = self.node(schema, place)?;
            self.nodes[id as usize] = node;
            return Ok(id);
        };
        let target = self.definition(reference)?;
        let siblings: Map<String, Value> = object
            .iter()
            .filter(|(key, _)| *key != "$ref" && *key != "allOf" && *key != "description")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if siblings.is_empty() {
            return Ok(target);
        }
        let id = self.reserve();
        let own = self.node(&Value::Object(siblings), place)?;
        self.overlays.push((id, Overlay { target, own }));
        Ok(id)
    }

    fn node(&mut self, schema: &Value, place: &SchemaPosition) -> Result<Node, LoadError> {
        let object = schema.as_object().ok_or_else(|| place.malformed("", "a schema must be an object"))?;
        let mut node = Node {
            kind: kind_of(object, place)?,
            format: string_of(object, "format", place)?,
            nullable: flag(object, "nullable"),
            default: object.get("default").cloned(),
            required: strings_of(object, "required", place)?,
            limits: limits_of(object, place)?,
            list_type: string_of(object, "x-kubernetes-list-type", place)?,
            list_map_keys: strings_of(object, "x-kubernetes-list-map-keys", place)?,
            map_type: string_of(object, "x-kubernetes-map-type", place)?,
            patch_strategy: string_of(object, "x-kubernetes-patch-strategy", place)?,
            patch_merge_key: string_of(object, "x-kubernetes-patch-merge-key", place)?,
            preserve_unknown: flag(object, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag(object, "x-kubernetes-embedded-resource"),
            int_or_string: flag(object, "x-kubernetes-int-or-string"),
            rules: rules_of(object, place)?,
            ..Node::default()
        };
        self.children(&mut node, object, place)?;
        node.shape = shape_of(&node, place)?;
        Ok(node)
    }

    fn children(
        &mut self,
        node: &mut Node,
        object: &Map<String, Value>,
        place: &SchemaPosition,
    ) -> Result<(), LoadError> {
        let preserve = place.preserve || node.preserve_unknown;
        if let Some(properties) = object.get("properties") {
            let properties =
                properties.as_object().ok_or_else(|| place.malformed("properties", "must be an object"))?;
            for (name, schema) in properties {
                let at = place.below(&format!("properties[{name}]"), preserve);
                let id = self.schema(schema, &at)?;
                node.properties.insert(name.clone(), id);
            }
        }
        node.additional = match object.get("additionalProperties") {
            None => Additional::Unset,
            Some(Value::Bool(true)) => Additional::Allowed,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(schema) => {
                let at = place.below("additionalProperties", preserve);
                Additional::Schema(self.schema(schema, &at)?)
            }
        };
        if let Some(items) = object.get("items") {
            node.items = Some(self.schema(items, &place.below("items", preserve))?);
        }
        node.all_of = self.list(object, "allOf", place)?;
        node.any_of = self.list(object, "anyOf", place)?;
        node.one_of = self.list(object, "oneOf", place)?;
        if let Some(not) = object.get("not") {
            node.not = Some(self.schema(not, &place.below("not", preserve))?);
        }
        if node.embedded_resource {
            self.object_fields(node)?;
        }
        Ok(())
    }

    fn list(
        &mut self,
        object: &Map<String, Value>,
        keyword: &str,
        place: &SchemaPosition,
    ) -> Result<Vec<NodeId>, LoadError> {
        let Some(list) = object.get(keyword) else {
            return Ok(Vec::new());
        };
        let list = list.as_array().ok_or_else(|| place.malformed(keyword, "must be a list of schemas"))?;
        list.iter()
            .enumerate()
            .map(|(index, schema)| {
                let at = place.below(&format!("{keyword}[{index}]"), place.preserve);
                self.schema(schema, &at)
            })
            .collect()
    }

    fn add_object_fields(&mut self, id: NodeId) -> Result<(), LoadError> {
        let mut node = std::mem::take(&mut self.nodes[id as usize]);
        let result = self.object_fields(&mut node);
        self.nodes[id as usize] = node;
        result
    }

    /// Every object has these three, and the server's idea of `metadata` beats the author's.
    fn object_fields(&mut self, node: &mut Node) -> Result<(), LoadError> {
        for name in ["apiVersion", "kind"] {
            if !node.properties.contains_key(name) {
                let id = self.schema(&serde_json::json!({"type": "string"}), &SchemaPosition::root())?;
                node.properties.insert(name.to_owned(), id);
            }
        }
        let meta = self.definition(OBJECT_META)?;
        // What the author says about the name (a pattern, a length) still holds as validation.
        let own = node.properties.insert("metadata".to_owned(), meta);
        node.metadata_rules = own;
        Ok(())
    }
}

impl Overlay {
    /// The definition `base` as this use of it sees it.
    fn over(self, base: Node) -> Node {
        let own = self.own;
        let mut node = Node {
            default: own.default.or(base.default.clone()),
            nullable: own.nullable || base.nullable,
            patch_strategy: own.patch_strategy.or(base.patch_strategy.clone()),
            patch_merge_key: own.patch_merge_key.or(base.patch_merge_key.clone()),
            list_type: own.list_type.or(base.list_type.clone()),
            map_type: own.map_type.or(base.map_type.clone()),
            ..base
        };
        if let (Some(map), Some(relation)) = (&mut node.shape.map, &node.map_type) {
            map.atomic = relation == "atomic";
        }
        node
    }
}

/// Definitions whose Go type reads JSON in its own way, which the OpenAPI text does not say.
fn name_special(node: &mut Node, name: &str) {
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            node.shape = Shape { scalar: Some(ScalarKind::Any), ..Shape::default() };
        }
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => {
            node.shape = Node::untyped().shape;
            node.preserve_unknown = true;
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1" | "io.k8s.apimachinery.pkg.apis.meta.v1.Patch" => {
            node.preserve_unknown = true;
        }
        _ if node.kind.is_none() && node.one_of.is_empty() => node.preserve_unknown = true,
        _ => {}
    }
}

/// The name behind `$ref`, direct or as the only entry of `allOf`.
fn reference_of(object: &Map<String, Value>) -> Option<&str> {
    let reference = match object.get("$ref") {
        Some(reference) => reference.as_str(),
        None => match object.get("allOf").and_then(Value::as_array) {
            Some(list) if list.len() == 1 => list[0].get("$ref").and_then(Value::as_str),
            _ => None,
        },
    }?;
    Some(reference.rsplit('/').next().unwrap_or(reference))
}

fn shape_of(node: &Node, place: &SchemaPosition) -> Result<Shape, LoadError> {
    Ok(match node.kind {
        None => Shape {
            map: Some(map_shape(node, place)?),
            scalar: Some(ScalarKind::Any),
            list: Some(list_shape(node, place)?),
        },
        Some(Kind::Object) => Shape { map: Some(map_shape(node, place)?), ..Shape::default() },
        Some(Kind::Array) => Shape { list: Some(list_shape(node, place)?), ..Shape::default() },
        Some(kind) => Shape { scalar: Some(scalar_kind(kind, node.format.as_deref())), ..Shape::default() },
    })
}

fn map_shape(node: &Node, place: &SchemaPosition) -> Result<MapShape, LoadError> {
    let element = match node.additional {
        Additional::Schema(id) => Some(id),
        Additional::Allowed => Some(DEDUCED),
        Additional::Forbidden => None,
        Additional::Unset => {
            (place.preserve || node.preserve_unknown || node.properties.is_empty()).then_some(DEDUCED)
        }
    };
    let atomic = match node.map_type.as_deref() {
        None | Some("granular") => false,
        Some("atomic") => true,
        Some(other) => {
            let problem = format!("unknown map type {other:?}, use \"granular\" or \"atomic\"");
            return Err(place.malformed("x-kubernetes-map-type", problem));
        }
    };
    Ok(MapShape { element, atomic })
}

fn list_shape(node: &Node, place: &SchemaPosition) -> Result<ListShape, LoadError> {
    let relation = match (node.list_type.as_deref(), node.patch_strategy.as_deref()) {
        (Some("atomic"), _) => ListRelation::Atomic,
        (Some("set"), _) => ListRelation::Set,
        (Some("map"), _) if node.list_map_keys.is_empty() => {
            let problem = "a list of type \"map\" needs at least one key";
            return Err(place.malformed("x-kubernetes-list-map-keys", problem));
        }
        (Some("map"), _) => ListRelation::Map(node.list_map_keys.clone()),
        (Some(other), _) => {
            let problem = format!("unknown list type {other:?}, use \"atomic\", \"set\" or \"map\"");
            return Err(place.malformed("x-kubernetes-list-type", problem));
        }
        (None, Some("merge" | "merge,retainKeys")) => match &node.patch_merge_key {
            Some(key) => ListRelation::Map(vec![key.clone()]),
            None => ListRelation::Set,
        },
        (None, _) => ListRelation::Atomic,
    };
    Ok(ListShape { items: node.items.unwrap_or(UNTYPED), relation })
}

fn scalar_kind(kind: Kind, format: Option<&str>) -> ScalarKind {
    match (kind, format) {
        (Kind::Integer | Kind::Number, _) => ScalarKind::Numeric,
        (Kind::Boolean, _) => ScalarKind::Boolean,
        (Kind::String, None | Some("" | "byte")) => ScalarKind::String,
        _ => ScalarKind::Any,
    }
}
