//! The loop against an API server: exact counts of writes, and what happens when things go wrong.
//!
//! Tests that are ignored need a real cluster: `KUBECONFIG=… cargo test -p windlass -- --ignored`.

mod counting;
mod gadget;
mod real;
