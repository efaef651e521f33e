//! Numbers of things, in words.

/// `1 object`, `2 objects`.
pub(crate) fn objects(number: usize) -> String {
    if number == 1 { "1 object".into() } else { format!("{number} objects") }
}
