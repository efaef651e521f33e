//! The operators as their users meet them: generated files, and behaviour on a cluster.
//!
//! A behaviour is written once and runs on two clusters: on the embedded one always, and, ignored unless asked for,
//! on the real one that `KUBECONFIG` names: `cargo xtask kubernetes test`.

mod bed;
mod manifests;
mod webserver;
