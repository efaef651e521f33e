//! A backup: every object of a data directory as of one revision, in one file.
//!
//! The file is a checkpoint. It is made from the files of the data directory alone, so it does not matter whether a server
//! runs on them: the log is only ever appended to, and a write is acknowledged when it is in there, so whatever prefix of
//! it is read is the store as it was at one moment, and nothing that was acknowledged before is missing. A backup
//! appears whole or not at all, and so does a directory that is made from one.
//!
//! What is encrypted in the data directory is so in the backup. Keys of the cluster are in neither: a restored cluster has
//! an authority of its own, and trusts no token of the one that was backed up.

use std::path::{Path, PathBuf};

use super::{
    super::state::State,
    DiskError,
    checkpoint::{self, Capture},
    files::{Files, System},
    frame::{self, Kind},
    log,
    record::Seal,
    recover,
};
use crate::{data_directory, platform};

/// So often the files are read again because a server has replaced them meanwhile.
const ATTEMPTS: usize = 5;

/// What was backed up or restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// As of which revision.
    pub revision: u64,
    /// How many objects.
    pub objects: usize,
}

/// Why there is no backup, or no restored data directory. Nothing is half done.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to back up.
    #[error("{} holds no objects: it is not the data directory of a cluster", path.display())]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
    /// The data directory cannot be read.
    #[error(transparent)]
    Read(Box<DiskError>),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] data_directory::Error),
    /// The place is taken.
    #[error("{} exists already, and is not replaced", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a backup of a cluster: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file was written by a later version.
    #[error(
        "the backup {} has format {found}, and this version of windlass reads formats up to {}: use the version that \
         wrote it",
        path.display(),
        frame::FORMAT
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The file is not what was written.
    #[error("the backup {} is damaged at byte {offset}: {what}. Nothing was restored; use another copy of it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// What is wrong.
        what: String,
    },
}

/// Writes what a data directory holds, in use or not, to a new file that only its owner can read.
pub fn backup(directory: &Path, file: &Path) -> Result<Copied, BackupError> {
    if !directory.is_dir() {
        return Err(BackupError::Nothing { path: directory.into() });
    }
    if file.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { path: file.into() });
    }
    // The folder of a file has to be known: its entry there is synced, too.
    let file = std::path::absolute(file).map_err(data_directory::failed("find", file))?;
    backup_on(&System, &directory.join("store"), &file)
}

/// Makes the store of a data directory that is not there yet from a backup.
pub fn restore(file: &Path, directory: &Path) -> Result<Copied, BackupError> {
    if directory.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { path: directory.into() });
    }
    let folder = directory.join("store");
    let state = read(&System, file)?;
    platform::make_private_directory(&folder)
        .map_err(data_directory::failed("make the directory", &folder))?;
    write(&System, &state, &folder)
}

fn backup_on(files: &dyn Files, folder: &Path, file: &Path) -> Result<Copied, BackupError> {
    let capture = Capture::of(&snapshot(files, folder)?);
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = file.with_file_name(name);
    let written = capture.write_to(files, &temporary, file);
    if written.is_err() {
        // It may have its name already, and not be known to be on the disk.
        let _ = files.remove(&temporary);
        let _ = files.remove(file);
    }
    written?;
    Ok(Copied { revision: capture.revision, objects: capture.len() })
}

/// The store as of the last revision that its files have.
fn snapshot(files: &dyn Files, folder: &Path) -> Result<State, BackupError> {
    let mut attempt = 1;
    loop {
        let mut state = State { seal: Seal::Untouched, ..State::new(1) };
        match recover::read_only(files, folder, &mut state) {
            Ok(true) => return Ok(state),
            Ok(false) => {
                return Err(BackupError::Nothing { path: folder.parent().unwrap_or(folder).into() });
            }
            // A server may have put a checkpoint in the place of a log, or be in the middle of a write.
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(BackupError::Read(Box::new(error))),
        }
    }
}

/// All of a backup, once it has been seen to be whole.
fn read(files: &dyn Files, path: &Path) -> Result<State, BackupError> {
    let content = files.read(path).map_err(data_directory::failed("read", path))?;
    let foreign = |what: &str| BackupError::Foreign { path: path.into(), what: what.into() };
    let revision = frame::read_header(&content, Kind::Checkpoint).map_err(|error| match error {
        frame::BadHeader::Newer(found) => BackupError::Newer { path: path.into(), found },
        frame::BadHeader::Damaged(what) => foreign(what),
    })?;
    drop(content);
    let mut state = State { seal: Seal::Untouched, ..State::new(1) };
    state.begin_at(revision);
    let take = |record| {
        state.restore(record);
        Ok(())
    };
    checkpoint::read(files, path, take).map_err(|error| match error {
        DiskError::Unreadable { path, offset, what } => BackupError::Damaged { path, offset, what },
        DiskError::Newer { path, found } => BackupError::Newer { path, found },
        error => BackupError::Read(Box::new(error)),
    })?;
    Ok(state)
}

/// Puts a store into an empty folder: the checkpoint, and the log that goes on from it.
fn write(files: &dyn Files, state: &State, folder: &Path) -> Result<Copied, BackupError> {
    let capture = Capture::of(state);
    capture.write(files, folder)?;
    log::create(files, folder, capture.revision).map_err(|error| BackupError::Read(Box::new(error)))?;
    Ok(Copied { revision: capture.revision, objects: capture.len() })
}

#[cfg(test)]
mod tests;
