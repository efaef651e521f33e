//! A small part of the shell's language: a script enters, its statements leave. Pure.
//!
//! Words with quotes and variables, joined by `;`, `&&` and `||`, and `>&2`. A script with anything else is not
//! understood at all: half of one would be a guess.

use std::iter::Peekable;

/// When a statement is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Always,
    /// After one that has succeeded.
    And,
    /// After one that has failed.
    Or,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The value of a variable; outside of quotes it may be several words, or none.
    Variable {
        name: String,
        quoted: bool,
    },
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) join: Join,
    pub(super) words: Vec<Vec<Piece>>,
    /// Whether its output goes where errors go.
    pub(super) to_stderr: bool,
}

/// The statements of a script, if all of it is understood.
pub(super) fn parse(text: &str) -> Option<Vec<Statement>> {
    let mut reader =
        Reader { rest: text.chars().peekable(), done: Vec::new(), current: None, join: Join::Always };
    while let Some(next) = reader.rest.next() {
        reader.take(next)?;
    }
    // `a &&` waits for the next line, which there is not.
    if reader.join != Join::Always && reader.current.is_none() {
        return None;
    }
    reader.end(Join::Always)?;
    Some(reader.done)
}

struct Reader<'a> {
    rest: Peekable<std::str::Chars<'a>>,
    done: Vec<Statement>,
    current: Option<Open>,
    join: Join,
}

/// A statement that is being read, and its last word if that is.
#[derive(Default)]
struct Open {
    words: Vec<Vec<Piece>>,
    word: Option<Vec<Piece>>,
    to_stderr: bool,
}

impl Reader<'_> {
    fn take(&mut self, next: char) -> Option<()> {
        match next {
            ' ' | '\t' => self.close_word(),
            '\n' | ';' => return self.end(Join::Always),
            '&' => return self.joined('&', Join::And),
            '|' => return self.joined('|', Join::Or),
            '>' => return self.redirect(),
            '#' if self.word_is_new() => while self.rest.next_if(|next| *next != '\n').is_some() {},
            '\'' => {
                let quoted = self.until_quote()?;
                self.push(Piece::Text(quoted));
            }
            '"' => return self.double_quoted(),
            '\\' => match self.rest.next()? {
                '\n' => {}
                escaped => self.push(Piece::Text(escaped.into())),
            },
            '$' => {
                let piece = self.variable(false)?;
                self.push(piece);
            }
            '`' | '<' | '(' | ')' | '*' | '?' | '[' | '{' | '}' | '!' => return None,
            '~' if self.word_is_new() => return None,
            other => self.push(Piece::Text(other.into())),
        }
        Some(())
    }

    fn word_is_new(&self) -> bool {
        self.current.as_ref().is_none_or(|open| open.word.is_none())
    }

    fn push(&mut self, piece: Piece) {
        let word = self.current.get_or_insert_default().word.get_or_insert_default();
        match (word.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
            (_, piece) => word.push(piece),
        }
    }

    fn close_word(&mut self) {
        if let Some(open) = &mut self.current {
            open.words.extend(open.word.take());
        }
    }

    /// Ends a statement; `join` says when the next one is run.
    fn end(&mut self, join: Join) -> Option<()> {
        self.close_word();
        let Some(open) = self.current.take() else {
            // Nothing before `&&` is nothing to succeed; an empty line is only an empty line.
            return (join == Join::Always).then_some(());
        };
        if open.words.is_empty() {
            return None;
        }
        self.done.push(Statement { join: self.join, words: open.words, to_stderr: open.to_stderr });
        self.join = join;
        Some(())
    }

    fn joined(&mut self, twice: char, join: Join) -> Option<()> {
        self.rest.next_if_eq(&twice)?;
        self.end(join)
    }

    /// `>&2` or `1>&2`; files cannot be written.
    fn redirect(&mut self) -> Option<()> {
        self.rest.next_if_eq(&'&')?;
        self.rest.next_if_eq(&'2')?;
        let open = self.current.get_or_insert_default();
        match open.word.take() {
            None => {}
            Some(word) if word == [Piece::Text("1".into())] => {}
            Some(_) => return None,
        }
        open.to_stderr = true;
        Some(())
    }

    fn until_quote(&mut self) -> Option<String> {
        let mut quoted = String::new();
        loop {
            match self.rest.next()? {
                '\'' => return Some(quoted),
                other => quoted.push(other),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.push(Piece::Text(String::new()));
        loop {
            let piece = match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.variable(true)?,
                '\\' => match self.rest.next()? {
                    '\n' => continue,
                    escaped @ ('"' | '\\' | '$' | '`') => Piece::Text(escaped.into()),
                    other => Piece::Text(format!("\\{other}")),
                },
                other => Piece::Text(other.into()),
            };
            self.push(piece);
        }
    }

    /// What follows a dollar: `NAME`, `{NAME}`, `?`, or nothing that would make it a variable.
    fn variable(&mut self, quoted: bool) -> Option<Piece> {
        let named = |next: &char| next.is_ascii_alphanumeric() || *next == '_';
        if self.rest.next_if_eq(&'?').is_some() {
            return Some(Piece::Variable { name: "?".into(), quoted });
        }
        let braced = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(next) = self.rest.next_if(named) {
            name.push(next);
        }
        if braced {
            self.rest.next_if_eq(&'}')?;
        }
        let begins_well = name.starts_with(|first: char| !first.is_ascii_digit());
        match (begins_well, braced, self.rest.peek()) {
            (true, ..) => Some(Piece::Variable { name, quoted }),
            (false, false, next) if name.is_empty() && next != Some(&'(') => Some(Piece::Text("$".into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Vec<Piece> {
        vec![Piece::Text(text.into())]
    }

    #[test]
    fn quotes_keep_words_together() {
        let script = parse("echo 'a b' \"c $D\" e\\ f 1>&2 && exit 3 # done").unwrap();
        assert_eq!(script.len(), 2);
        let value = Piece::Variable { name: "D".into(), quoted: true };
        let quoted = vec![Piece::Text("c ".into()), value];
        assert_eq!(script[0].words, [text("echo"), text("a b"), quoted, text("e f")]);
        assert!(script[0].to_stderr);
        assert_eq!((script[1].join, script[1].words.len()), (Join::And, 2));
    }

    #[test]
    fn what_is_beyond_this_shell_is_not_guessed() {
        for beyond in
            ["a | b", "a > f", "a &", "$(a)", "`a`", "a*", "(a)", "'a", "\"a", "a <f", "a 2>&1", "a &&", "$1"]
        {
            assert_eq!(parse(beyond), None, "{beyond}");
        }
        assert_eq!(parse("\n ; \n"), Some(vec![]));
        assert_eq!(parse("echo $").unwrap()[0].words[1], text("$"));
    }

    proptest! {
        #[test]
        fn no_script_makes_the_parser_panic(text in "[a-c$\\\\\"'&|;>{}()12? \n]{0,40}|.{0,40}") {
            if let Some(script) = parse(&text) {
                prop_assert!(script.iter().all(|statement| !statement.words.is_empty()));
            }
        }
    }
}
