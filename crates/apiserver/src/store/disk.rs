//! Durability: what is committed reaches a file before anybody is told of it.
//!
//! All objects live in memory, so the disk is never read while serving. It has one job: to have every
//! acknowledged write after a `kill -9`. That is an append-only log of changes, and now and then a
//! checkpoint of the whole state, after which the older log is removed.
//!
//! A database (redb, fjall) would keep a second copy of everything in pages or tables of its own, pay for
//! look-ups that never happen, and know no history; the log *is* the history, so watches resume across a
//! restart, damage is known to the byte, and 32 writers that commit at once share one `fdatasync`.
//!
//! ```text
//! commit (memory) -> queue -> log thread: encode, write, fdatasync -> durable revision -> answers, watchers
//! ```
//!
//! # Guarantees
//!
//! - A revision is reported as durable only when its record and all before it are on the disk (or, if so asked for
//!   in [`DiskOptions`], with the system).
//! - Answers and watchers wait for that, so nobody has seen what a crash could take back.
//! - What the disk does not take never happened: the store goes back to what the disk has, those who asked for it are
//!   told, and reads go on. On a full disk deletes go on, too. See `writer`.
//! - Every acknowledged write is there after a restart. Of those that were reported as failed, a restart may bring back
//!   the first few, in their order and only while nothing was acknowledged after them; never one without those before
//!   it. A revision that anybody has seen is never used for anything else.
//! - What does not check is refused with its place, never skipped. Only the unfinished end of the last log
//!   is cut off, and that was never acknowledged.

mod backup;
mod checkpoint;
// Its processes are started by a POSIX shell, which limits what they may write.
#[cfg(test)]
#[cfg(unix)]
mod crash;
mod encryption;
#[cfg(test)]
mod faults;
mod files;
mod frame;
mod log;
mod record;
mod recover;
mod reserve;
#[cfg(test)]
mod tests;
mod writer;

use std::path::PathBuf;

pub use self::{
    backup::{BackupError, Copied, backup, restore},
    encryption::{Encryption, EncryptionError},
};
pub(super) use self::{
    files::{Files, System},
    log::{Log, Pending},
    record::{Record, Seal},
    recover::recover,
};
use crate::data_directory;

/// How a store is kept on the disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskOptions {
    /// How many changes of each table can be resumed from.
    pub history: usize,
    /// How long the log may grow, in bytes, before a checkpoint replaces it. It may also grow to twice the size
    /// of the last checkpoint, so that a large store is not written again and again.
    pub checkpoint_after: u64,
    /// Whether a write is acknowledged only when the disk has it. Without, the system has it, and it survives the end
    /// of the process, `kill -9` included, but not that of the machine.
    pub sync: bool,
    /// How many bytes of the disk are kept free for deletes, should it become full.
    pub reserve: u64,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            history: super::HISTORY,
            checkpoint_after: 32 * 1024 * 1024,
            sync: true,
            reserve: 8 * 1024 * 1024,
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A file or the directory could not be used.
    #[error(transparent)]
    Directory(#[from] data_directory::Error),
    /// A file was written by a later version.
    #[error(
        "{} has format {found}, and this version of windlass reads formats up to {}: use the version that \
         wrote it, or another data directory",
        path.display(),
        frame::FORMAT
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A log holds something that was not written to it.
    #[error(
        "{} is damaged at byte {offset}: {what}. Nothing was changed. Restore the data directory from a copy; or, to \
         keep what was written up to revision {revision} and lose the rest, cut the file there (truncate -s {offset} \
         FILE) and remove any later log-* file beside it",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the first bad record begins.
        offset: usize,
        /// What is wrong.
        what: String,
        /// The last revision that is good.
        revision: u64,
    },
    /// A whole file cannot be used.
    #[error(
        "{} is damaged at byte {offset}: {what}. Nothing was changed. Restore the data directory from a copy, or begin \
         anew with an empty one",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// A file is not there.
    #[error(
        "{} is missing: without it the changes after revision {revision} are unknown. Restore the data directory from \
         a copy, or begin anew with an empty one",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// What is known.
        revision: u64,
    },
    /// There are keys, but nothing that they belong to.
    #[error(
        "{} holds no log, although {} holds keys: this is not a new data directory, and its objects are missing. Restore \
         the data directory from a copy; or, to begin anew and lose all objects, remove {}",
        store.display(),
        keys.display(),
        keys.display()
    )]
    NoLog {
        /// Where the log should be.
        store: PathBuf,
        /// Where the keys are.
        keys: PathBuf,
    },
    /// An object cannot be decrypted.
    #[error(
        "{} has {what}, which cannot be read: {why}. Nothing was changed. Start with the --encryption-provider-config \
         with which it was written",
        path.display()
    )]
    Sealed {
        /// The file.
        path: PathBuf,
        /// The object.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// The thread that writes the log could not be started.
    #[error("failed to start the log's thread")]
    Thread(#[source] std::io::Error),
}

/// The disk does not take what is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiskFailed(pub(super) std::sync::Arc<str>);

/// Whether a file is a log or a checkpoint.
pub(super) fn is_kept(path: &std::path::Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.ends_with(".tmp") && (name.starts_with("log-") || name.starts_with("checkpoint-"))
}
