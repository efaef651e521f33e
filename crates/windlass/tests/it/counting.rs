//! What the operator's client sends, as the SDK's own test support counts it.

pub use windlass::testing::Requests;
