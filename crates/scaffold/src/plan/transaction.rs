//! Carrying out a plan as a whole: everything new is written beside the project first, then put in place by renames; a
//! failure on the way puts back what was there.
//!
//! The renames take milliseconds. Should the process die between them, a journal tells the next command what to put back.

use std::{
    io,
    path::{Path, PathBuf},
};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Change, Plan};
use crate::error::Error;

/// Where a change waits until all of it can be put in place.
const PENDING: &str = ".windlass/pending";
const JOURNAL: &str = "journal.json";

/// What the next command must know about a change that did not end.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    /// Files in the order in which they are put in place, and whether there was one before.
    files: Vec<(String, bool)>,
}

impl Plan {
    /// Makes all changes, or none. `interrupted` is asked until the first file is put in place; after that it is quicker
    /// to end than to go back.
    pub fn carry_out(&self, interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let made_root = !self.root.exists();
        let made_scratch = !self.root.join(".windlass").exists();
        let result = self.attempt(interrupted);
        if result.is_err() && made_root {
            let _ = fs::remove_dir_all(&self.root);
        } else if result.is_err() && made_scratch {
            // Only if it is empty.
            let _ = fs::remove_dir(self.root.join(".windlass"));
        }
        result
    }

    fn attempt(&self, interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        let pending = Pending::new(&self.root)?;
        for (at, change) in self.changes.iter().enumerate() {
            if interrupted() {
                pending.discard();
                return Err(Error::Interrupted);
            }
            if let Some(content) = change.content() {
                pending.stage(at, change.path(), content)?;
            }
        }
        pending.announce(&self.changes)?;
        if interrupted() {
            pending.discard();
            return Err(Error::Interrupted);
        }
        for (at, change) in self.changes.iter().enumerate() {
            if let Err(source) = pending.place(at, change) {
                let path = self.root.join(change.path());
                undo(&self.root)?;
                return Err(Error::Write { path, source });
            }
        }
        pending.discard();
        Ok(())
    }
}

#[cfg(test)]
impl Plan {
    /// Dies when so many files are in place.
    pub(super) fn carry_out_until(&self, last: usize) {
        let pending = Pending::new(&self.root).unwrap();
        for (at, change) in self.changes.iter().enumerate() {
            if let Some(content) = change.content() {
                pending.stage(at, change.path(), content).unwrap();
            }
        }
        pending.announce(&self.changes).unwrap();
        for (at, change) in self.changes.iter().enumerate().take(last) {
            pending.place(at, change).unwrap();
        }
    }
}

struct Pending<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Pending<'a> {
    fn new(root: &'a Path) -> Result<Self, Error> {
        recover(root)?;
        let folder = root.join(PENDING);
        let failed = |source| Error::Write { path: root.to_owned(), source };
        for part in ["new", "old"] {
            if let Err(source) = fs::create_dir_all(folder.join(part)) {
                let _ = fs::remove_dir_all(&folder);
                return Err(failed(source));
            }
        }
        Ok(Self { root, folder })
    }

    fn new_file(&self, at: usize) -> PathBuf {
        self.folder.join("new").join(at.to_string())
    }

    fn stage(&self, at: usize, path: &str, content: &str) -> Result<(), Error> {
        self.whole(fs::write(self.new_file(at), content), &self.root.join(path))
    }

    fn announce(&self, changes: &[Change]) -> Result<(), Error> {
        let files =
            changes.iter().map(|change| (change.path().to_owned(), self.root.join(change.path()).exists()));
        let journal =
            serde_json::to_string(&Journal { files: files.collect() }).expect("a journal must serialise");
        // It appears complete or not at all.
        let (draft, place) = (self.folder.join("journal"), self.folder.join(JOURNAL));
        let written = fs::write(&draft, journal).and_then(|()| fs::rename(&draft, &place));
        self.whole(written, &place)
    }

    fn whole(&self, result: io::Result<()>, path: &Path) -> Result<(), Error> {
        result.map_err(|source| {
            self.discard();
            Error::Write { path: path.to_owned(), source }
        })
    }

    fn place(&self, at: usize, change: &Change) -> io::Result<()> {
        let target = self.root.join(change.path());
        if target.exists() {
            fs::rename(&target, old_file(&self.folder, at))?;
        }
        match change {
            Change::Create { .. } | Change::Replace { .. } => {
                if let Some(folder) = target.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::rename(self.new_file(at), &target)
            }
            Change::Remove { .. } => {
                prune(self.root, &target);
                Ok(())
            }
        }
    }

    /// Forgets the change: it is complete, or has not begun.
    fn discard(&self) {
        // The journal first: without it nothing is put back.
        let _ = fs::remove_file(self.folder.join(JOURNAL));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn old_file(pending: &Path, at: usize) -> PathBuf {
    pending.join("old").join(at.to_string())
}

/// Removes the folders above a file that are empty now.
fn prune(root: &Path, file: &Path) {
    for folder in file.ancestors().skip(1).take_while(|folder| *folder != root) {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Puts back what a change has replaced that was cut off, by a crash or a failure. Without one, does nothing.
pub fn recover(root: &Path) -> Result<(), Error> {
    let pending = root.join(PENDING);
    if pending.join(JOURNAL).exists() {
        return undo(root);
    }
    if pending.exists() {
        // It was cut off before anything was put in place.
        fs::remove_dir_all(&pending).map_err(|source| Error::Undo { path: pending, source })?;
    }
    Ok(())
}

fn undo(root: &Path) -> Result<(), Error> {
    let pending = root.join(PENDING);
    let failed = |source| Error::Undo { path: pending.clone(), source };
    let text = fs::read_to_string(pending.join(JOURNAL)).map_err(failed)?;
    let journal: Journal = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    for (at, (path, existed)) in journal.files.iter().enumerate().rev() {
        let (target, old) = (root.join(path), old_file(&pending, at));
        if old.exists() {
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(failed)?;
            }
            fs::rename(&old, &target).map_err(failed)?;
        } else if !existed && target.exists() {
            fs::remove_file(&target).map_err(failed)?;
            prune(root, &target);
        } else if !existed {
            prune(root, &target);
        }
    }
    fs::remove_file(pending.join(JOURNAL)).map_err(failed)?;
    fs::remove_dir_all(&pending).map_err(failed)
}
