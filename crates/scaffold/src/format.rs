//! Rust code as rustfmt would have it. How lines break depends on the names in them, so no template can know.

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// The settings of a project's `rustfmt.toml`.
const SETTINGS: &str = "max_width=110,use_small_heuristics=Max";

/// What was formatted by this process: a step renders a project before and after it, and most files are the same.
static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// The code in rustfmt's form; as it was if there is no rustfmt, or it does not understand the code.
pub(crate) fn rust(code: &str) -> String {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(formatted) = known().get(code) {
        return formatted.clone();
    }
    let formatted = run(code).unwrap_or_else(|| code.to_owned());
    known().insert(code.to_owned(), formatted.clone());
    formatted
}

fn run(code: &str) -> Option<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--quiet", "--config", SETTINGS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let text = code.to_owned();
    // On a thread of its own: a pipe holds less than a long file.
    let writing = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writing.join().ok()?.ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}
