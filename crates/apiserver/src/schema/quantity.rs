//! Kubernetes quantities in their canonical form.
//!
//! `0.5` is stored as `500m`, `1024Ki` as `1Mi`: the real server parses a quantity when it reads
//! an object and prints it anew when it writes it.

use std::fmt::Write;

/// Quantities are exact to this many decimal places; finer ones are rounded up.
const DECIMALS: u32 = 9;
const SCALE: i128 = 10_i128.pow(DECIMALS);

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// The canonical text of a quantity, or `None` when `text` is none (or is too large to handle).
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (number, suffix) = split(text)?;
    let (format, base, exponent) = suffix_of(suffix)?;
    let amount = amount_of(number, base, exponent)?;
    Some(print(amount, format))
}

/// The amount in billionths, or `None` when `text` is no quantity.
pub(crate) fn parse(text: &str) -> Option<i128> {
    let (number, suffix) = split(text)?;
    let (_, base, exponent) = suffix_of(suffix)?;
    amount_of(number, base, exponent)
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
    fn what_is_no_quantity_is_left_to_the_caller() {
        for text in ["", "x", "1 Gi", "1.2.3", "Gi", "1GiB", "--1", "1e", "."] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
