//! A `config/` directory on disk: what of it is not as generated, and making it so.
//!
//! Every change is known before the first is made. A file without the line of a generated one is its author's, and is
//! neither written nor removed; so one takes a file over by deleting its first line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{ConfigFile, ConfigTree, FOLDERS, IMAGE, yaml};

/// Why a `config/` directory cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A document could not be turned into YAML.
    #[error("failed to write YAML for {path}")]
    Yaml {
        /// The file.
        path: String,
        /// The serializer's error.
        #[source]
        source: Box<serde_saphyr::ser_error::Error>,
    },
    /// A file or folder could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file that is no longer generated could not be removed.
    #[error("failed to remove {}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// What differs between a directory and what is generated. Paths are below the directory, with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Files that are new or have another content.
    pub written: Vec<String>,
    /// Generated files that are no longer generated.
    pub removed: Vec<String>,
    /// Files that are not touched, since they lack the line of a generated file and so are their author's.
    pub kept: Vec<String>,
}

impl ConfigChanges {
    /// Whether the directory is as generated, but for what is its author's.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }
}

impl ConfigTree {
    /// What [`write`](Self::write) would do.
    pub fn changes(&self, folder: &Path) -> Result<ConfigChanges, ConfigError> {
        Ok(self.plan(folder)?.0)
    }

    /// Makes a directory what is generated. Files that are already so are not written.
    ///
    /// # Errors
    ///
    /// What was done before an error stays; each file is either as before or as generated.
    pub fn write(&self, folder: &Path) -> Result<ConfigChanges, ConfigError> {
        let (changes, files) = self.plan(folder)?;
        for file in files.iter().filter(|file| changes.written.contains(&file.path)) {
            let path = folder.join(&file.path);
            replace(&path, &file.content).map_err(|source| ConfigError::Write { path, source })?;
        }
        for removed in &changes.removed {
            let path = folder.join(removed);
            fs::remove_file(&path).map_err(|source| ConfigError::Remove { path, source })?;
        }
        Ok(changes)
    }

    fn plan(&self, folder: &Path) -> Result<(ConfigChanges, Vec<ConfigFile>), ConfigError> {
        let present = present(folder)?;
        let mut tree = self.with_samples(own_samples(&present))?;
        if self.keep_images {
            tree.take_images(present.get("manager/kustomization.yaml"));
        }
        let (files, mut changes) = (tree.rendered()?, ConfigChanges::default());
        for file in &files {
            match present.get(&file.path) {
                Some(text) if !yaml::is_generated(text) => changes.kept.push(file.path.clone()),
                Some(text) if same(text, &file.content) => {}
                _ => changes.written.push(file.path.clone()),
            }
        }
        let generated: BTreeSet<&String> = files.iter().map(|file| &file.path).collect();
        let left =
            present.iter().filter(|(path, text)| !generated.contains(path) && yaml::is_generated(text));
        changes.removed = left.map(|(path, _)| path.clone()).collect();
        Ok((changes, files))
    }

    /// Takes over the images that a kustomization names already.
    fn take_images(&mut self, present: Option<&String>) {
        let present: Value = present.and_then(|text| serde_saphyr::from_str(text).ok()).unwrap_or_default();
        let named = |image: &Value| image["name"] == IMAGE;
        let images = present["images"].as_array().filter(|images| images.iter().any(named));
        let Some(document) = self.files.get_mut("manager/kustomization.yaml") else { return };
        if let (Some(images), [body]) = (images, document.objects.as_mut_slice()) {
            body["images"] = images.clone().into();
        }
    }
}

/// The samples that somebody wrote, by file name.
fn own_samples(present: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let own = present.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("samples/")?;
        let listed = !name.starts_with("kustomization.") && !yaml::is_generated(text);
        listed.then(|| (name.to_owned(), text.clone()))
    });
    own.collect()
}

/// The YAML files in the folders of generated ones, by path.
fn present(folder: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut files = BTreeMap::new();
    for inner in FOLDERS {
        let path = folder.join(inner);
        let failed = |source| ConfigError::Read { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| yaml) else {
                continue;
            };
            let text = fs::read_to_string(&path);
            let text = text.map_err(|source| ConfigError::Read { path: path.clone(), source })?;
            files.insert(format!("{inner}/{name}"), text);
        }
    }
    Ok(files)
}

/// Whether two texts are the same but for their line ends, which a checkout may have changed.
fn same(present: &str, generated: &str) -> bool {
    present.lines().eq(generated.lines())
}

/// Replaces a file in one step, so that an interruption leaves the old one or the new one.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("yaml.new");
    let replaced = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&beside);
    }
    replaced
}
