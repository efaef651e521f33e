//! Kubernetes quantities in their canonical form.
//!
//! `0.5` is stored as `500m`, `1024Ki` as `1Mi`: the real server parses a quantity when it reads
//! an object and prints it anew when it writes it. An [`Amount`] is a quantity to reckon with.

pub use windlass_apimachinery::Quantity as Amount;

/// The canonical text of a quantity, or `None` when `text` is none (or is too large to handle).
pub(crate) fn canonical(text: &str) -> Option<String> {
    parse(text).map(|amount| amount.to_string())
}

/// The amount, or `None` when `text` is no quantity.
pub(crate) fn parse(text: &str) -> Option<Amount> {
    Amount::parse(text).ok()
}
