//! Short digests of JSON, for labels that tell one Pod template from another.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Ten hex digits that depend on every field.
pub(crate) fn of(value: &impl Serialize) -> String {
    // With sorted keys: equal values give equal bytes.
    let json = serde_json::to_value(value).expect("a Kubernetes type must serialise").to_string();
    let digest = Sha256::digest(json.as_bytes());
    let start = digest.iter().take(5).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{start:010x}")
}
