//! The directory of a durable server: one process at a time, and the few files that must outlive it.
//!
//! ```text
//! DIR/lock                    held while a process uses the directory; names that process
//! DIR/keys/…                  certificates and keys, readable by their owner alone
//! DIR/store/checkpoint-R      every object as of revision R
//! DIR/store/log-R             every change after revision R
//! ```

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::platform;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("failed to {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "the data directory {} is in use by another process{}: stop it, or choose another directory",
        path.display(),
        holder.map_or_else(String::new, |pid| format!(" (pid {pid})"))
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process, if it said so.
        holder: Option<u32>,
    },
    /// A kept file has no content.
    #[error("the file {} is empty: restore it from a copy, or remove it to have a new one made", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A locked data directory. Clones share the lock, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    path: Arc<Path>,
    _lock: Arc<File>,
}

impl DataDirectory {
    /// Takes the directory for this process. It is made if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        // An absolute path still means the same place after a change of the working directory.
        let path = std::path::absolute(path.as_ref()).map_err(failed("find", path.as_ref()))?;
        make_private(&path)?;
        let lock_path = path.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let opened = platform::private(&mut options).open(&lock_path);
        let mut lock = opened.map_err(failed("open", &lock_path))?;
        match try_for_a_moment(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { holder: holder(&mut lock), path }),
            Err(TryLockError::Error(source)) => {
                return Err(Error::Io { action: "lock", path: lock_path, source });
            }
        }
        // The lock is what counts. On a full disk the file may not take the number, and reads are served all the same.
        if let Err(error) = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())) {
            tracing::warn!(%error, file = %lock_path.display(), "failed to write which process holds the lock");
        }
        Ok(Self { path: path.into(), _lock: Arc::new(lock) })
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory inside this one, made if it is missing.
    pub fn subdirectory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        make_private(&path)?;
        Ok(path)
    }

    /// Where the keys are, if there are any.
    pub(crate) fn keys(&self) -> Result<Option<PathBuf>, Error> {
        let folder = self.path.join("keys");
        match fs::read_dir(&folder) {
            Ok(mut files) => Ok(files.next().map(|_| folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { action: "list", path: folder, source }),
        }
    }

    /// The content of a small file that is made once and then kept for good: a certificate or a key.
    ///
    /// The file appears whole or not at all, on the disk before this returns, readable by its owner alone.
    pub fn keep<E: From<Error>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        let folder = self.subdirectory("keys")?;
        let path = folder.join(name);
        match fs::read_to_string(&path) {
            Ok(content) if content.is_empty() => Err(Error::Empty { path }.into()),
            Ok(content) => Ok(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let content = make()?;
                write_whole(&path, content.as_bytes())?;
                Ok(content)
            }
            Err(source) => Err(Error::Io { action: "read", path, source }.into()),
        }
    }
}

/// Says what was tried on which path.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

/// A process that is just ending, or one that is just being started by this one, may hold the lock a little longer.
fn try_for_a_moment(lock: &File) -> Result<(), TryLockError> {
    for _ in 0..50 {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
    lock.try_lock()
}

fn make_private(path: &Path) -> Result<(), Error> {
    platform::make_private_directory(path).map_err(failed("make the directory", path))
}

/// Who holds the lock. Windows lets nobody else read a locked file, so there it may stay unknown.
fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// A new file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    platform::private(&mut options).open(path).map_err(failed("create", path))
}

/// Gives a finished file its name, and waits until both are on the disk.
pub(crate) fn publish(file: &File, temporary: &Path, path: &Path) -> Result<(), Error> {
    file.sync_all().map_err(failed("sync", temporary))?;
    fs::rename(temporary, path).map_err(failed("name", path))?;
    sync_directory(path)
}

/// Waits until the directory entry of `path` is on the disk.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    platform::sync_directory(folder).map_err(failed("sync", folder))
}

fn write_whole(path: &Path, content: &[u8]) -> Result<(), Error> {
    let temporary = path.with_extension("tmp");
    let mut file = create_private(&temporary)?;
    file.write_all(content).map_err(failed("write", &temporary))?;
    publish(&file, &temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever may do anything with a file.
    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
    }

    #[test]
    fn a_directory_serves_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDirectory::open(folder.path().join("new")).unwrap();
        let error = DataDirectory::open(first.path()).unwrap_err().to_string();
        assert!(error.contains("in use by another process"), "{error}");
        let pid = format!("(pid {})", std::process::id());
        assert!(error.contains(&pid) || cfg!(windows), "{error}");
        let path = first.path().to_owned();
        drop(first);
        DataDirectory::open(path).unwrap();
    }

    #[test]
    fn a_kept_file_is_made_once_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(folder.path()).unwrap();
        let one = directory.keep::<Error>("a.key", || Ok("first".into())).unwrap();
        let two = directory.keep::<Error>("a.key", || Ok("second".into())).unwrap();
        assert_eq!((one.as_str(), two.as_str()), ("first", "first"));
        let path = folder.path().join("keys/a.key");
        #[cfg(unix)]
        assert_eq!((mode(&path), mode(&folder.path().join("keys"))), (0o600, 0o700));
        fs::write(&path, "").unwrap();
        let error = directory.keep::<Error>("a.key", || Ok("third".into())).unwrap_err().to_string();
        assert!(error.contains("a.key is empty"), "{error}");
    }

    #[test]
    fn a_place_that_is_no_directory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = DataDirectory::open(&file).unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()), "{error}");
    }
}
