//! What admission is told about a write besides its object.

use serde_json::{Map, Value, json};

use super::{GroupVersionKind, Resource, Target, Warnings, WriteOptions, scale};
use crate::{auth::Identity, error::Result};

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Brings an object in.
    Create,
    /// Changes it.
    Update,
    /// Takes it away.
    Delete,
    /// Goes into it.
    Connect,
}

impl Operation {
    /// The word for it in reviews and rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The kind of its options; going into something has none besides the object itself.
    fn options_kind(self) -> Option<&'static str> {
        match self {
            Self::Create => Some("CreateOptions"),
            Self::Update => Some("UpdateOptions"),
            Self::Delete => Some("DeleteOptions"),
            Self::Connect => None,
        }
    }
}

/// A write, as admission sees it.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// To what.
    pub target: Target<'a>,
    /// The name that the request or its object gives; empty where one will be generated.
    pub name: String,
    /// Who asks.
    pub user: &'a Identity,
    /// Whether nothing will be committed.
    pub dry_run: bool,
    /// Where warnings go.
    pub warnings: &'a Warnings,
    stated: &'a Map<String, Value>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a write.
    pub(crate) fn of_write(
        operation: Operation,
        target: Target<'a>,
        name: &str,
        options: &'a WriteOptions,
    ) -> Self {
        Self {
            operation,
            target,
            name: name.to_owned(),
            user: &options.user,
            dry_run: options.dry_run,
            warnings: &options.warnings,
            stated: &options.stated,
        }
    }

    /// The namespace; for a Namespace, its own name.
    pub fn namespace(&self) -> &str {
        if self.is_namespace() { &self.name } else { self.target.namespace }
    }

    /// Whether the object is itself a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.target.resource.group.is_empty() && &*self.target.resource.plural == "namespaces"
    }

    /// The kind of the object in the request: a subresource may have one of its own.
    pub fn kind(&self) -> GroupVersionKind {
        self.kind_in(self.target.resource)
    }

    /// The kind that the object has in another version of its resource.
    pub(crate) fn kind_in(&self, resource: &Resource) -> GroupVersionKind {
        let part = resource.subresources.iter().find(|part| part.name == self.target.subresource);
        part.map_or_else(
            || GroupVersionKind {
                group: resource.group.to_string(),
                version: resource.version.to_string(),
                kind: resource.kind.clone(),
            },
            |part| part.kind.clone(),
        )
    }

    /// Whether the object in the request is of the resource's own kind.
    pub(crate) fn has_own_kind(&self) -> bool {
        self.kind().kind == self.target.resource.kind
    }

    /// The object as the request has it: a subresource may show another one than is stored.
    pub(crate) fn view(&self, object: &Value) -> Result<Value> {
        match self.target.subresource {
            "scale" => scale::of(self.target.resource, object),
            _ => Ok(object.clone()),
        }
    }

    /// The stored object that a changed view stands for.
    pub(crate) fn unview(&self, object: &Value, view: Value) -> Result<Value> {
        match self.target.subresource {
            "scale" => scale::set(self.target.resource, object, &view),
            _ => Ok(view),
        }
    }

    /// The options of the request as an object.
    pub(crate) fn options(&self) -> Value {
        let Some(mut kind) = self.operation.options_kind() else { return Value::Null };
        if self.operation == Operation::Update && self.stated.contains_key("force") {
            kind = "PatchOptions";
        }
        let mut options = Map::new();
        options.insert("kind".into(), json!(kind));
        options.insert("apiVersion".into(), json!("meta.k8s.io/v1"));
        let own = |key: &str| !matches!(key, "kind" | "apiVersion");
        options.extend(
            self.stated.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.clone(), value.clone())),
        );
        if self.operation != Operation::Update {
            options.remove("force");
        }
        Value::Object(options)
    }
}
