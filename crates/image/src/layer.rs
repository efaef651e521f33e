//! Layers: trees of files, as tar files and compressed.
//!
//! Enter files; leave bytes that depend on nothing else. Entries are in the order of their paths, belong to root and have
//! one time; gzip writes neither a time nor a name.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A layer under construction. Parent directories appear by themselves.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Directory { mode: u32 },
    File { content: Bytes, mode: u32 },
    Symlink { target: String },
}

impl Layer {
    /// Adds a directory.
    #[must_use]
    pub fn directory(self, path: &str, mode: u32) -> Self {
        self.insert(path, Entry::Directory { mode })
    }

    /// Adds a file.
    #[must_use]
    pub fn file(self, path: &str, content: impl Into<Bytes>, mode: u32) -> Self {
        let content = content.into();
        self.insert(path, Entry::File { content, mode })
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.insert(path, Entry::Symlink { target: target.to_owned() })
    }

    fn insert(mut self, path: &str, entry: Entry) -> Self {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/') {
            self.entries.entry(path[..end].to_owned()).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// The layer as a tar file. `time` is every file's, in seconds since 1970.
    pub fn to_tar(&self, time: u64) -> io::Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = header(time, 0o755, 0);
            match entry {
                Entry::Directory { mode } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::File { content, mode } => {
                    header.set_mode(*mode);
                    header.set_size(content.len() as u64);
                    tar.append_data(&mut header, path, content.as_ref())?;
                }
                Entry::Symlink { target } => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    tar.append_link(&mut header, path, target)?;
                }
            }
        }
        tar.into_inner()
    }
}

/// A tar header that says nothing of who wrote it and when.
pub(crate) fn header(time: u64, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(mode);
    header.set_size(size as u64);
    header
}

/// Compresses with gzip, without a time and a name. The compressor is written in Rust and takes no other decisions on one
/// processor than on another.
pub(crate) fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    // 255: no system in particular.
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    encoder.write_all(content)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_order_of_insertion_changes_nothing() {
        let one = Layer::default().file("b/c", "1", 0o644).file("a", "2", 0o755).symlink("z", "a");
        let other = Layer::default().symlink("z", "a").file("/a", "2", 0o755).file("b/c", "1", 0o644);
        assert_eq!(one.to_tar(0).unwrap(), other.to_tar(0).unwrap());
    }

    #[test]
    fn entries_are_sorted_belong_to_root_and_have_one_time() {
        let tar = Layer::default()
            .file("etc/passwd", "x", 0o644)
            .file("bin", "y", 0o755)
            .directory("tmp", 0o1777)
            .to_tar(86_400)
            .unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(
                    (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
                    (0, 0, 86_400)
                );
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let expected = [("bin", 0o755), ("etc/", 0o755), ("etc/passwd", 0o644), ("tmp/", 0o1777)];
        assert_eq!(seen, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn gzip_says_neither_when_nor_what() {
        let packed = compress(b"content").unwrap();
        // RFC 1952: flags 0 (no name), time 0, system 255.
        assert_eq!((packed[3], &packed[4..8], packed[9]), (0, [0; 4].as_slice(), 255));
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(content in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(compress(&content).unwrap().as_slice()).read_to_end(&mut back).unwrap();
            prop_assert_eq!(back, content);
        }

        #[test]
        fn every_file_comes_back(files in proptest::collection::btree_map("[a-z]{1,150}", any::<Vec<u8>>(), 0..8)) {
            let layer = files.iter().fold(Layer::default(), |layer, (name, content)| {
                layer.file(&format!("d/{name}"), content.clone(), 0o644)
            });
            let tar = layer.to_tar(0).unwrap();
            let mut archive = tar::Archive::new(tar.as_slice());
            let mut back = std::collections::BTreeMap::new();
            for entry in archive.entries().unwrap() {
                let mut entry = entry.unwrap();
                let path = entry.path().unwrap().display().to_string();
                if let Some(name) = path.strip_prefix("d/").filter(|name| !name.is_empty()) {
                    let name = name.to_owned();
                    let mut content = Vec::new();
                    entry.read_to_end(&mut content).unwrap();
                    back.insert(name, content);
                }
            }
            prop_assert_eq!(back, files);
        }
    }
}
