//! Dry runs: what a write would do is logged, and its result is made up here.

use serde_json::{Value, json};

use super::encode;
use crate::{
    error::{Error, Result},
    merge,
    object::{AnyObject, Kind, ObjectKey},
    wire,
};

/// Logs the difference that a write would make, and returns the object as it would be.
pub(crate) fn merged<K: AnyObject>(
    operation: &str,
    kind: &Kind,
    key: &ObjectKey,
    old: Option<&K>,
    patch: &Value,
) -> Result<K> {
    let old = old.map(|old| encode(old, kind, key)).transpose()?.unwrap_or_else(|| json!({}));
    let mut new = old.clone();
    merge::apply(&mut new, patch);
    let meta = &mut new["metadata"];
    if meta["name"].is_null() {
        meta["name"] = format!("{}dry-run", meta["generateName"].as_str().unwrap_or_default()).into();
    }
    let difference = merge::diff(&old, &new).unwrap_or_else(|| json!({}));
    tracing::info!(%kind, object = %key, %difference, "dry run: would {operation}");
    wire::read(&new.to_string()).map_err(|source| Error::Encode {
        kind: Box::new(kind.clone()),
        key: key.clone(),
        source,
    })
}

/// Logs that an object would be deleted.
pub(crate) fn deletion(kind: &Kind, key: &ObjectKey) {
    tracing::info!(%kind, object = %key, "dry run: would delete");
}
