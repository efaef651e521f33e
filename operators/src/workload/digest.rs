//! Short digests of JSON, for labels that tell one Pod template from another.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Ten hex digits that depend on every field.
pub(crate) fn of(value: &impl Serialize) -> String {
    // Maps of these types are BTreeMaps: equal values give equal bytes.
    let bytes = serde_json::to_vec(value).expect("a Kubernetes type must serialise");
    let digest = Sha256::digest(&bytes);
    let start = digest.iter().take(5).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{start:010x}")
}
