//! One type of the arena: what a schema says about a value and how values of it merge.
//!
//! Nodes refer to each other by [`NodeId`], so a recursive schema (`JSONSchemaProps`) is a cycle
//! of numbers and needs no special care.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cel;

pub(crate) type NodeId = u32;

/// Every arena starts with these two, so that free-form data has a type as well.
pub(crate) const DEDUCED: NodeId = 0;
pub(crate) const UNTYPED: NodeId = 1;

pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The arena.
#[derive(Debug)]
pub(crate) struct Types {
    nodes: Vec<Node>,
    has_rules: bool,
}

impl Types {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        let has_rules = nodes.iter().any(|node| !node.rules.is_empty());
        Self { nodes, has_rules }
    }

    /// Whether any type has CEL rules, so that objects without rules are not walked for them.
    pub(crate) fn has_rules(&self) -> bool {
        self.has_rules
    }

    pub(crate) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// OpenAPI's `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
        }
    }
}

/// OpenAPI's `additionalProperties`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Additional {
    #[default]
    Unset,
    Allowed,
    Forbidden,
    Schema(NodeId),
}

/// How the items of a list are told apart when two writers meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListRelation {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What a scalar may hold, as far as merging cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Numeric,
    String,
    Boolean,
    Any,
}

/// How lists of this type merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListShape {
    pub(crate) items: NodeId,
    pub(crate) relation: ListRelation,
}

/// How maps and structs of this type merge. Declared fields are in [`Node::properties`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    /// The type of keys which no property declares; without it such keys are errors.
    pub(crate) element: Option<NodeId>,
    pub(crate) atomic: bool,
}

/// The forms a value of this type may take: a typed node has one, an untyped node all three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) map: Option<MapShape>,
    pub(crate) scalar: Option<ScalarKind>,
    pub(crate) list: Option<ListShape>,
}

/// The form that was chosen for one value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Atom<'a> {
    Map(&'a MapShape),
    Scalar(ScalarKind),
    List(&'a ListShape),
}

impl Atom<'_> {
    pub(crate) fn same_form(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A CEL rule of `x-kubernetes-validations`.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) expression: String,
    pub(crate) program: Result<cel::Expression, cel::CelError>,
    pub(crate) message: Option<String>,
    pub(crate) message_program: Option<cel::Expression>,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old_self: Option<bool>,
}

impl Rule {
    /// How errors name the rule.
    pub(crate) fn shown(&self) -> &str {
        self.message.as_deref().filter(|text| !text.is_empty()).unwrap_or(&self.expression).trim()
    }

    pub(crate) fn message_or_default(&self) -> String {
        match self.message.as_deref().map(str::trim) {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("failed rule: {}", self.expression.trim()),
        }
    }
}

/// A regular expression, compiled once.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) compiled: Result<regex::Regex, String>,
}

/// Bounds and patterns: everything that looks at one value and not at its shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) maximum: Option<serde_json::Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<serde_json::Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<serde_json::Number>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) enumeration: Vec<Value>,
}

/// One type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The definition's name, for types that were reached by reference.
    pub(crate) name: Option<String>,
    pub(crate) kind: Option<Kind>,
    pub(crate) format: Option<String>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    pub(crate) properties: BTreeMap<String, NodeId>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<NodeId>,
    pub(crate) required: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) not: Option<NodeId>,
    pub(crate) list_type: Option<String>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<String>,
    pub(crate) patch_strategy: Option<String>,
    pub(crate) patch_merge_key: Option<String>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) int_or_string: bool,
    pub(crate) rules: Vec<Rule>,
    /// Whether Go holds this scalar by pointer, so that its zero value is told from its absence.
    pub(crate) pointer: bool,
    /// Fields that Go writes as `null` when they were never set.
    pub(crate) times: Vec<String>,
    /// What a CRD's author says about `metadata`, which the server's own type replaces.
    pub(crate) metadata_rules: Option<NodeId>,
    pub(crate) shape: Shape,
}

impl Node {
    /// The form in which `value` is to be read. A value that fits no form is read as the first
    /// form the type has; null fits every form, and maps come first.
    pub(crate) fn atom(&self, value: Option<&Value>) -> Option<Atom<'_>> {
        let shape = &self.shape;
        let map = || shape.map.as_ref().map(Atom::Map);
        let scalar = || shape.scalar.map(Atom::Scalar);
        let list = || shape.list.as_ref().map(Atom::List);
        let deduced = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => map(),
            Some(Value::Array(_)) => list(),
            Some(_) => scalar(),
        };
        deduced.or_else(map).or_else(scalar).or_else(list)
    }

    /// Whether this is the server's own type of `metadata`.
    pub(crate) fn is_object_meta(&self) -> bool {
        self.name.as_deref() == Some(OBJECT_META)
    }

    /// The type of a map's key or a struct's field.
    pub(crate) fn child(&self, key: &str) -> Option<NodeId> {
        self.properties.get(key).copied().or_else(|| self.shape.map.as_ref().and_then(|map| map.element))
    }

    /// The node of data without any schema: maps merge by key, lists are atomic.
    pub(crate) fn deduced() -> Self {
        Self {
            preserve_unknown: true,
            shape: Shape {
                map: Some(MapShape { element: Some(DEDUCED), atomic: false }),
                scalar: Some(ScalarKind::Any),
                list: Some(ListShape { items: UNTYPED, relation: ListRelation::Atomic }),
            },
            ..Self::default()
        }
    }

    /// The node of data that is always one value (`RawExtension`).
    pub(crate) fn untyped() -> Self {
        let mut node = Self::deduced();
        node.shape.map = Some(MapShape { element: Some(UNTYPED), atomic: true });
        node
    }
}
