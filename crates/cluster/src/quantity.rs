//! Quantities as numbers of thousandths: what the scheduler adds up and compares.

use windlass::k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The most that a quantity can say, as in Kubernetes. Sums of many of these stay numbers.
const MOST: i128 = i64::MAX as i128 * 1000;

/// Thousandths of a unit, rounded up; `None` for text that is no quantity.
pub(crate) fn thousandths(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "n" => 1e-6,
        "u" => 1e-3,
        "m" => 1.0,
        "" => 1e3,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "T" => 1e15,
        "P" => 1e18,
        "E" => 1e21,
        "Ki" => 1e3 * 1024.0,
        "Mi" => 1e3 * 1_048_576.0,
        "Gi" => 1e3 * 1_073_741_824.0,
        "Ti" => 1e3 * 1_099_511_627_776.0,
        "Pi" => 1e3 * 1_125_899_906_842_624.0,
        "Ei" => 1e3 * 1_152_921_504_606_846_976.0,
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            1e3 * 10_f64.powi(exponent)
        }
    };
    Some(((number * factor).ceil() as i128).clamp(-MOST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_an_amount_is_the_same_number() {
        let number = |text: &str| thousandths(&Quantity(text.into()));
        assert_eq!(number("100m"), Some(100));
        assert_eq!(number("0.1"), Some(100));
        assert_eq!(number("2"), Some(2000));
        assert_eq!(number("1Ki"), Some(1_024_000));
        assert_eq!(number("1e3"), Some(1_000_000));
        assert_eq!(number("1k"), Some(1_000_000));
        assert_eq!(number("1n"), Some(1));
        assert_eq!(number("1e99"), number("-1e99").map(|least| -least));
        assert_eq!(number("1e99"), Some(9_223_372_036_854_775_807_000));
        assert_eq!(number("many"), None);
    }
}
