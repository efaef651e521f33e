//! Sizes: `6G` is not `6Gi`, and `1024Mi` is `1Gi`. Pure.

/// The bytes of a size such as `10Gi`.
pub(super) fn bytes(text: &str) -> Option<u128> {
    let (number, unit) = split(text);
    let factor: u128 = match unit {
        "" => 1,
        "k" => 1000,
        "M" => 1000_u128.pow(2),
        "G" => 1000_u128.pow(3),
        "T" => 1000_u128.pow(4),
        "P" => 1000_u128.pow(5),
        "E" => 1000_u128.pow(6),
        "Ki" => 1024,
        "Mi" => 1024_u128.pow(2),
        "Gi" => 1024_u128.pow(3),
        "Ti" => 1024_u128.pow(4),
        "Pi" => 1024_u128.pow(5),
        "Ei" => 1024_u128.pow(6),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = whole.parse().ok()?;
    let mut parts = 0;
    if !fraction.is_empty() {
        let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        parts = fraction.parse::<u128>().ok()?.checked_mul(factor)?.div_ceil(scale);
    }
    whole.checked_mul(factor)?.checked_add(parts)
}

/// Thousandths, in which shares of a processor are counted: `500m` is half of `1`.
fn thousandths(text: &str) -> Option<u128> {
    match text.strip_suffix('m') {
        Some(number) => number.parse().ok(),
        None => bytes(text)?.checked_mul(1000),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// Whether one size is smaller than another. Sizes that nobody can read are not.
pub(super) fn is_less(a: &str, b: &str) -> bool {
    matches!((thousandths(a), thousandths(b)), (Some(a), Some(b)) if a < b)
}

/// A size several times over, in its own unit where that can say it.
pub(super) fn times(text: &str, count: u32) -> Option<String> {
    let (number, unit) = split(text);
    match number.parse::<u128>() {
        Ok(number) => Some(format!("{}{unit}", number.checked_mul(u128::from(count))?)),
        Err(_) => Some(bytes(text)?.checked_mul(u128::from(count))?.to_string()),
    }
}
