//! What a command says while the terminal shows something else: kept to be shown there, and afterwards.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

/// How many lines are kept.
const KEPT: usize = 1000;

/// Lines that somebody will want to read. Clones share them.
#[derive(Clone)]
pub struct Output(Arc<Inner>);

struct Inner {
    lines: Mutex<VecDeque<String>>,
    changed: watch::Sender<()>,
}

impl Default for Output {
    fn default() -> Self {
        Self(Arc::new(Inner { lines: Mutex::default(), changed: watch::Sender::new(()) }))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

impl Output {
    /// Adds what was said, line by line.
    pub fn say(&self, text: &str) {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in text.lines() {
            if lines.len() == KEPT {
                lines.pop_front();
            }
            lines.push_back(line.to_owned());
        }
        drop(lines);
        self.0.changed.send_replace(());
    }

    /// All that is kept.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}
