//! The Kubernetes API in one process.
//!
//! [`ApiServer`] is a `tower::Service`: give it to a `kube::Client` and there is no socket, or to a
//! [`listener::Listener`] and kubectl can reach it. Four layers, each blind to the one above:
//!
//! - [`store`]: every object once, as bytes, under one revision; watches are cursors into its history;
//! - [`schema`] and `merge`: what a type is, and how server-side apply and patches treat it;
//! - [`registry`]: what the verbs do to objects of any kind, built-in or custom;
//! - [`http`]: paths, negotiation, watch streams, tables, discovery and `Status` bodies.
//!
//! Time and chance come from an [`environment::Environment`] that the caller makes, so that a run can be
//! repeated exactly.

mod admission;
pub mod audit;
pub mod auth;
pub mod authority;
pub mod containers;
pub mod data_directory;
pub mod descriptions;
pub mod environment;
pub mod error;
pub mod http;
pub mod listener;
mod merge;
mod platform;
mod protobuf;
pub mod quota;
pub mod registry;
pub mod schema;
pub mod store;
pub mod webhook;

pub use self::http::{ApiServer, AsUser};
