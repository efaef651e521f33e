//! Go's regular expressions on Rust's engine.
//!
//! Both are automata with nearly the same syntax. The differences that matter in schemas: Go's
//! `\d`, `\w`, `\s` and `\b` know ASCII only, and Rust gives `[`, `&&`, `--` and `~~` a meaning
//! inside a character class.

use regex::Regex;

/// Compiles a pattern as Go understands it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translated(pattern))
}

/// Why a pattern does not compile, as Go says it.
pub(crate) fn complaint(pattern: &str, error: &regex::Error) -> String {
    let said = error.to_string();
    let says = |part: &str| said.contains(part);
    let why = if says("unclosed group") {
        format!("missing closing ): `{pattern}`")
    } else if says("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if says("unclosed character class") {
        let place = pattern.find('[').unwrap_or(0);
        format!("missing closing ]: `{}`", &pattern[place..])
    } else if says("repetition operator missing expression") {
        let operator = pattern.find(['*', '+', '?']).map_or("", |place| &pattern[place..=place]);
        format!("missing argument to repetition operator: `{operator}`")
    } else {
        return said;
    };
    format!("error parsing regexp: {why}")
}

fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut class = Class::Outside;
    while let Some(c) = chars.next() {
        match (c, class) {
            ('\\', _) => {
                class.advance();
                match chars.next() {
                    Some(escaped) => out.push_str(&escape(escaped, class)),
                    None => out.push('\\'),
                }
            }
            ('[', Class::Outside) => {
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                class = Class::First;
            }
            (']', Class::First) => {
                out.push_str("\\]");
                class = Class::Inside;
            }
            (']', Class::Inside) => {
                out.push(']');
                class = Class::Outside;
            }
            ('[', _) if chars.peek() == Some(&':') => {
                // A POSIX class such as `[:alpha:]` is the same in both.
                class = Class::Inside;
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            ('[' | '&' | '~', Class::First | Class::Inside) => {
                class = Class::Inside;
                out.push('\\');
                out.push(c);
            }
            (c, _) => {
                class.advance();
                out.push(c);
            }
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Outside,
    /// Right after the opening bracket, where `]` is a character like any other.
    First,
    Inside,
}

impl Class {
    fn advance(&mut self) {
        if *self == Self::First {
            *self = Self::Inside;
        }
    }
}

fn escape(c: char, class: Class) -> String {
    match c {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'w' => "[0-9A-Za-z_]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        's' => "[\\t\\n\\f\\r ]".to_owned(),
        'S' => "[^\\t\\n\\f\\r ]".to_owned(),
        'b' | 'B' if class == Class::Outside => format!("(?-u:\\{c})"),
        // Go lets any punctuation be escaped; Rust knows all of ASCII's, but no other.
        c if c.is_ascii_alphanumeric() || c.is_ascii_punctuation() => format!("\\{c}"),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        let cases = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "٣", false),
            (r"^[\w.-]+$", "a.b-c_1", true),
            (r"^[[a]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]]$", "a", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-1", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\-x\/y$", "-x/y", true),
        ];
        for (pattern, text, expected) in cases {
            let regex = compile(pattern).expect(pattern);
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_broken_pattern_is_an_error() {
        assert!(compile("(").is_err());
        assert!(compile("[a").is_err());
    }
}
