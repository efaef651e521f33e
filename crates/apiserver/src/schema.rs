//! The types of objects: what an OpenAPI v3 document says about a kind, as one immutable arena.
//!
//! In goes OpenAPI JSON (a built-in definition or a CRD's `openAPIV3Schema`); out comes a
//! [`TypeRef`], which every consumer walks: server-side apply and strategic merge read the list
//! topology, the registry defaults, prunes and validates with it. Built-in and custom kinds are
//! the same thing here.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

mod bytes;
pub mod cel;
mod decode;
mod defaults;
mod field_error;
pub(crate) mod go_types;
pub(crate) mod json;
mod load;
mod node;
mod normal;
mod pattern;
mod prune;
pub(crate) mod quantity;
mod structural;
mod validate;
mod zero;

pub use field_error::{FieldError, FieldReason, render};
pub use load::LoadError;
pub(crate) use node::{Additional, Atom, DEDUCED, ListRelation, ListShape, Node, NodeId, ScalarKind, Types};
pub use structural::structural_errors;

/// The definitions of Kubernetes' own kinds, one line each: a name, a space, the OpenAPI v3 JSON.
/// Written by `xtask generate` from a real server's `/openapi/v3`.
pub const KUBERNETES: &str = include_str!("schema/kubernetes.txt");

/// A type inside an arena. Cheap to clone; the arena is shared.
#[derive(Clone)]
pub struct TypeRef {
    types: Arc<Types>,
    id: NodeId,
    zero: Arc<OnceLock<Value>>,
}

impl TypeRef {
    pub(crate) fn new(types: Arc<Types>, id: NodeId) -> Self {
        Self { types, id, zero: Arc::default() }
    }

    pub(crate) fn node(&self) -> &Node {
        self.types.get(self.id)
    }

    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// The type of the property `name`, when the schema declares one.
    pub fn property(&self, name: &str) -> Option<TypeRef> {
        let id = *self.node().properties.get(name)?;
        Some(TypeRef::new(Arc::clone(&self.types), id))
    }
}

impl fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeRef")
            .field("id", &self.id)
            .field("nodes", &self.types.len())
            .finish_non_exhaustive()
    }
}
