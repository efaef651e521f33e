//! Quantities as numbers of thousandths: what the scheduler adds up and compares.

use windlass::k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The most that a quantity can say, as in Kubernetes. Sums of many of these stay numbers.
const MOST: i128 = i64::MAX as i128 * 1000;

/// Thousandths of a unit, rounded up; `None` for text that is no quantity.
pub(crate) fn thousandths(quantity: &Quantity) -> Option<i128> {
    let amount = windlass::Quantity::parse(quantity.0.trim()).ok()?;
    Some(amount.scaled(3).clamp(-MOST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_an_amount_is_the_same_number() {
        let number = |text: &str| thousandths(&Quantity(text.into()));
        assert_eq!(number("100m"), Some(100));
        assert_eq!(number("0.1"), Some(100));
        assert_eq!(number("1Ki"), Some(1_024_000));
        assert_eq!(number("1n"), Some(1));
        assert_eq!(number("1e99"), number("-1e99").map(|least| -least));
        assert_eq!(number("1e99"), Some(9_223_372_036_854_775_807_000));
        assert_eq!(number("many"), None);
    }
}
