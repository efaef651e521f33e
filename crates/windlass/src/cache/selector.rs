//! Label selectors, read and evaluated as Kubernetes does.
//!
//! Enters: the text of a selector, such as `app=web,tier notin (db, cache),!canary`. Leaves: whether labels match it, or
//! one line that says what is wrong with the text.

use std::collections::BTreeMap;

/// A label selector. Without requirements it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Reads a selector. The error is one line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = Vec::new();
        if parser.peek() == &Token::End {
            return Ok(Self(requirements));
        }
        loop {
            requirements.push(parser.requirement()?);
            match parser.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Symbol(",") => {}
                other => return Err(format!("found {other}, expected ',' or the end")),
            }
        }
    }

    pub(crate) fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.0.iter().all(|one| one.matches(labels.and_then(|labels| labels.get(&one.key))))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&String>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::GreaterThan(limit) => number().is_some_and(|number| number > *limit),
            Test::LessThan(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => write!(f, "'{word}'"),
            Self::Symbol(symbol) => write!(f, "'{symbol}'"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// The longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let (token, length) = match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None => {
                let end = rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len());
                (Token::Word(rest[..end].to_owned()), end)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == &Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => checked_key(word)?,
            other => return Err(format!("found {other}, expected a label's key")),
        };
        let test = match self.peek() {
            _ if absent => Test::DoesNotExist,
            Token::End | Token::Symbol(",") => Test::Exists,
            _ => self.test()?,
        };
        Ok(Requirement { key, test })
    }

    fn test(&mut self) -> Result<Test, String> {
        match self.next() {
            Token::Symbol("=" | "==") => Ok(Test::In(vec![self.value()?])),
            Token::Symbol("!=") => Ok(Test::NotIn(vec![self.value()?])),
            Token::Symbol(">") => Ok(Test::GreaterThan(self.number()?)),
            Token::Symbol("<") => Ok(Test::LessThan(self.number()?)),
            Token::Word(word) if word == "in" => Ok(Test::In(self.values()?)),
            Token::Word(word) if word == "notin" => Ok(Test::NotIn(self.values()?)),
            other => Err(format!("found {other}, expected =, ==, !=, in, notin, > or <")),
        }
    }

    /// The value of an exact match, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            _ => match self.next() {
                Token::Word(word) => checked_value(word),
                other => Err(format!("found {other}, expected a value")),
            },
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| format!("'{value}' is not an integer, which > and < compare with"))
    }

    /// The values of a set, some of which may be empty.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found {other}, expected '('")),
        }
        let (mut values, mut value) = (Vec::new(), None);
        loop {
            match self.next() {
                Token::Word(word) if value.is_none() => value = Some(checked_value(word)?),
                Token::Symbol(",") => values.push(value.take().unwrap_or_default()),
                Token::Symbol(")") => {
                    values.push(value.unwrap_or_default());
                    return Ok(values);
                }
                other => return Err(format!("found {other}, expected ',' or ')'")),
            }
        }
    }
}

/// A key: a name of at most 63 characters, perhaps behind a DNS subdomain and a slash.
fn checked_key(key: String) -> Result<String, String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, &*key), |(prefix, name)| (Some(prefix), name));
    if prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name) {
        return Ok(key);
    }
    Err(format!("'{key}' cannot be a label's key"))
}

fn checked_value(value: String) -> Result<String, String> {
    if is_label_value(&value) { Ok(value) } else { Err(format!("'{value}' cannot be a label's value")) }
}

fn is_label_value(value: &str) -> bool {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let bytes = value.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(inner)
        && [bytes.first(), bytes.last()].into_iter().flatten().all(u8::is_ascii_alphanumeric)
}

fn is_subdomain(prefix: &str) -> bool {
    let lower = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        !bytes.is_empty()
            && bytes.iter().all(|b| lower(b) || *b == b'-')
            && [bytes.first(), bytes.last()].into_iter().flatten().all(lower)
    };
    prefix.len() <= 253 && prefix.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        LabelSelector::parse(selector).unwrap().matches(Some(&labels))
    }

    #[test]
    fn every_operator_means_what_it_means_to_kubernetes() {
        let web = [("app", "web"), ("tier", "front"), ("level", "7"), ("empty", "")];
        for selector in [
            "",
            "app",
            "!canary",
            "app=web",
            "app == web",
            "app in (db, web)",
            "app!=db",
            "canary!=yes",
            "canary notin (a,b)",
            "level>6",
            "level < 8",
            "empty=",
            "empty in ()",
            "empty in (,x)",
            "app=web,tier notin (back),!canary,level",
            "example.com/x!=y",
            "in!=x",
            "app in (web,)",
        ] {
            assert!(matches(selector, &web), "{selector}");
        }
        for selector in [
            "canary",
            "!app",
            "app=db",
            "app notin (web)",
            "canary in (a)",
            "level>7",
            "app>1",
            "app!=web",
            "app=web,tier=back",
            "canary=",
            "canary in ()",
        ] {
            assert!(!matches(selector, &web), "{selector}");
        }
        assert!(
            LabelSelector::parse("!a").unwrap().matches(None)
                && !LabelSelector::parse("a").unwrap().matches(None)
        );
    }

    #[test]
    fn what_kubernetes_refuses_is_refused() {
        let long = "x".repeat(64);
        for selector in [
            ",",
            "a,",
            ",a",
            "a b",
            "a in",
            "a in b",
            "a in (b",
            "a in (b c)",
            "a=b=c",
            "!a=b",
            "a>x",
            "a>",
            "a=-b",
            "-a",
            "a/b/c",
            "/a",
            "A.b/c",
            "a===b",
            "a=!b",
            "(a)",
            "a notin b)",
            "a,,b",
            "=a",
            "!",
            "!!a",
            &long,
            &format!("a={long}"),
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
