//! The formats of strings that a CRD may name. Others are ignored, as the real server does.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value;

use crate::schema::{FieldError, node::Node};

type Check = fn(&str) -> bool;

const FORMATS: [(&str, Check); 24] = [
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())),
    ("byte", is_base64),
    ("cidr", is_cidr),
    ("creditcard", is_credit_card),
    ("date", |text| text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && text.parse::<IpAddr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8sshortname", |text| text.len() <= 63 && is_short_name(text)),
    ("k8slongname", |text| text.len() <= 253 && text.split('.').all(is_short_name)),
    ("mac", |text| MAC.is_match(text)),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("ssn", |text| SSN.is_match(text)),
    ("uri", |text| text.starts_with('/') || ABSOLUTE_URI.is_match(text)),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some('3'))),
];

fn find(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    match name.as_str() {
        "uuid4" => return Some(|text| is_uuid(text, Some('4'))),
        "uuid5" => return Some(|text| is_uuid(text, Some('5'))),
        _ => {}
    }
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// Whether a schema that names this format gets it checked.
pub(super) fn is_known(format: &str) -> bool {
    find(format).is_some()
}

pub(super) fn check(node: &Node, text: &str, path: &str) -> Option<FieldError> {
    let format = super::types::format_of(node)?;
    if find(format)?(text) {
        return None;
    }
    let why = format!("{path} in body must be of type {format}: {text:?}");
    Some(FieldError::type_invalid(path, &Value::String(text.to_owned()), &why))
}

static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| regex("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    regex(&format!(r"^rgb\( *{part} *, *{part} *, *{part} *\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| regex("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    regex("^(?i)([0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,2}|([0-9a-f]{4}\\.){2,3}[0-9a-f]{4})$")
});
static ABSOLUTE_URI: LazyLock<Regex> =
    LazyLock::new(|| regex("^[a-zA-Z][a-zA-Z0-9+.-]*:([^\\s:/?#]|//[^\\s/?#]|/[^/\\s])[^\\s]*$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let label = r"[a-zA-Z0-9\p{S}\p{L}]";
    regex(&format!(
        r"^({label}((-?{label}{{0,62}})?)|({label}(([a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{label})?)(\.))+[a-zA-Z\p{{L}}]{{2,63}})$"
    ))
});
static GO_DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex("^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h))+)$"));
static LONG_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    regex("(?i)[0-9]+ ?(ns|nano|us|\u{b5}s|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|week|wk)")
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of formats must compile")
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|b| b.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_date_time(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    upper.contains('T') && upper.parse::<jiff::Timestamp>().is_ok()
}

fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || LONG_DURATION.is_match(text)
}

fn is_email(text: &str) -> bool {
    // A display name may precede the address in angle brackets.
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(inner)) => &inner[start + 1..],
        _ => text,
    };
    let Some((user, host)) = address.rsplit_once('@') else { return false };
    let plain = |c: char| !c.is_whitespace() && !"()<>[]:;,\\\"@".contains(c);
    let dots = |part: &str| !part.is_empty() && part.split('.').all(|atom| !atom.is_empty());
    dots(user) && dots(host) && user.chars().all(plain) && host.chars().all(plain)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_short_name(text: &str) -> bool {
    let ends = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| ends(*b))
        && bytes.last().is_some_and(|b| ends(*b))
        && bytes.iter().all(|b| ends(*b) || *b == b'-')
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| *c != '-').collect();
    let dashes_fit = text
        .chars()
        .enumerate()
        .all(|(at, c)| c != '-' || [8, 12, 13, 16, 17, 18, 20, 21, 22, 23].contains(&at));
    let variant = |c: char| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b');
    digits.len() == 32
        && dashes_fit
        && digits.iter().all(char::is_ascii_hexdigit)
        && version.is_none_or(|version| digits[12] == version && (version == '3' || variant(digits[16])))
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| *c != '-' && *c != ' ').collect();
    let weigh = |(at, c): (usize, &char)| match (c.to_digit(10), c, at) {
        (Some(digit), _, _) => Some(digit * (at as u32 + 1)),
        (None, 'X', 9) => Some(10 * 10),
        _ => None,
    };
    let sum: Option<u32> = digits.iter().enumerate().map(weigh).sum();
    digits.len() == 10 && sum.is_some_and(|sum| sum.is_multiple_of(11))
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|c| *c != '-' && *c != ' ').map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = digits.iter().enumerate().map(|(at, d)| if at % 2 == 0 { *d } else { d * 3 }).sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let double = |(at, digit): (usize, &u32)| match (at % 2, digit * 2) {
        (0, _) => *digit,
        (_, twice) if twice > 9 => twice - 9,
        (_, twice) => twice,
    };
    let sum: u32 = digits.iter().rev().enumerate().map(double).sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_tell_good_from_bad() {
        let cases = [
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("date", "2026-02-28", "2026-02-30"),
            ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
            ("duration", "1h30m", "soon"),
            ("email", "a@example.com", "a@"),
            ("hostname", "example.com", "-example-"),
            ("uri", "https://example.com/a", "not a uri"),
            ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6a7b8100"),
            ("uuid4", "16fd2706-8baf-433b-82eb-8c7fada847da", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("byte", "aGk=", "a"),
            ("hexcolor", "#fff", "#ff"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2)"),
            ("isbn10", "0321751043", "0321751044"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("k8s-short-name", "a-b", "A"),
            ("k8s-long-name", "a.b", "a..b"),
        ];
        for (format, good, bad) in cases {
            let check = find(format).expect(format);
            assert!(check(good), "{format} must take {good}");
            assert!(!check(bad), "{format} must not take {bad}");
        }
    }

    #[test]
    fn unknown_formats_are_ignored() {
        assert!(!is_known("int-or-string"));
        assert!(!is_known("made-up"));
    }
}
