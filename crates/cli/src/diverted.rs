//! What is said while the terminal shows something else: it is kept, shown there, and printed when the terminal is back.

use std::{
    io::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use windlass_ui::top::Output;

/// How many of the last lines are printed afterwards.
const LAST: usize = 50;

static OUTPUT: Mutex<Option<Output>> = Mutex::new(None);

fn output() -> MutexGuard<'static, Option<Output>> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here until this is dropped nothing is printed.
#[derive(Debug)]
pub(crate) struct Diverted(());

impl Diverted {
    pub(crate) fn begin(kept: Output) -> Self {
        *output() = Some(kept);
        Self(())
    }
}

impl Drop for Diverted {
    fn drop(&mut self) {
        let Some(kept) = output().take() else { return };
        let lines = kept.lines();
        let mut stdout = anstream::stdout().lock();
        for line in &lines[lines.len().saturating_sub(LAST)..] {
            let _ = writeln!(stdout, "{line}");
        }
    }
}

/// Keeps text, if nothing is printed now; whether it did.
pub(crate) fn say(text: &str) -> bool {
    let output = output();
    if let Some(output) = &*output {
        output.say(text);
    }
    output.is_some()
}

/// Whether nothing is printed now.
pub(crate) fn is_on() -> bool {
    output().is_some()
}

/// Where logs go: stderr, unless nothing is printed now.
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !say(&String::from_utf8_lossy(bytes)) {
            anstream::stderr().write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        anstream::stderr().flush()
    }
}
