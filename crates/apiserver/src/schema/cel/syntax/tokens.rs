//! Names, literals and signs of an expression, and where they stand.

use super::Form;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Literal(Form),
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];

pub(super) fn tokens(text: &str) -> Option<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some((form, length)) = quoted(rest) {
            tokens.push((at, Token::Literal(form)));
            at += length?;
        } else if first.is_ascii_digit() {
            let (form, length) = number(rest);
            tokens.push((at, Token::Literal(form)));
            at += length;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
            tokens.push((
                at,
                match &rest[..length] {
                    "true" | "false" => Token::Literal(Form::Bool),
                    "null" => Token::Literal(Form::Null),
                    "in" => Token::Sign("@in"),
                    name => Token::Name(name.to_owned()),
                },
            ));
            at += length;
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
            tokens.push((at, Token::Sign(sign)));
            at += sign.len();
        }
    }
    Some(tokens)
}

/// A text or bytes at the beginning of `rest`, and how long it is; no length if it does not end.
fn quoted(rest: &str) -> Option<(Form, Option<usize>)> {
    let prefix = rest.find(['"', '\'']).filter(|at| *at <= 2)?;
    if !rest[..prefix].chars().all(|c| "rRbB".contains(c)) {
        return None;
    }
    let raw = rest[..prefix].contains(['r', 'R']);
    let bytes = rest[..prefix].contains(['b', 'B']);
    let form = |length| if bytes { Form::Bytes(length) } else { Form::Text(length) };
    let body = &rest[prefix..];
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote))?;
    let mut at = quote.len();
    let mut length = 0;
    loop {
        let Some(next) = body[at..].chars().next() else { return Some((form(length), None)) };
        if body[at..].starts_with(quote) {
            return Some((form(length), Some(prefix + at + quote.len())));
        }
        length += if bytes { next.len_utf8() } else { 1 };
        at += next.len_utf8();
        if next == '\\' && !raw {
            at += escape(&body[at..]);
        }
    }
}

/// How long the rest of an escape is, after its backslash.
fn escape(rest: &str) -> usize {
    let Some(kind) = rest.chars().next() else { return 0 };
    let wanted = match kind {
        'x' | 'X' => 3,
        'u' => 5,
        'U' => 9,
        '0'..='3' => 3,
        _ => kind.len_utf8(),
    };
    // What is cut short is no expression, and not ours to judge.
    if rest.is_char_boundary(wanted) { wanted } else { kind.len_utf8() }
}

fn number(rest: &str) -> (Form, usize) {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut form = Form::Int(None);
    let mut end;
    if rest.starts_with("0x") || rest.starts_with("0X") {
        end = 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    } else {
        end = digits(0);
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end += 1 + digits(end + 1);
            form = Form::Double;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            end += 1 + sign + digits(end + 1 + sign);
            form = Form::Double;
        }
    }
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        return (Form::Uint, end + 1);
    }
    if form == Form::Int(None) {
        form = Form::Int(rest[..end].parse().ok());
    }
    (form, end)
}
