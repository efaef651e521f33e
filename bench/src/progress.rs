//! What an operator tells its measurer: when it has seen every object, and in which order.
//!
//! Leaves lines on stdout: `connected` (from those that are asked what a cache costs), `reconciled N` once N objects have
//! been reconciled, `order NAME …` at the end.

use std::{
    collections::BTreeSet,
    io::Write,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result};

/// The objects that were reconciled, in the order of their first time.
pub struct Progress {
    wanted: usize,
    seen: Mutex<(BTreeSet<String>, Vec<String>)>,
}

impl Progress {
    /// How many objects there will be is in `BENCH_OBJECTS`.
    pub fn from_env() -> Result<Self> {
        let wanted = std::env::var("BENCH_OBJECTS").context("failed to read BENCH_OBJECTS")?;
        let wanted = wanted.parse().with_context(|| format!("failed to read BENCH_OBJECTS={wanted}"))?;
        Ok(Self { wanted, seen: Mutex::default() })
    }

    /// Says that there is a client, and that nothing has been cached yet.
    pub fn connected(&self) {
        say("connected");
    }

    /// Notes that an object has been reconciled to the end.
    pub fn reconciled(&self, name: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.0.contains(name) {
            seen.0.insert(name.to_owned());
            seen.1.push(name.to_owned());
            if seen.1.len() == self.wanted {
                say(&format!("reconciled {}", self.wanted));
            }
        }
    }

    /// Says the order.
    pub fn finish(&self) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        say(&format!("order {}", seen.1.join(" ")));
    }
}

/// Nothing can be done about a measurer that is gone.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Resolves when the process is asked to end.
pub async fn terminated() {
    #[cfg(unix)]
    let heard = async {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?.recv().await;
        Ok::<_, std::io::Error>(())
    };
    #[cfg(not(unix))]
    let heard = tokio::signal::ctrl_c();
    if heard.await.is_err() {
        // Without the handler the signal ends the process by itself.
        std::future::pending::<()>().await;
    }
}
