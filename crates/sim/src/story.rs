//! What happened on a day, in order of time, and what of it is printed.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The most lines that are printed: beginning and end are what one looks at.
const MOST_LINES: usize = 70;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    at: Duration,
    actor: &'static str,
    text: String,
    /// How often it happened in a row.
    times: usize,
}

/// The record of a day. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    began: Instant,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Story {
    /// A story that begins now.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    /// How long the day has lasted.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn tell(&self, actor: &'static str, text: impl Into<String>) {
        let (at, text) = (self.now(), text.into());
        let mut lines = self.lock();
        match lines.last_mut() {
            Some(last) if last.actor == actor && last.text == text => last.times += 1,
            _ => lines.push(Line { at, actor, text, times: 1 }),
        }
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines as they are printed.
pub(crate) fn printed(lines: &[Line]) -> String {
    let mut text = String::new();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    for (index, line) in lines.iter().enumerate() {
        if left_out > 0 && (MOST_LINES / 2..MOST_LINES / 2 + left_out).contains(&index) {
            if index == MOST_LINES / 2 {
                let _ = writeln!(text, "  … {left_out} more lines …");
            }
            continue;
        }
        let times = if line.times > 1 { format!(" ({} times)", line.times) } else { String::new() };
        let _ = writeln!(text, "{:>9.3} s  {:<9} {}{times}", line.at.as_secs_f64(), line.actor, line.text);
    }
    text
}
