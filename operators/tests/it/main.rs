//! The operators as their users meet them: generated files, and behaviour on a cluster.
//!
//! A behaviour is written once and runs on two clusters: on the embedded one always, and, ignored unless asked for,
//! on the real one that `KUBECONFIG` names: `cargo xtask kubernetes test`.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod bed;
mod manifests;
mod webserver;
