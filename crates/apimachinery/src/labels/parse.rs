//! A selector's text becomes requirements. What is accepted and what is said of the rest is as in Kubernetes.

use super::{Operator, Requirement, names};

/// A text that is no selector, or a requirement that cannot be: one line, as Kubernetes words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A key, a value, `in` or `notin`.
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Symbol(symbol) => symbol,
            Self::End => "",
        }
    }
}

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Symbol("!") => {}
            other @ Token::Symbol(_) => return expected(other, "!, identifier, or 'end of string'"),
        }
        let requirement = parser.requirement();
        requirements
            .push(requirement.map_err(|error| ParseError(format!("unable to parse requirement: {error}")))?);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {
                let after = parser.peek();
                if !matches!(after, Token::Word(_) | Token::Symbol("!")) {
                    return expected(after, "identifier after ','");
                }
            }
            other => return expected(other, "',' or 'end of string'"),
        }
    }
}

fn expected<T>(found: Token<'_>, expected: &str) -> Result<T, ParseError> {
    Err(ParseError(format!("found '{}', expected: {expected}", found.text())))
}

/// Whether a requirement can be: its key, its values, and how many of them there are.
pub(super) fn check(key: &str, operator: Operator, values: &[String]) -> Result<(), ParseError> {
    let mut wrong = Vec::new();
    wrong.extend(invalid("key", key, &names::qualified_name(key)));
    let shown =
        || format!("[{}]", values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(","));
    let of_values = |why: &str| format!("values: Invalid value: {}: {why}", shown());
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            wrong.push(of_values("for 'in', 'notin' operators, values set can't be empty"));
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
            wrong.push(of_values("exact-match compatibility requires one single value"));
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            wrong.push(of_values("values set must be empty for exists and does not exist"));
        }
        Operator::GreaterThan | Operator::LessThan => {
            if values.len() != 1 {
                wrong.push(of_values("for 'Gt', 'Lt' operators, exactly one value is required"));
            }
            for (index, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err())
            {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                wrong.push(format!("values[{index}]: Invalid value: {value:?}: {why}"));
            }
        }
        _ => {}
    }
    for (index, value) in values.iter().enumerate() {
        wrong.extend(invalid(&format!("values[{index}][{key}]"), value, &names::label_value(value)));
    }
    match wrong.len() {
        0 => Ok(()),
        1 => Err(ParseError(wrong.remove(0))),
        _ => Err(ParseError(format!("[{}]", wrong.join(", ")))),
    }
}

fn invalid(path: &str, value: &str, why: &[String]) -> Option<String> {
    (!why.is_empty()).then(|| format!("{path}: Invalid value: {value:?}: {}", why.join("; ")))
}

/// The longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches(SPACES);
        if self.rest.is_empty() {
            return Token::End;
        }
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol)) {
            self.rest = &self.rest[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let end = self.rest.find(|c| SPACES.contains(&c) || "=!(),><".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word)
    }

    fn requirement(&mut self) -> Result<Requirement, ParseError> {
        let absent = self.peek() == Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return expected(other, "identifier"),
        };
        if let Some(why) = invalid("<nil>", key, &names::qualified_name(key)) {
            return Err(ParseError(why));
        }
        let (operator, values) = match self.peek() {
            _ if absent => (Operator::DoesNotExist, Vec::new()),
            Token::End | Token::Symbol(",") => (Operator::Exists, Vec::new()),
            _ => self.operation()?,
        };
        Requirement::new(key, operator, values.into_iter().map(str::to_owned))
    }

    fn operation(&mut self) -> Result<(Operator, Vec<&'a str>), ParseError> {
        let operator = match self.next() {
            Token::Word("in") => return Ok((Operator::In, self.values()?)),
            Token::Word("notin") => return Ok((Operator::NotIn, self.values()?)),
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return expected(other, "in, notin, =, ==, !=, gt, lt"),
        };
        Ok((operator, vec![self.value()?]))
    }

    /// The value of an exact match, which may be empty.
    fn value(&mut self) -> Result<&'a str, ParseError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => expected(other, "identifier"),
        }
    }

    /// The values of a set, some of which may be empty.
    fn values(&mut self) -> Result<Vec<&'a str>, ParseError> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(ParseError(format!("found '{}' expected: '('", other.text()))),
        }
        let (mut values, mut value) = (Vec::new(), None);
        loop {
            match self.next() {
                Token::Word(word) if value.is_none() => value = Some(word),
                Token::Symbol(",") => values.push(value.take().unwrap_or_default()),
                Token::Symbol(")") => {
                    values.push(value.unwrap_or_default());
                    return Ok(values);
                }
                other if value.is_some() => return expected(other, "',' or ')'"),
                other if values.is_empty() => return expected(other, "',', ')' or identifier"),
                other => return expected(other, "',', or identifier"),
            }
        }
    }
}
