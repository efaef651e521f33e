//! What Windlass packs, held against those who read it: Helm, kustomize, the Operator Framework's validators and opm.
//!
//! They are programs in Go, which `cargo xtask packaging test` builds and names in WINDLASS_PACKAGING_TOOLS; `just
//! packaging` runs it. With WINDLASS_PACKAGING_KUBECONFIG the cluster is that one, else an embedded one.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod charts;
mod cluster;
mod olm;
mod project;
mod tools;
