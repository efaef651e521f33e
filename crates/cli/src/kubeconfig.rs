//! The kubeconfig of a running cluster: a file of our own, never the user's.
//!
//! It holds a key to the cluster. So it is readable by its owner alone from the first moment (on Windows by whom its
//! folder admits), appears under its name only when complete, and goes with the cluster.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use fs_err as fs;

use crate::error::Error;

/// A written kubeconfig, removed when dropped.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    content: String,
}

impl Kubeconfig {
    /// Writes the file. The folder is made if it is missing.
    pub(crate) fn write(path: &Path, content: String) -> Result<Self, Error> {
        let fail = |source| Error::WriteKubeconfig { path: path.to_owned(), source };
        // Relative to the folder in which it was asked for, wherever `kubectl` runs later.
        let path = std::path::absolute(path).map_err(fail)?;
        let folder = path.parent().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        fs::create_dir_all(folder).map_err(fail)?;
        // Born with mode 0600, in the same folder, so that the rename is atomic.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        file.write_all(content.as_bytes()).map_err(fail)?;
        file.persist(&path).map_err(|error| fail(error.error))?;
        Ok(Self { path, content })
    }

    /// Where it is, absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Another run may have replaced it since; then it is that one's.
        if fs::read_to_string(&self.path).is_ok_and(|found| found == self.content) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_read_it_and_it_goes_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/kubeconfig");
        let written = Kubeconfig::write(&path, "a: b\n".into()).unwrap();
        assert_eq!(written.path(), path);
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
            0o600
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "a: b\n");
        drop(written);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_another_run_has_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let first = Kubeconfig::write(&path, "first\n".into()).unwrap();
        let second = Kubeconfig::write(&path, "second\n".into()).unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = Kubeconfig::write(&folder.path().join("file/kubeconfig"), String::new()).unwrap_err();
        assert!(
            error.to_string().contains(&*Path::new("file").join("kubeconfig").to_string_lossy()),
            "{error}"
        );
        assert!(error.hint().is_some());
    }
}
