//! Room that is kept for deletes: a file of zeros, given back piece by piece when the disk is full.
//!
//! Who finds a full disk wants to delete something, and a delete is a write like any other. So some room is taken while
//! there is plenty, and only deletes may use it. It is taken again when there is room for that and a little more; until
//! then the disk counts as full, so that it is not full and not full by turns.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::files::{Files, Handle};

/// Room is given back in pieces of this.
const PIECE: u64 = 64 * 1024;

/// This much more than the reserve must be free before the disk no longer counts as full.
const HEADROOM: u64 = 512 * 1024;

/// The file and how much of it is there.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    size: u64,
    length: u64,
    file: Option<Box<dyn Handle>>,
}

impl Reserve {
    /// The reserve of a folder, as an earlier process left it. Nothing is taken yet.
    pub(super) fn find(files: &dyn Files, folder: &Path, size: u64) -> Self {
        let path = folder.join("reserve");
        let length = files.length(&path).unwrap_or(0).min(size);
        Self { path, size, length, file: None }
    }

    /// Takes what is missing. With `headroom`, a little more must be free besides.
    pub(super) fn take(&mut self, files: &dyn Files, headroom: bool) -> io::Result<()> {
        if self.size == 0 || (self.length == self.size && !headroom) {
            return Ok(());
        }
        let (from, size) = (self.length, self.size);
        let file = self.file(files)?;
        let end = if headroom { size + HEADROOM } else { size };
        let zeros = vec![0; PIECE as usize];
        let mut at = from;
        let mut taken = Ok(());
        while at < end && taken.is_ok() {
            let piece = PIECE.min(end - at);
            taken = file.write_at(&zeros[..piece as usize], at);
            at += if taken.is_ok() { piece } else { 0 };
        }
        // Blocks are found when they are written, not when the system has them in memory.
        taken = taken.and_then(|()| file.sync());
        let kept = if taken.is_ok() { size } else { from };
        let cut = file.set_length(kept);
        self.length = kept;
        taken.and(cut)
    }

    /// Gives back at least so many bytes. Returns whether there was anything to give.
    pub(super) fn release(&mut self, files: &dyn Files, bytes: u64) -> bool {
        if self.length == 0 {
            return false;
        }
        let left = self.length.saturating_sub(bytes.next_multiple_of(PIECE) + PIECE);
        let released = self.file(files).and_then(|file| file.set_length(left));
        match released {
            Ok(()) => self.length = left,
            Err(error) => tracing::warn!(%error, "failed to release the reserve"),
        }
        self.length == left
    }

    fn file(&mut self, files: &dyn Files) -> io::Result<&mut Box<dyn Handle>> {
        let file = match self.file.take() {
            Some(file) => file,
            None if self.length > 0 => files.open(&self.path)?,
            None => files.create(&self.path)?,
        };
        Ok(self.file.insert(file))
    }
}
