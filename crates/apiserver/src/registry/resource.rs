//! A resource: what the API serves under one group, version and plural name.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::strategy::{Selectable, Strategy};
use crate::{
    error::{Error, Named, Result},
    schema::{TypeRef, json::at},
    store::TableName,
};

/// A part of a resource with a path of its own, such as `status`.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// Its name.
    pub name: String,
    /// The group, version and kind that its requests and answers carry, if they differ from the parent's.
    pub kind: GroupVersionKind,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// A group, a version and a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupVersionKind {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A served resource. One table may be served by several versions of a resource.
#[derive(Debug)]
pub struct Resource {
    /// The API group, empty for the core group.
    pub group: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The plural name, as in paths.
    pub plural: Arc<str>,
    /// The singular name.
    pub singular: String,
    /// The kind of one object.
    pub kind: String,
    /// The kind of a list of them.
    pub list_kind: String,
    /// Short names, such as `po`.
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// Where its objects are stored.
    pub table: TableName,
    /// Where it comes from.
    pub origin: Origin,
    /// All that is special about its kind.
    pub(crate) strategy: &'static Strategy,
    /// The fields that selectors may name besides name and namespace.
    pub(super) selectable: Vec<Selectable>,
    pub(super) schema: OnceLock<TypeRef>,
}

/// Where a resource comes from.
#[derive(Debug)]
pub enum Origin {
    /// From Kubernetes itself. Holds the name of the type in its OpenAPI documents.
    BuiltIn {
        /// The definition, such as `io.k8s.api.apps.v1.Deployment`.
        definition: String,
    },
    /// From a CustomResourceDefinition.
    Custom(Box<super::crd::Served>),
}

impl Resource {
    /// `apps/v1` or `v1`.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// How messages name the resource.
    pub fn named(&self) -> Named<'_> {
        Named { group: &self.group, resource: &self.plural }
    }

    /// How validation messages name the kind.
    pub fn named_kind(&self) -> Named<'_> {
        Named { group: self.strategy.stored_group.unwrap_or(&self.group), resource: &self.kind }
    }

    /// Whether the resource has the subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|known| known.name == subresource)
    }

    /// What whoever uses it is told, because it will go.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        self.strategy.deprecation.or_else(|| self.custom()?.deprecation.as_deref())
    }

    /// The custom resource behind it, if it is one.
    pub fn custom(&self) -> Option<&super::crd::Served> {
        match &self.origin {
            Origin::Custom(served) => Some(served),
            Origin::BuiltIn { .. } => None,
        }
    }

    /// Whether what is created is no object: it puts a Pod on a node.
    pub(crate) fn is_binding(&self) -> bool {
        self.group.is_empty() && &*self.plural == "bindings"
    }

    /// Fails unless the resource knows the verb.
    pub fn allow(&self, verb: &str) -> Result<()> {
        if self.verbs.iter().any(|known| known == verb) {
            return Ok(());
        }
        Err(Error::method_not_allowed(self.named(), verb))
    }
}

/// `apps/v1` or `v1`.
pub fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A line of the table of built-in resources, in the shape of aggregated discovery.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) resource: String,
    pub(super) response_kind: RowKind,
    pub(super) scope: String,
    pub(super) singular_resource: String,
    #[serde(default)]
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) short_names: Vec<String>,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    #[serde(default)]
    pub(super) subresources: Vec<RowSubresource>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RowKind {
    group: String,
    version: String,
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RowSubresource {
    subresource: String,
    response_kind: RowKind,
    verbs: Vec<String>,
}

impl Row {
    /// The resource that the line describes.
    pub(super) fn into_resource(self, group: &str, version: &str, definition: String) -> Resource {
        let subresources = self.subresources.into_iter().map(|row| row.into_subresource(group, version));
        let strategy = super::kinds::built_in(group, version, &self.resource);
        Resource {
            group: group.into(),
            version: version.into(),
            list_kind: format!("{}List", self.response_kind.kind),
            kind: self.response_kind.kind,
            singular: self.singular_resource,
            short_names: self.short_names,
            categories: self.categories,
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs,
            subresources: subresources.collect(),
            table: super::catalog::table_of(strategy.stored_group.unwrap_or(group), &self.resource),
            plural: self.resource.into(),
            origin: Origin::BuiltIn { definition },
            strategy,
            selectable: strategy.selectable.to_vec(),
            schema: OnceLock::new(),
        }
    }
}

impl RowSubresource {
    fn into_subresource(self, group: &str, version: &str) -> Subresource {
        let RowKind { group: own_group, version: own_version, kind } = self.response_kind;
        // The table leaves group and version out where they are the parent's.
        let (group, version) = if own_version.is_empty() {
            (group.to_owned(), version.to_owned())
        } else {
            (own_group, own_version)
        };
        Subresource {
            name: self.subresource,
            kind: GroupVersionKind { group, version, kind },
            verbs: self.verbs,
        }
    }
}

/// A string inside an object, or the empty string.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}
