//! Writing layouts. A directory appears as a whole: somebody who reads it meanwhile sees the old one or the new one.

use std::{io::Write, path::Path};

use fs_err as fs;

use super::{Error, Layout, VERSION};
use crate::{archive::Archive, oci::encode};

impl Layout {
    /// Writes the layout as a directory, in the place of a layout that is there. Anything else that is there stays, and is
    /// an error.
    pub fn write_directory(&self, path: &Path) -> Result<(), Error> {
        let there = path.exists();
        let empty = there && path.is_dir() && fs::read_dir(path)?.next().is_none();
        if there && !empty && !path.join("oci-layout").is_file() {
            return Err(Error::NotALayout(path.to_owned()));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let written = self.write_files(&unfinished).and_then(|()| {
            if there {
                fs::remove_dir_all(path)?;
            }
            Ok(fs::rename(&unfinished, path)?)
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }

    fn write_files(&self, path: &Path) -> Result<(), Error> {
        let blobs = path.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        for digest in self.blobs.keys() {
            fs::write(blobs.join(digest.hex()), self.blob(digest)?)?;
        }
        fs::write(path.join("index.json"), encode(&self.index))?;
        fs::write(path.join("oci-layout"), VERSION)?;
        Ok(())
    }

    /// Writes the layout as a tar file.
    pub fn write_archive(&self, out: impl Write) -> Result<(), Error> {
        let mut archive = Archive::new(out);
        archive.add("oci-layout", VERSION)?;
        archive.add("index.json", &encode(&self.index))?;
        for digest in self.blobs.keys() {
            archive.add(&format!("blobs/sha256/{}", digest.hex()), &self.blob(digest)?)?;
        }
        Ok(archive.finish()?)
    }
}
