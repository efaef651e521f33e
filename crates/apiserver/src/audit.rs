//! The audit log: who asked for what and what became of it, as kube-apiserver writes it.
//!
//! A [`Policy`] decides how much is written of a request; a [`Record`] gathers it while the request is answered, and leaves
//! as a line of JSON for each stage. Without an audit log there is no record, and nothing is gathered.

mod file;
mod policy;
mod record;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use serde_json::Value;

use self::file::File;
pub use self::policy::{Level, Policy, PolicyError, Stage};
pub(crate) use self::{
    policy::{Attributes, Decision, Target},
    record::{Ending, Notes, Received, Record},
};

/// Where the log goes, and how long it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// What is written of which request.
    pub policy: Policy,
    /// The file; `-` is standard output.
    pub path: PathBuf,
    /// How many megabytes a file may have before another one is begun; 0 is 100.
    pub max_size: u64,
    /// How many files from before are kept; 0 is all.
    pub max_backups: usize,
    /// How many days a file from before is kept; 0 is for ever.
    pub max_age: u64,
}

impl AuditOptions {
    /// A log in one file that goes on for ever.
    pub fn new(policy: Policy, path: impl AsRef<Path>) -> Self {
        Self { policy, path: path.as_ref().to_owned(), max_size: 0, max_backups: 0, max_age: 0 }
    }
}

/// An open audit log.
#[derive(Debug)]
pub struct AuditLog {
    policy: Policy,
    file: File,
    events: AtomicU64,
    levels: [AtomicU64; 4],
}

impl AuditLog {
    /// Opens the file, which is made if it is missing and goes on if it is not.
    pub fn open(options: AuditOptions) -> std::io::Result<Self> {
        let file = File::open(&options)?;
        Ok(Self { policy: options.policy, file, events: AtomicU64::new(0), levels: Default::default() })
    }

    pub(crate) fn decide(&self, request: &Attributes<'_>) -> Decision {
        let decision = self.policy.decide(request);
        self.levels[decision.level as usize].fetch_add(1, Ordering::Relaxed);
        decision
    }

    /// How many events were written.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// How many requests there were of each level.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];
        all.into_iter().map(|level| (level.name(), self.levels[level as usize].load(Ordering::Relaxed)))
    }

    /// Writes an event. A disk that does not take it stops nobody, as in the real server's mode `blocking`.
    pub(crate) fn write(&self, event: &Value, now: Timestamp) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.file.write(&format!("{event}\n"), now) {
            tracing::warn!(%error, "failed to write to the audit log");
        }
    }
}
