//! CustomResourceDefinitions as data.
//!
//! In goes YAML, as `kubectl apply` takes it; out comes one of three things:
//!
//! - **Rust types** of a kind, whose derived CRD accepts and rejects the same objects: [`Definition::rust`];
//! - **what breaks** stored objects or clients between two CRDs: [`diff::definitions`];
//! - **what a Go project declares**, to begin a Rust project from: [`kubebuilder::Project::read`].
//!
//! ```
//! let yaml = r#"
//! apiVersion: apiextensions.k8s.io/v1
//! kind: CustomResourceDefinition
//! metadata: {name: greetings.example.com}
//! spec:
//!   group: example.com
//!   names: {kind: Greeting, plural: greetings}
//!   scope: Namespaced
//!   versions:
//!   - name: v1
//!     served: true
//!     storage: true
//!     schema:
//!       openAPIV3Schema:
//!         type: object
//!         required: [spec]
//!         properties:
//!           spec: {type: object, properties: {text: {type: string, maxLength: 80}}}
//! "#;
//! let definitions = windlass_crd::Definition::parse(yaml)?;
//! let module = definitions[0].rust("v1", &windlass_crd::Options::default())?;
//! assert!(module.source.contains("pub struct GreetingSpec"));
//! assert!(module.lost.is_empty());
//! # Ok::<(), windlass_crd::Error>(())
//! ```
//!
//! Nothing here talks to a cluster or writes a file.

#![deny(missing_docs)]

mod definition;
pub mod diff;
mod error;
pub mod kubebuilder;
mod names;
mod rust;
pub mod schema;

pub use definition::{Definition, Names, PrinterColumn, Scale, Scope, Version};
pub use error::Error;
pub use rust::{Lost, Module, Options};
