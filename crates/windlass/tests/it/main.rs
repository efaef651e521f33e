//! The loop against an API server: exact counts of writes, and what happens when things go wrong.
//!
//! Tests that are ignored need a real cluster: `KUBECONFIG=… cargo test -p windlass -- --ignored`.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "all of this is test code")]

mod counting;
mod gadget;
mod leading;
mod real;
