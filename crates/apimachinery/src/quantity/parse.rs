//! A quantity's text becomes a number. The arithmetic is on digits, so no text is too long and nothing is approximated.

use super::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, FINEST, Format, Quantity};

/// A text that is no quantity. The first three messages are Kubernetes' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It does not begin with a number, or ends in what can be no suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number has several points.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// It has more digits than are kept.
    #[error("the quantity has more than 38 digits")]
    TooLong,
}

enum Suffix {
    /// Ten to the power of this.
    Decimal(i32, Format),
    /// Two to the power of this.
    Binary(u32),
}

pub(super) fn quantity(text: &str) -> Result<Quantity, ParseError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    if !number.bytes().any(|byte| byte.is_ascii_digit()) || !can_be_suffix(suffix) {
        return Err(ParseError::Format);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(ParseError::Number);
    }
    let amount = match suffix_of(suffix)? {
        Suffix::Decimal(exponent, format) => decimal(whole, fraction, exponent, format)?,
        Suffix::Binary(power) => binary(whole, fraction, power),
    };
    Ok(if text.starts_with('-') { -amount } else { amount })
}

/// `[eEinumkKMGTP]*[-+]?[0-9]*`
fn can_be_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn suffix_of(suffix: &str) -> Result<Suffix, ParseError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok(Suffix::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some(index) = BINARY_SUFFIXES.iter().position(|name| *name == suffix) {
        return Ok(Suffix::Binary(10 * (index as u32 + 1)));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse().ok());
    exponent.map(|exponent| Suffix::Decimal(exponent, Format::DecimalExponent)).ok_or(ParseError::Suffix)
}

fn decimal(whole: &str, fraction: &str, exponent: i32, format: Format) -> Result<Quantity, ParseError> {
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let ending = (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    let exponent = i64::from(exponent) - fraction.len() as i64 + ending;
    // What is finer than a billionth is rounded away from zero.
    let finer = usize::try_from(i64::from(FINEST) - exponent).unwrap_or(0);
    let (kept, finer) = kept.split_at(kept.len().saturating_sub(finer));
    let up = i128::from(finer.bytes().any(|byte| byte != b'0'));
    if kept.is_empty() && up == 0 {
        return Ok(Quantity { format, ..Quantity::ZERO });
    }
    let mantissa: i128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| ParseError::TooLong)? };
    let mantissa = mantissa.checked_add(up).ok_or(ParseError::TooLong)?;
    let exponent = i32::try_from(exponent.max(FINEST.into())).map_err(|_| ParseError::TooLong)?;
    Ok(Quantity::new(mantissa, exponent, format))
}

/// At most 2⁶³-1, as in Kubernetes.
fn binary(whole: &str, fraction: &str, power: u32) -> Quantity {
    let (carry, fraction) = multiplied(fraction, 1 << power);
    let (billionths, finer) = fraction.split_at(fraction.len().min(9));
    let up = i128::from(finer.iter().any(|digit| *digit != 0));
    let billionths =
        (0..9).fold(0, |sum, place| sum * 10 + i128::from(billionths.get(place).copied().unwrap_or(0))) + up;
    let whole = whole.trim_start_matches('0');
    let whole: Option<u128> = if whole.is_empty() { Some(0) } else { whole.parse().ok() };
    let whole =
        whole.and_then(|whole| whole.checked_mul(1 << power)).and_then(|whole| whole.checked_add(carry));
    let most = i128::from(i64::MAX);
    let amount = whole.and_then(|whole| i128::try_from(whole).ok()).filter(|whole| *whole <= most);
    let amount = amount.map_or(most * 1_000_000_000, |whole| whole * 1_000_000_000 + billionths);
    let amount = amount.min(most * 1_000_000_000);
    let less_than_one = 0 < amount && amount < 1_000_000_000;
    Quantity::new(amount, FINEST, if less_than_one { Format::DecimalSi } else { Format::BinarySi })
}

/// The digits behind a point times `factor`: what goes before the point, and the digits that stay behind it.
fn multiplied(fraction: &str, factor: u128) -> (u128, Vec<u8>) {
    let mut carry = 0;
    let mut digits: Vec<u8> = fraction
        .bytes()
        .rev()
        .map(|digit| {
            carry += u128::from(digit - b'0') * factor;
            let rest = (carry % 10) as u8;
            carry /= 10;
            rest
        })
        .collect();
    digits.reverse();
    (carry, digits)
}
