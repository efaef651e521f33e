//! Sizes that are given as text, compared and multiplied. What cannot be read is left to whoever checks the spec. Pure.

use windlass::Quantity;

/// The bytes of a size such as `10Gi`; `None` for what is no whole number of them.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let size = Quantity::parse(text).ok().filter(|size| size.rounded_up() == *size)?;
    u64::try_from(size.value()).ok()
}

/// Whether one size is smaller than another. Sizes that nobody can read are not.
pub(super) fn is_less(a: &str, b: &str) -> bool {
    matches!((Quantity::parse(a), Quantity::parse(b)), (Ok(a), Ok(b)) if a < b)
}

/// A size several times over.
pub(super) fn times(text: &str, count: u32) -> Option<String> {
    Quantity::parse(text).ok().map(|size| (size * i64::from(count)).to_string())
}
