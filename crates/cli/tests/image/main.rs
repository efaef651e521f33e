//! Images without Docker, judged by those who live from images: the registry of the CNCF's distribution project, built
//! from source, skopeo, and containerd. Needs root, Go, skopeo, containerd and the musl targets of Rust; `just image` runs
//! it, a plain `cargo test` does not.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod author;
mod build;
mod containerd;
mod push;
mod registry;
