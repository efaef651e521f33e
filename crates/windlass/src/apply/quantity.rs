//! Kubernetes quantities compared by value: `1000m` is `1`, `1Gi` is `1024Mi`.

/// Maps whose values are quantities.
const MAPS: [&str; 11] = [
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "hard",
    "used",
    "overhead",
    "podFixed",
    "defaultRequest",
    "maxLimitRequestRatio",
    "allocatedResources",
];

/// Single fields that are quantities.
const FIELDS: [&str; 4] = ["sizeLimit", "divisor", "averageValue", "storage"];

/// Whether a field of this name is a map of quantities.
pub(super) fn is_map(name: &str) -> bool {
    MAPS.contains(&name)
}

/// Whether a field of this name is, or holds, quantities.
pub(super) fn names(name: &str) -> bool {
    is_map(name) || FIELDS.contains(&name)
}

/// Whether both are quantities of the same value.
pub(super) fn same(a: &str, b: &str) -> bool {
    let (Some(a), Some(b)) = (parse(a), parse(b)) else { return false };
    // a.digits * a.unit / 10^a.fraction == b.digits * b.unit / 10^b.fraction
    let left = scaled(&a, b.fraction);
    left.is_some() && left == scaled(&b, a.fraction)
}

struct Quantity {
    digits: i128,
    fraction: u32,
    /// The unit in billionths.
    unit: i128,
}

fn scaled(quantity: &Quantity, fraction: u32) -> Option<i128> {
    quantity.digits.checked_mul(quantity.unit)?.checked_mul(10_i128.checked_pow(fraction)?)
}

fn parse(text: &str) -> Option<Quantity> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part}").parse().ok()?;
    Some(Quantity { digits, fraction: u32::try_from(part.len()).ok()?, unit: unit(suffix)? })
}

fn unit(suffix: &str) -> Option<i128> {
    const ONE: i128 = 1_000_000_000;
    let unit = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => ONE,
        "k" => ONE * 1_000,
        "M" => ONE * 1_000_000,
        "G" => ONE * 1_000_000_000,
        "T" => ONE * 1_000_000_000_000,
        "P" => ONE * 1_000_000_000_000_000,
        "E" => ONE * 1_000_000_000_000_000_000,
        "Ki" => ONE << 10,
        "Mi" => ONE << 20,
        "Gi" => ONE << 30,
        "Ti" => ONE << 40,
        "Pi" => ONE << 50,
        "Ei" => ONE << 60,
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = u32::try_from(power.checked_add(9)?).ok()?;
            10_i128.checked_pow(power)?
        }
    };
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_quantities_are_the_same_however_they_are_written() {
        for (a, b) in [
            ("1000m", "1"),
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1e3", "1k"),
            ("1.5Gi", "1536Mi"),
            ("+1", "1"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn different_quantities_and_other_strings_are_not() {
        for (a, b) in [("1", "2"), ("1G", "1Gi"), ("a", "a1"), ("", "0"), ("1x", "1"), ("1e99", "1e98")] {
            assert!(!same(a, b), "{a} {b}");
        }
    }
}
