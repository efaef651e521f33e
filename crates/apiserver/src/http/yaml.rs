//! YAML bodies, and the keys that they say twice.

use serde_json::Value;
use serde_saphyr::{Error, options::DuplicateKeyPolicy};

/// Decodes a body; the last of equal keys wins.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, Error> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    serde_saphyr::from_slice_with_options(bytes, options)
}

/// The first key that is said twice, in the words of Go's decoder.
pub(super) fn repeated(bytes: &[u8]) -> Vec<String> {
    let Err(error) = serde_saphyr::from_slice::<Value>(bytes) else { return Vec::new() };
    match error.without_snippet() {
        Error::DuplicateMappingKey { key, location } => {
            let key = key.as_deref().unwrap_or_default();
            vec![format!("line {}: key {key:?} already set in map", location.line())]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_said_twice_is_told_with_its_line() {
        let text = b"\na: 1\nb:\n  c: 1\n  c: 2\n";
        assert_eq!(repeated(text), ["line 5: key \"c\" already set in map"]);
        assert_eq!(decode(text).unwrap()["b"]["c"], 2);
        assert_eq!(repeated(b"{\"a\": 1, \"a\": 2}"), ["line 1: key \"a\" already set in map"]);
        assert!(repeated(b"a: 1").is_empty());
    }
}
