//! What may stand on a terminal: any text enters, text leaves that moves no cursor, changes no colour and turns no
//! direction, and is as wide as it says.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{detail::plain, health::Health};

/// So many accents may stand on a letter.
const ACCENTS: usize = 2;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Characters beyond ASCII.
    pub unicode: bool,
    /// Colours.
    pub colour: bool,
}

impl Abilities {
    /// As the environment says: `NO_COLOR`, `TERM`, and the locale.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = said("LC_ALL").or_else(|| said("LC_CTYPE")).or_else(|| said("LANG"));
        let named = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        // Windows has no such variables, and its terminals are given UTF-8.
        let unicode = named || cfg!(windows);
        let dumb = said("TERM").is_some_and(|term| term == "dumb");
        Self { unicode: unicode && !dumb, colour: said("NO_COLOR").is_none() && !dumb }
    }

    /// One line of text: what a terminal would act upon is gone, what it cannot show is a question mark.
    pub(crate) fn line(self, text: &str) -> String {
        let text = plain(text);
        let mut out = String::with_capacity(text.len());
        let mut accents = 0;
        for character in text.chars() {
            accents = if character.width() == Some(0) { accents + 1 } else { 0 };
            match character {
                '\n' | '\t' => out.push(' '),
                c if c.is_ascii() => out.push(c),
                c if !self.unicode => out.push_str(ascii(c)),
                // An accent stands on something of the same text, and not a hundred of them on one letter.
                c if is_invisible(c) || (accents > 0 && out.is_empty()) => out.push('\u{fffd}'),
                _ if accents > ACCENTS => {}
                c => out.push(c),
            }
        }
        out
    }

    /// A health by its shape: not everybody tells colours apart, and not every terminal has them.
    pub(crate) fn mark(self, health: Health) -> &'static str {
        match (health, self.unicode) {
            (Health::Current, true) => "\u{2713}",
            (Health::Current, false) => "+",
            (Health::InProgress, _) => "~",
            (Health::Failed, true) => "\u{2717}",
            (Health::Failed, false) => "!",
            (Health::Terminating, _) => "-",
            (Health::NotFound | Health::Unknown, _) => "?",
        }
    }

    pub(crate) fn twist(self, parent: bool, open: bool) -> &'static str {
        match (parent, open, self.unicode) {
            (false, ..) => " ",
            (true, true, true) => "\u{25be}",
            (true, false, true) => "\u{25b8}",
            (true, true, false) => "v",
            (true, false, false) => ">",
        }
    }

    /// Text in so many columns: what is too long ends in a sign that it goes on.
    pub(crate) fn fit(self, text: &str, columns: usize) -> String {
        if text.width() <= columns {
            return text.to_owned();
        }
        let more = if self.unicode { '\u{2026}' } else { '~' };
        let (mut out, mut used) = (String::new(), 0);
        for character in text.chars() {
            let width = character.width().unwrap_or(0);
            if used + width + 1 > columns {
                break;
            }
            used += width;
            out.push(character);
        }
        if columns > 0 {
            out.push(more);
        }
        out
    }
}

/// What people type in ASCII for it, or a question mark.
fn ascii(character: char) -> &'static str {
    match character {
        '\u{b5}' => "u",
        '\u{b7}' => "-",
        '\u{2022}' => "*",
        '\u{2026}' => "...",
        '\u{2018}' | '\u{2019}' => "'",
        '\u{201c}' | '\u{201d}' => "\"",
        _ => "?",
    }
}

/// Whether a character is not seen itself and yet changes what is: directions, joiners, variations, tags.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL: Abilities = Abilities { unicode: true, colour: true };
    const BARE: Abilities = Abilities { unicode: false, colour: false };

    #[test]
    fn the_environment_says_what_can_be_shown() {
        type Variables<'a> = &'a [(&'a str, &'a str)];
        let table: [(Variables<'_>, bool, bool); 7] = [
            (&[], cfg!(windows), true),
            (&[("LANG", "en_GB.UTF-8")], true, true),
            (&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")], cfg!(windows), true),
            (&[("LANG", "C"), ("LC_CTYPE", "zh_CN.utf8")], true, true),
            (&[("LANG", "C.UTF-8"), ("NO_COLOR", "1")], true, false),
            (&[("LANG", "C.UTF-8"), ("NO_COLOR", "")], true, true),
            (&[("LANG", "C.UTF-8"), ("TERM", "dumb")], false, false),
        ];
        for (variables, unicode, colour) in table {
            let named = |name: &str| variables.iter().find(|(key, _)| *key == name);
            let found = Abilities::of(|name| named(name).map(|(_, value)| (*value).to_owned()));
            assert_eq!(found, Abilities { unicode, colour }, "{variables:?}");
        }
    }

    #[test]
    fn text_that_would_act_is_only_text() {
        assert_eq!(FULL.line("a\u{1b}[2J\u{1b}]0;title\u{7}b\r\n\u{9b}31mc"), "a]0;titleb 31mc");
        assert_eq!(FULL.line("user\u{202e}cod.exe"), "user\u{fffd}cod.exe");
        assert_eq!(BARE.line("3 \u{b5}s \u{4e2d}"), "3 us ?");
    }

    #[test]
    fn what_is_too_long_says_so() {
        assert_eq!(FULL.fit("\u{4e2d}\u{6587}\u{5b57}", 5), "\u{4e2d}\u{6587}\u{2026}");
        assert_eq!(FULL.fit("\u{4e2d}\u{6587}\u{5b57}", 4), "\u{4e2d}\u{2026}");
        assert_eq!(BARE.fit("abcdef", 4), "abc~");
        assert_eq!((FULL.fit("abc", 3).as_str(), FULL.fit("abc", 0).as_str()), ("abc", ""));
    }

    proptest! {
        #[test]
        fn no_text_does_anything(text in any::<String>(), columns in 0..40_usize) {
            for abilities in [FULL, BARE] {
                let line = abilities.line(&text);
                prop_assert!(!line.chars().any(|c| c.is_control() || (!c.is_ascii() && is_invisible(c))), "{line:?}");
                prop_assert!(abilities.unicode || line.is_ascii());
                prop_assert!(abilities.fit(&line, columns).width() <= columns);
            }
        }
    }
}
