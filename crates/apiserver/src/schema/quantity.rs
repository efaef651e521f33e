//! Kubernetes quantities in their canonical form.
//!
//! `0.5` is stored as `500m`, `1024Ki` as `1Mi`: the real server parses a quantity when it reads
//! an object and prints it anew when it writes it. An [`Amount`] is a quantity to reckon with.

use std::{
    fmt::{self, Write},
    ops::{Add, Sub},
};

/// Quantities are exact to this many decimal places; finer ones are rounded up.
const DECIMALS: u32 = 9;
const SCALE: i128 = 10_i128.pow(DECIMALS);

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// A quantity to reckon with. It remembers how it was written, and a sum is written as its first part was.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    value: i128,
    format: Format,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { value: 0, format: Format::Decimal };
    /// One.
    pub const ONE: Self = Self { value: SCALE, format: Format::Decimal };

    /// So many.
    pub fn count(number: usize) -> Self {
        Self { value: number as i128 * SCALE, format: Format::Decimal }
    }

    /// Reads a quantity; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, suffix) = split(text)?;
        let (format, base, exponent) = suffix_of(suffix)?;
        Some(Self { value: amount_of(number, base, exponent)?, format })
    }

    /// Reads a quantity of an object, which may be a number.
    pub fn of(value: &serde_json::Value) -> Option<Self> {
        match value.as_str() {
            Some(text) => Self::parse(text),
            None => Self::parse(&value.to_string()),
        }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.value == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.value < 0
    }

    /// The next whole number.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let up = i128::from(self.value > 0 && self.value % SCALE != 0);
        Self { value: (self.value / SCALE + up) * SCALE, format: self.format }
    }

    /// How many times `other` it is.
    #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with six digits")]
    pub fn ratio(self, other: Self) -> f64 {
        self.value as f64 / other.value as f64
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.cmp(&other.value)
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { value: self.value.saturating_add(other.value), format }
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { value: self.value.saturating_sub(other.value), format }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&print(self.value, self.format))
    }
}

/// The canonical text of a quantity, or `None` when `text` is none (or is too large to handle).
pub(crate) fn canonical(text: &str) -> Option<String> {
    Amount::parse(text).map(|amount| amount.to_string())
}

/// The amount in billionths, or `None` when `text` is no quantity.
pub(crate) fn parse(text: &str) -> Option<i128> {
    Amount::parse(text).map(|amount| amount.value)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = text.split_at(sign + end);
    let digits = &number[sign..];
    let valid = digits.bytes().any(|b| b.is_ascii_digit()) && digits.matches('.').count() <= 1;
    valid.then_some((number, suffix))
}

fn suffix_of(suffix: &str) -> Option<(Format, i128, i32)> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, 10, *exponent));
    }
    if let Some(index) = BINARY_SUFFIXES.iter().position(|name| *name == suffix) {
        return Some((Format::Binary, 1024, index as i32 + 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::Exponent, 10, exponent))
}

/// The amount in units of 10^-9, rounded away from zero.
fn amount_of(number: &str, base: i128, exponent: i32) -> Option<i128> {
    let negative = number.starts_with('-');
    let number = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let (mut numerator, mut denominator) = (digits.checked_mul(SCALE)?, 1_i128);
    denominator = denominator.checked_mul(10_i128.checked_pow(fraction.len() as u32)?)?;
    let power = base.checked_pow(exponent.unsigned_abs())?;
    if exponent < 0 {
        denominator = denominator.checked_mul(power)?;
    } else {
        numerator = numerator.checked_mul(power)?;
    }
    let rounded = numerator / denominator + i128::from(numerator % denominator != 0);
    Some(if negative { -rounded } else { rounded })
}

fn print(amount: i128, format: Format) -> String {
    if format == Format::Binary && amount.abs() >= 1024 * SCALE {
        return print_binary(amount);
    }
    let (mut number, mut exponent) = (amount, -(DECIMALS as i32));
    while number != 0 && number % 1000 == 0 && exponent < 18 {
        (number, exponent) = (number / 1000, exponent + 3);
    }
    if number == 0 {
        return "0".to_owned();
    }
    let mut text = number.to_string();
    match format {
        Format::Exponent if exponent != 0 => {
            let _ = write!(text, "e{exponent}");
        }
        Format::Exponent => {}
        Format::Decimal | Format::Binary => {
            let suffix = DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent);
            text.push_str(suffix.map_or("", |(name, _)| name));
        }
    }
    text
}

fn print_binary(amount: i128) -> String {
    let up = i128::from(amount % SCALE != 0) * amount.signum();
    let mut number = amount / SCALE + up;
    let mut suffix = "";
    for name in BINARY_SUFFIXES {
        if number % 1024 != 0 {
            break;
        }
        (number, suffix) = (number / 1024, name);
    }
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_as_the_server_prints_them() {
        let cases = [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("100Mi", "100Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("12E2", "1200"),
            ("1E", "1E"),
            ("0", "0"),
            ("0Mi", "0"),
            ("-1.5", "-1500m"),
            ("+2", "2"),
            ("1.", "1"),
            (".5", "500m"),
            ("0.0000000001", "1n"),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_sum_is_written_as_its_first_part() {
        let sum = |a: &str, b: &str| (Amount::parse(a).unwrap() + Amount::parse(b).unwrap()).to_string();
        assert_eq!(sum("0", "512Mi"), "512Mi");
        assert_eq!(sum("512Mi", "16Mi"), "528Mi");
        assert_eq!(sum("300m", "0.7"), "1");
        assert_eq!((Amount::ONE - Amount::parse("3").unwrap()).to_string(), "-2");
        assert_eq!(Amount::parse("1.5").unwrap().rounded_up().to_string(), "2");
    }

    #[test]
    fn what_is_no_quantity_is_left_to_the_caller() {
        for text in ["", "x", "1 Gi", "1.2.3", "Gi", "1GiB", "--1", "1e", "."] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
