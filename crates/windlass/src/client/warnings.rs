//! What the API server warns of: a deprecated version, a field that is not in the schema, a policy that only warns.
//!
//! Enters: the headers of every answer. Leaves: one line in the log for each text, as client-go's users know it; the same
//! text again says nothing new, and an operator that writes a thousand objects would say it a thousand times.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, header::WARNING, request::Parts};

/// How many different texts are remembered. Some contain a name, so there is no end of them; after that many, they are
/// logged at the level for debugging.
const REMEMBERED: usize = 1000;

/// The texts that were logged already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    known: Arc<Mutex<HashSet<Box<str>>>>,
    silent: bool,
}

impl Warnings {
    /// Logs nothing.
    pub(crate) fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// Logs what an answer warns of, unless that was logged before.
    pub(super) fn log(&self, request: &Parts, answer: &HeaderMap) {
        if self.silent {
            return;
        }
        for value in answer.get_all(WARNING) {
            let Ok(value) = value.to_str() else { continue };
            for text in texts(value) {
                self.log_one(request, text);
            }
        }
    }

    fn log_one(&self, request: &Parts, warning: String) {
        let (method, path) = (&request.method, request.uri.path());
        match self.is_new(&warning) {
            Some(true) => tracing::warn!(%method, path, "the API server warns: {warning}"),
            Some(false) => {}
            None => tracing::debug!(%method, path, "the API server warns: {warning}"),
        }
    }

    /// `None` when nothing more is remembered.
    fn is_new(&self, warning: &str) -> Option<bool> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(warning) {
            return Some(false);
        }
        (known.len() < REMEMBERED).then(|| known.insert(warning.into()))
    }
}

/// The texts of a header: `299 - "first", 299 host "second"`, each perhaps with a date behind it. Only code 299 is
/// what Kubernetes sends; proxies on the way have others of their own.
fn texts(mut rest: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((before, behind)) = rest.split_once('"') {
        let Some((text, after)) = unquote(behind) else { break };
        if before.trim_start_matches([',', ' ']).starts_with("299 ") {
            texts.push(text);
        }
        // The date, also quoted, belongs to the text before it.
        let dated = after.strip_prefix(" \"").and_then(unquote);
        rest = dated.map_or(after, |(_, after)| after);
    }
    texts
}

/// The text up to its closing quote, and what follows that.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => text.push(characters.next()?.1),
            _ => text.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_is_taken_apart_into_its_texts() {
        let cases: [(&str, &[&str]); 8] = [
            (r#"299 - "unknown field \"spec.replica\"""#, &[r#"unknown field "spec.replica""#]),
            (r#"299 - "one", 299 - "two, with a comma""#, &["one", "two, with a comma"]),
            (r#"299 - "dated" "Wed, 18 Nov 2026 08:00:00 GMT", 299 - "next""#, &["dated", "next"]),
            (r#"110 proxy "Response is stale", 299 - "ours""#, &["ours"]),
            (r#"299 - "a backslash \\""#, &[r"a backslash \"]),
            (r#"299 - "never closed"#, &[]),
            ("299 - unquoted", &[]),
            ("", &[]),
        ];
        for (header, expected) in cases {
            assert_eq!(texts(header), expected, "{header}");
        }
    }

    #[test]
    fn each_text_is_new_once_and_only_so_many_are_remembered() {
        let warnings = Warnings::default();
        assert_eq!(warnings.is_new("a"), Some(true));
        assert_eq!(warnings.is_new("a"), Some(false));
        for number in 0..REMEMBERED {
            warnings.is_new(&number.to_string());
        }
        assert_eq!(warnings.is_new("one more"), None);
        assert_eq!(warnings.is_new("a"), Some(false));
    }

    proptest! {
        #[test]
        fn what_was_quoted_comes_back(written in prop::collection::vec("[ -~]{0,20}", 0..4)) {
            let quote = |text: &String| text.replace('\\', r"\\").replace('"', "\\\"");
            let header: Vec<_> = written.iter().map(|text| format!("299 - \"{}\"", quote(text))).collect();
            prop_assert_eq!(texts(&header.join(", ")), written);
        }

        #[test]
        fn no_header_ends_the_process(header in "[ -~]{0,60}") {
            texts(&header);
        }
    }
}
