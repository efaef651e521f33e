//! Field selectors: `metadata.name=web,status.phase!=Running`.
//!
//! Which fields can be selected by is a matter of the kind. Here a text becomes requirements, and requirements text; in a
//! value `\`, `,` and `=` are written with a `\` before them.
//!
//! ```
//! use windlass_apimachinery::fields::Selector;
//!
//! let selector = Selector::parse("spec.nodeName=n1,status.phase!=Failed")?;
//! let pod = |field: &str| if field == "spec.nodeName" { "n1" } else { "" };
//! assert!(selector.matches(pod));
//! # Ok::<(), windlass_apimachinery::fields::ParseError>(())
//! ```

use std::{fmt, str::FromStr};

/// One requirement: a field that has this value, or another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The path of the field, such as `metadata.name`.
    pub field: String,
    /// The value.
    pub value: String,
    /// Whether the field must have the value, or must not.
    pub equal: bool,
}

/// Requirements that fields must meet, all of them. Without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// A text that is no field selector. The message is Kubernetes' own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A part has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{part}'")]
    Part {
        /// The whole selector.
        selector: String,
        /// The part of it.
        part: String,
    },
    /// A `\` stands before something else than `\`, `,` and `=`.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A value has a `,` or `=` without a `\` before it.
    #[error("invalid field selector: unescaped character in value: {}", *.0 as u32)]
    Unescaped(char),
}

impl Selector {
    /// Reads a selector.
    pub fn parse(selector: &str) -> Result<Self, ParseError> {
        let mut parts = split(selector);
        parts.sort_unstable();
        parts.into_iter().filter(|part| !part.is_empty()).map(|part| requirement(selector, part)).collect()
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether fields match that are known by a function. A field that is not there is an empty text.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.0.iter().all(|one| (field(&one.field) == one.value) == one.equal)
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}

impl FromStr for Selector {
    type Err = ParseError;

    fn from_str(selector: &str) -> Result<Self, ParseError> {
        Self::parse(selector)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.equal { "=" } else { "!=" };
        write!(formatter, "{}{operator}{}", self.field, escaped(&self.value))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

/// The parts between commas, but not those with a `\` before them.
fn split(selector: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, character) in selector.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&selector[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[start..]);
    parts
}

fn requirement(selector: &str, part: &str) -> Result<Requirement, ParseError> {
    let found = part.char_indices().find_map(|(index, _)| {
        let operator = ["!=", "==", "="].into_iter().find(|operator| part[index..].starts_with(operator))?;
        Some((&part[..index], operator, &part[index + operator.len()..]))
    });
    let (field, operator, value) =
        found.ok_or_else(|| ParseError::Part { selector: selector.to_owned(), part: part.to_owned() })?;
    Ok(Requirement { field: field.to_owned(), value: unescaped(value)?, equal: operator != "!=" })
}

fn unescaped(value: &str) -> Result<String, ParseError> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                Some(other) => return Err(ParseError::Escape(format!("\\{other}"))),
                None => return Err(ParseError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(ParseError::Unescaped(character)),
            _ => text.push(character),
        }
    }
    Ok(text)
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn selectors_read_as_kubernetes_reads_them() {
        let one = |field: &str, value: &str, equal| Requirement {
            field: field.to_owned(),
            value: value.to_owned(),
            equal,
        };
        for (text, expected) in [
            ("", vec![]),
            (",", vec![]),
            ("a=b", vec![one("a", "b", true)]),
            ("a==b", vec![one("a", "b", true)]),
            ("a!=b", vec![one("a", "b", false)]),
            ("a=", vec![one("a", "", true)]),
            ("c=d,a!=b", vec![one("a", "b", false), one("c", "d", true)]),
            ("a=b\\,c\\=d\\\\", vec![one("a", "b,c=d\\", true)]),
            // Spaces belong to the names and values.
            ("a = b", vec![one("a ", " b", true)]),
        ] {
            assert_eq!(Selector::parse(text).unwrap().requirements(), expected, "{text}");
        }
    }

    #[test]
    fn what_kubernetes_refuses_is_refused_in_its_words() {
        for (text, why) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a=b\\c", "invalid field selector: invalid escape sequence: \\c"),
            ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err().to_string(), why);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_as_the_same_selector(
            all in prop::collection::vec(("[a-z.]{1,8}", ".{0,8}", any::<bool>()), 0..4),
        ) {
            let all = all.into_iter().map(|(field, value, equal)| Requirement { field, value, equal });
            let mut selector: Selector = all.collect();
            // The texts are sorted when they are read.
            selector.0.sort_by_key(ToString::to_string);
            prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_text_makes_the_parser_panic(selector in ".{0,40}", symbols in "[a=!,\\\\]{0,20}") {
            let _ = (Selector::parse(&selector), Selector::parse(&symbols));
        }
    }
}
