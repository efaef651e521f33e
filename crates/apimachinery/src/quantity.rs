//! Quantities: `500m`, `1.5Gi`, `2e3`. Exact, and printed as Kubernetes prints them.
//!
//! A [`Quantity`] is a decimal number and the way it was written. Kubernetes reads `0.5` and prints `500m`, reads
//! `1024Ki` and prints `1Mi`; so does this one. What it means:
//!
//! - Two quantities are equal if they are the same number: `1024Mi == 1Gi`, and `1G < 1Gi`.
//! - Nothing is finer than a billionth (`1n`): what is finer is rounded away from zero, so that whoever asks for a little
//!   gets some.
//! - With a binary suffix the most is 2⁶³-1, as in Kubernetes: `100Ei` is that number. With a decimal one there is no
//!   limit but 38 digits; a sum that would need more loses its last ones.
//! - A sum is written as its first part was, unless that is zero.

mod parse;
#[cfg(test)]
mod tests;

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    iter::Sum,
    ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub use self::parse::ParseError;

/// The finest that a quantity can be: a billionth.
const FINEST: i32 = -9;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a suffix such as `m`, `k` or `G`, or none.
    DecimalSi,
    /// With an exponent: `12e6`.
    DecimalExponent,
    /// With a suffix such as `Ki` or `Gi`.
    BinarySi,
}

/// An exact number such as `500m` or `1.5Gi`, as resources and sizes are given in.
///
/// ```
/// use windlass_apimachinery::Quantity;
///
/// let asked: Quantity = "0.5".parse()?;
/// assert_eq!(asked.to_string(), "500m");
/// assert_eq!(asked, "500m".parse()?);
/// assert_eq!((asked * 3).milli_value(), 1500);
/// assert!("6G".parse::<Quantity>()? < "6Gi".parse()?);
/// # Ok::<(), windlass_apimachinery::quantity::ParseError>(())
/// ```
///
/// The `Quantity` of `k8s-openapi` is a text; its number is `Quantity::parse(&quantity.0)`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The number is `mantissa` times ten to the power of `exponent`. The mantissa does not end in a zero, unless it is
    /// zero; then so is the exponent. So equal numbers have equal parts.
    mantissa: i128,
    exponent: i32,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0, format: Format::DecimalSi };
    /// One.
    pub const ONE: Self = Self { mantissa: 1, exponent: 0, format: Format::DecimalSi };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::quantity(text)
    }

    /// Reads a quantity of a JSON object, which may be a text or a number.
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// So many bytes, written with a binary suffix where that is possible.
    pub fn from_bytes(bytes: u64) -> Self {
        Self::new(i128::from(bytes), 0, Format::BinarySi)
    }

    /// So many thousandths: `from_milli(1500)` is `1500m`.
    pub fn from_milli(thousandths: i64) -> Self {
        Self::new(i128::from(thousandths), -3, Format::DecimalSi)
    }

    fn new(mut mantissa: i128, mut exponent: i32, format: Format) -> Self {
        if mantissa == 0 {
            return Self { format, ..Self::ZERO };
        }
        while mantissa % 10 == 0 && exponent < i32::MAX {
            (mantissa, exponent) = (mantissa / 10, exponent + 1);
        }
        Self { mantissa, exponent, format }
    }

    /// How it is written.
    pub fn format(self) -> Format {
        self.format
    }

    /// The same number, written in another way.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// The whole units, such as bytes: rounded away from zero, and at most what fits.
    pub fn value(self) -> i64 {
        saturate(self.scaled(0))
    }

    /// The thousandths, in which shares of a processor are counted: rounded away from zero, and at most what fits.
    pub fn milli_value(self) -> i64 {
        saturate(self.scaled(3))
    }

    /// The number in units of ten to the power of minus `digits`: rounded away from zero, and at most what fits.
    pub fn scaled(self, digits: u32) -> i128 {
        let most = if self.is_negative() { i128::MIN } else { i128::MAX };
        let exponent = i64::from(self.exponent) + i64::from(digits);
        if self.is_zero() {
            return 0;
        }
        if exponent < 0 {
            return divide_up(self.mantissa, exponent.unsigned_abs());
        }
        let factor = u32::try_from(exponent).ok().and_then(|power| 10_i128.checked_pow(power));
        factor.and_then(|factor| self.mantissa.checked_mul(factor)).unwrap_or(most)
    }

    /// The next whole number, away from zero.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        if self.exponent >= 0 {
            return self;
        }
        Self::new(divide_up(self.mantissa, self.exponent.unsigned_abs().into()), 0, self.format)
    }

    /// How many times `other` it is.
    pub fn ratio(self, other: Self) -> f64 {
        self.scaled(9) as f64 / other.scaled(9) as f64
    }

    /// The nearest floating-point number: to be shown, not to be added up.
    pub fn as_f64(self) -> f64 {
        let power = 10_f64.powi(self.exponent.abs());
        if self.exponent < 0 { self.mantissa as f64 / power } else { self.mantissa as f64 * power }
    }

    /// How many decimal digits stand before the point; negative if the first ones behind it are zeros.
    fn magnitude(self) -> i64 {
        i64::from(self.mantissa.unsigned_abs().checked_ilog10().unwrap_or(0)) + i64::from(self.exponent)
    }
}

/// A mantissa without its last digits, rounded away from zero.
fn divide_up(mantissa: i128, digits: u64) -> i128 {
    let divisor = u32::try_from(digits).ok().and_then(|digits| 10_i128.checked_pow(digits));
    let Some(divisor) = divisor else { return mantissa.signum() };
    mantissa / divisor + if mantissa % divisor == 0 { 0 } else { mantissa.signum() }
}

fn saturate(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.mantissa, self.exponent) == (other.mantissa, other.exponent)
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.mantissa, self.exponent).hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs.is_ne() || self.is_zero() {
            return signs;
        }
        let larger = self.magnitude().cmp(&other.magnitude()).then_with(|| {
            // As many digits before the point, so the shift is a small one.
            let shift = |of: &Self, by: i32| {
                let power = u32::try_from(by).ok().and_then(|by| 10_u128.checked_pow(by));
                power.and_then(|power| of.mantissa.unsigned_abs().checked_mul(power)).unwrap_or(u128::MAX)
            };
            let least = self.exponent.min(other.exponent);
            shift(self, self.exponent - least).cmp(&shift(other, other.exponent - least))
        });
        if self.is_negative() { larger.reverse() } else { larger }
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        if self.is_zero() || other.is_zero() {
            let sum = if self.is_zero() { other } else { self };
            return sum.with_format(format);
        }
        let (coarse, fine) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let mut exponent = i64::from(fine.exponent);
        loop {
            let up = u32::try_from(i64::from(coarse.exponent) - exponent).unwrap_or(0);
            let first = 10_i128.checked_pow(up).and_then(|power| coarse.mantissa.checked_mul(power));
            let down = (exponent - i64::from(fine.exponent)).unsigned_abs();
            let power = u32::try_from(down).ok().and_then(|down| 10_i128.checked_pow(down));
            let second = power.map_or(0, |power| fine.mantissa / power);
            match first.and_then(|first| first.checked_add(second)) {
                Some(sum) => return Self::new(sum, exponent as i32, format),
                // More digits than there is room for: the last ones go.
                None if up > 38 => exponent = i64::from(coarse.exponent) - 38,
                None => exponent += 1,
            }
        }
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { mantissa: self.mantissa.saturating_neg(), ..self }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = self.add(other);
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = self.sub(other);
    }
}

/// So many times the quantity; at most what fits.
impl Mul<i64> for Quantity {
    type Output = Self;

    fn mul(self, count: i64) -> Self {
        let product = self.mantissa.saturating_mul(i128::from(count));
        Self::new(product, self.exponent, self.format)
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self::new(i128::from(number), 0, Format::DecimalSi)
    }
}

impl From<usize> for Quantity {
    fn from(number: usize) -> Self {
        Self::new(number as i128, 0, Format::DecimalSi)
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// The canonical form: no fraction, and the largest suffix that needs none.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return formatter.pad("0");
        }
        formatter.pad(&self.binary().unwrap_or_else(|| self.decimal()))
    }
}

impl Quantity {
    /// With a binary suffix, if it is to be written so and no precision is lost.
    fn binary(self) -> Option<String> {
        if self.format != Format::BinarySi || self.exponent < 0 {
            return None;
        }
        let power = 10_i128.checked_pow(self.exponent.unsigned_abs())?;
        let mut number = self.mantissa.checked_mul(power).filter(|number| number.abs() >= 1024)?;
        let mut suffix = "";
        for name in BINARY_SUFFIXES {
            if number % 1024 != 0 {
                break;
            }
            (number, suffix) = (number / 1024, name);
        }
        Some(format!("{number}{suffix}"))
    }

    fn decimal(self) -> String {
        let zeros = self.exponent.rem_euclid(3);
        let exponent = self.exponent - zeros;
        let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent).map(|(name, _)| *name);
        let suffix = match suffix {
            Some(suffix) if self.format != Format::DecimalExponent || exponent == 0 => suffix.to_owned(),
            _ => format!("e{exponent}"),
        };
        format!("{}{}{suffix}", self.mantissa, "0".repeat(zeros as usize))
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => return Err(de::Error::custom(format!("{other} is no quantity"))),
        };
        Self::parse(&text).map_err(de::Error::custom)
    }
}
