//! Numbers and percentages of a whole, as `maxSurge`, `maxUnavailable` and `minAvailable` give them.

use std::str::FromStr;

/// So many, or so many of a hundred.
///
/// ```
/// use windlass_apimachinery::IntOrPercent;
///
/// let surge: IntOrPercent = "25%".parse()?;
/// assert_eq!((surge.rounded_up(10), surge.rounded_down(10)), (3, 2));
/// assert_eq!(IntOrPercent::from(4).rounded_up(10), 4);
/// # Ok::<(), windlass_apimachinery::int_or_percent::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// So many, whatever the whole is.
    Int(i32),
    /// So many of a hundred.
    Percent(u32),
}

/// A text that is no percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for \
     validation is '[0-9]+%')"
)]
pub struct ParseError;

impl IntOrPercent {
    /// The share of `total`, rounded up.
    pub fn rounded_up(self, total: i32) -> i32 {
        self.scaled(total, |hundredths| {
            hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) != 0)
        })
    }

    /// The share of `total`, rounded down.
    pub fn rounded_down(self, total: i32) -> i32 {
        self.scaled(total, |hundredths| hundredths.div_euclid(100))
    }

    fn scaled(self, total: i32, round: fn(i64) -> i64) -> i32 {
        match self {
            Self::Int(number) => number,
            Self::Percent(percent) => {
                let hundredths = i64::from(percent) * i64::from(total);
                round(hundredths).clamp(i32::MIN.into(), i32::MAX.into()) as i32
            }
        }
    }
}

impl From<i32> for IntOrPercent {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

/// Reads a percentage: digits and `%`. A number stands in the API as a number, not as text.
impl FromStr for IntOrPercent {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = text.strip_suffix('%').ok_or(ParseError)?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseError);
        }
        // More of a hundred than fits is as good as the most that fits.
        Ok(Self::Percent(digits.parse().unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_percentage_is_refused() {
        for text in ["", "%", "5", "-5%", "+5%", "5.5%", " 5%", "5 %", "five%"] {
            assert_eq!(text.parse::<IntOrPercent>(), Err(ParseError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn shares_are_the_next_whole_numbers(percent in 0..1000_u32, total in 0..1_000_000_i32) {
            let share = IntOrPercent::Percent(percent);
            let hundredths = i64::from(percent) * i64::from(total);
            let (up, down) = (i64::from(share.rounded_up(total)), i64::from(share.rounded_down(total)));
            prop_assert!(down * 100 <= hundredths && hundredths < (down + 1) * 100);
            prop_assert!(up * 100 >= hundredths && hundredths > (up - 1) * 100);
        }

        #[test]
        fn nothing_overflows(percent in any::<u32>(), total in any::<i32>()) {
            let share = IntOrPercent::Percent(percent);
            prop_assert!(share.rounded_down(total) <= share.rounded_up(total));
        }
    }
}
