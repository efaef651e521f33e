//! What the store asks of a file system, so that a test can put one in its place that fails, tears and reorders.
//!
//! Paths and bytes enter; leaves what the system said, word for word. [`System`] is the only one outside of tests.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::{
    data_directory::{Error, failed},
    platform,
};

/// A folder's file system.
pub(in crate::store) trait Files: fmt::Debug + Send + Sync {
    /// A new, empty file that only its owner can read; one of the same name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Handle>>;
    /// An existing file, to be written.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Handle>>;
    /// All bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// How long a file is.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// The files of a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Gives a file another name, in place of whatever had that.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are on the disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub(in crate::store) trait Handle: fmt::Debug + Send {
    /// Writes all of `bytes` at `place`.
    fn write_at(&mut self, bytes: &[u8], place: u64) -> io::Result<()>;
    /// Cuts the file, or lengthens it by zeros.
    fn set_length(&mut self, length: u64) -> io::Result<()>;
    /// Waits until the content is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct System;

impl Files for System {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(platform::private(&mut options).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        platform::sync_directory(folder)
    }
}

impl Handle for File {
    fn write_at(&mut self, bytes: &[u8], place: u64) -> io::Result<()> {
        platform::write_all_at(self, bytes, place)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Gives a finished file its name, and waits until both are on the disk.
pub(super) fn publish(
    files: &dyn Files,
    file: &mut dyn Handle,
    temporary: &Path,
    path: &Path,
) -> Result<(), Error> {
    file.sync().map_err(failed("sync", temporary))?;
    files.rename(temporary, path).map_err(failed("name", path))?;
    let folder = path.parent().unwrap_or(path);
    files.sync_folder(folder).map_err(failed("sync", folder))
}

/// Whether the system said that there is no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
