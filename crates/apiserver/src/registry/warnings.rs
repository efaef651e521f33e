//! What a client is told besides its answer: warnings enter, as many leave as the real server would send.
//!
//! All of them together are 4,096 characters at most. When they would be more, each is cut to 256, and what comes after
//! the limit is left out.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::audit::Notes;

/// How many characters are sent before warnings are cut, and left out once they are.
const TOTAL: usize = 4096;

/// How long a warning is that was cut.
const CUT: usize = 256;

/// What a client is told besides its answer. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    recorded: Arc<Mutex<Recorded>>,
    /// What the audit log is told.
    audit: Notes,
}

#[derive(Debug, Default)]
struct Recorded {
    texts: Vec<String>,
    known: BTreeSet<String>,
    characters: usize,
    cutting: bool,
}

impl Warnings {
    /// The same list, whose writers can also speak to the audit log.
    pub(crate) fn with_audit(&self, audit: Notes) -> Self {
        Self { recorded: Arc::clone(&self.recorded), audit }
    }

    /// What the audit log is told of the request.
    pub(crate) fn audit(&self) -> &Notes {
        &self.audit
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning; what was said already is not said again.
    pub fn add(&self, text: &str) {
        self.recorded().add(text);
    }

    /// Adds warnings that come before those that were said so far.
    pub(crate) fn add_first(&self, texts: &[String]) {
        let mut recorded = self.recorded();
        let later = std::mem::take(&mut *recorded);
        for text in texts.iter().chain(&later.texts) {
            recorded.add(text);
        }
    }

    /// Takes what was said so far.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.recorded()).texts
    }
}

impl Recorded {
    fn add(&mut self, text: &str) {
        let full = self.cutting && self.characters >= TOTAL;
        if full || text.is_empty() || !self.known.insert(text.to_owned()) {
            return;
        }
        self.texts.push(text.to_owned());
        self.characters += text.chars().count();
        if self.cutting {
            self.cut_last();
        } else if self.characters > TOTAL {
            self.cutting = true;
            let texts = std::mem::take(&mut self.texts);
            self.characters = 0;
            for text in texts {
                self.characters += text.chars().count();
                self.texts.push(text);
                self.cut_last();
            }
        }
    }

    fn cut_last(&mut self) {
        let Some(text) = self.texts.last_mut() else { return };
        if let Some((end, _)) = text.char_indices().nth(CUT) {
            self.characters -= text[end..].chars().count();
            text.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        let warnings = Warnings::default();
        texts.into_iter().for_each(|text| warnings.add(&text));
        warnings.take()
    }

    #[test]
    fn few_warnings_are_sent_as_they_are() {
        let long = "ü".repeat(4000);
        assert_eq!(sent([long.clone(), "b".into(), long.clone(), String::new()]), [long, "b".to_owned()]);
    }

    #[test]
    fn warnings_that_are_too_many_are_cut_and_then_left_out() {
        let texts = sent((0..200_000).map(|number| format!("{number:06}{}", "ü".repeat(1000))));
        assert_eq!(texts.len(), 16);
        assert!(texts.iter().all(|text| text.chars().count() == 256), "{texts:?}");
        assert!(texts[15].starts_with("000015"));
        let short = sent((0..200_000).map(|number| format!("{number:08}")));
        assert_eq!((short.len(), short.concat().len()), (512 + 1, 4096 + 8));
    }

    #[test]
    fn one_warning_that_is_too_long_is_cut() {
        assert_eq!(sent(["x".repeat(5000), "y".repeat(300)]), ["x".repeat(256), "y".repeat(256)]);
    }

    #[test]
    fn what_was_said_first_comes_first() {
        let warnings = Warnings::default();
        warnings.add("late");
        warnings.add_first(&["early".to_owned(), "late".to_owned()]);
        assert_eq!(warnings.take(), ["early", "late"]);
    }
}
