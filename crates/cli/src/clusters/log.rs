//! The log of a cluster in the background: what its process said when it ended.

use std::path::Path;

use fs_err as fs;

/// The last error in a log, as it was printed.
pub(super) fn last_error(log: &Path) -> Option<String> {
    last(log, "error: ")
}

/// Why a process that wrote this log ended, and what to do.
pub(crate) fn last_words(log: &Path) -> (String, Option<String>) {
    let why = last_error(log).or_else(|| {
        let text = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
        text.lines().rev().find(|line| !line.trim().is_empty()).map(ToOwned::to_owned)
    });
    let why = why.unwrap_or_else(|| "it ended without a word".into());
    (why, last(log, "hint: "))
}

fn last(log: &Path, prefix: &str) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().find_map(|line| line.strip_prefix(prefix)).map(ToOwned::to_owned)
}
