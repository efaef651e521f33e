//! Generated files and the directory that they belong into.
//!
//! A directory keeps a list of what was generated in it, with a digest of each file, as `sha256sum` prints it. A file
//! that is no longer what the list says was changed by a person, and one that the list does not have was made by one:
//! both are left alone and named, unless they are to be replaced.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::Error;

/// Generated files by their path, with `/` on every system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Where the list of generated files stands. Without one, what is generated was made from what is there.
    list: Option<String>,
    files: BTreeMap<String, String>,
}

/// What differs between a directory and what is generated. Paths have `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files that are new or have another content.
    pub written: Vec<String>,
    /// Generated files that are no longer generated.
    pub removed: Vec<String>,
    /// Files that a person has changed or made, and that are left alone.
    pub kept: Vec<String>,
}

impl Changes {
    /// Whether the directory is as generated, but for what a person has changed.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }
}

/// What is to be done in a directory.
#[derive(Clone, Debug)]
pub struct Plan {
    folder: PathBuf,
    changes: Changes,
    contents: BTreeMap<String, String>,
    list: Option<(String, String)>,
}

impl Files {
    /// No files yet, and where their list will stand.
    pub(crate) fn new(list: &str) -> Self {
        Self { list: Some(list.to_owned()), files: BTreeMap::new() }
    }

    /// Files that were made from those that are there, and take their place.
    pub(crate) fn continued() -> Self {
        Self { list: None, files: BTreeMap::new() }
    }

    /// One file, with a list of its own.
    pub fn single(list: &str, path: impl Into<String>, content: impl Into<String>) -> Self {
        let mut files = Self::new(list);
        files.insert(path, content);
        files
    }

    pub(crate) fn insert(&mut self, path: impl Into<String>, content: impl Into<String>) {
        self.files.insert(path.into(), content.into());
    }

    /// Every file, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_str()))
    }

    /// What stands in a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// What there is to do to make a directory what is generated. With `force` also what a person has changed is
    /// replaced.
    pub fn plan(&self, folder: &Path, force: bool) -> Result<Plan, Error> {
        let force = force || self.list.is_none();
        let known = self.list.as_ref().map(|list| read(&folder.join(list))).transpose()?.flatten();
        let listed = known.map(|text| listed(&text)).unwrap_or_default();
        let mut changes = Changes::default();
        let mut list = BTreeMap::new();
        for (path, content) in &self.files {
            let wanted = digest(content);
            let present = read(&folder.join(path))?.map(|text| digest(&text));
            match (present, listed.get(path)) {
                (Some(present), _) if present == wanted => {}
                (Some(present), Some(known)) if present == *known => changes.written.push(path.clone()),
                (Some(_), known) if !force => {
                    changes.kept.push(path.clone());
                    // What was generated last stays known: whoever takes the change back has a generated file again.
                    if let Some(known) = known {
                        list.insert(path.clone(), known.clone());
                    }
                    continue;
                }
                _ => changes.written.push(path.clone()),
            }
            list.insert(path.clone(), wanted);
        }
        for (path, known) in listed.iter().filter(|(path, _)| !self.files.contains_key(*path)) {
            match read(&folder.join(path))?.map(|text| digest(&text)) {
                None => {}
                Some(present) if present == *known || force => changes.removed.push(path.clone()),
                Some(_) => changes.kept.push(path.clone()),
            }
        }
        let mut contents = self.files.clone();
        contents.retain(|path, _| changes.written.contains(path));
        let mut text = String::new();
        for (path, digest) in list {
            let _ = writeln!(text, "{digest}  {path}");
        }
        Ok(Plan {
            folder: folder.to_owned(),
            changes,
            contents,
            list: self.list.clone().map(|list| (list, text)),
        })
    }
}

impl Plan {
    /// What differs.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Does it. Each file is either as before or as generated, whatever interrupts this; a second run does the rest.
    pub fn apply(&self) -> Result<(), Error> {
        for (path, content) in &self.contents {
            replace(&self.folder.join(path), content)?;
        }
        for removed in &self.changes.removed {
            let path = self.folder.join(removed);
            fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
        let Some((list, text)) = &self.list else { return Ok(()) };
        let path = self.folder.join(list);
        if read(&path)?.is_none_or(|present| present != *text) {
            replace(&path, text)?;
        }
        Ok(())
    }
}

/// Of a text, whatever its line ends are: a checkout may have changed them.
fn digest(text: &str) -> String {
    let mut hash = Sha256::new();
    for line in text.lines() {
        hash.update(line);
        hash.update("\n");
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn listed(text: &str) -> BTreeMap<String, String> {
    let entries = text.lines().filter_map(|line| line.split_once("  "));
    // A path that leads elsewhere was not written by us.
    let inside = |path: &str| !path.starts_with('/') && !path.split('/').any(|part| part == "..");
    entries
        .filter(|(_, path)| inside(path))
        .map(|(digest, path)| (path.to_owned(), digest.to_owned()))
        .collect()
}

/// What stands in a file, or nothing if there is none.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}

/// Replaces a file in one step, so that an interruption leaves the old one or the new one.
fn replace(path: &Path, content: &str) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let replaced = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&beside);
    }
    replaced.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[(&str, &str)]) -> Files {
        let mut files = Files::new(".list");
        for (path, content) in contents {
            files.insert(*path, *content);
        }
        files
    }

    fn run(files: &Files, folder: &Path, force: bool) -> Changes {
        let plan = files.plan(folder, force).unwrap();
        plan.apply().unwrap();
        plan.changes().clone()
    }

    #[test]
    fn a_second_run_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&[("a.yaml", "a: 1\n"), ("b/c.yaml", "c: 1\n")]);
        assert_eq!(run(&files, folder.path(), false).written, ["a.yaml", "b/c.yaml"]);
        assert_eq!(run(&files, folder.path(), false), Changes::default());
    }

    #[test]
    fn what_a_person_changed_or_made_stays_until_it_is_forced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("made.yaml"), "by: hand\n").unwrap();
        run(&files(&[("changed.yaml", "a: 1\n"), ("gone.yaml", "g: 1\n")]), folder.path(), false);
        fs::write(at("changed.yaml"), "a: 2\n").unwrap();
        fs::write(at("extra.yaml"), "e: 1\n").unwrap();
        let next = files(&[("changed.yaml", "a: 3\n"), ("made.yaml", "m: 1\n")]);
        let changes = run(&next, folder.path(), false);
        assert_eq!(changes.kept, ["changed.yaml", "made.yaml"]);
        assert_eq!(changes.removed, ["gone.yaml"]);
        assert_eq!(fs::read_to_string(at("changed.yaml")).unwrap(), "a: 2\n");
        assert_eq!(fs::read_to_string(at("made.yaml")).unwrap(), "by: hand\n");
        // Still so after another run, and until it is asked for.
        assert_eq!(run(&next, folder.path(), false).kept, ["changed.yaml", "made.yaml"]);
        assert_eq!(run(&next, folder.path(), true).written, ["changed.yaml", "made.yaml"]);
        assert_eq!(fs::read_to_string(at("changed.yaml")).unwrap(), "a: 3\n");
        assert_eq!(fs::read_to_string(at("extra.yaml")).unwrap(), "e: 1\n");
    }

    #[test]
    fn a_change_that_is_taken_back_is_generated_again() {
        let folder = tempfile::tempdir().unwrap();
        run(&files(&[("a.yaml", "a: 1\n")]), folder.path(), false);
        fs::write(folder.path().join("a.yaml"), "a: 2\n").unwrap();
        assert_eq!(run(&files(&[("a.yaml", "a: 3\n")]), folder.path(), false).kept, ["a.yaml"]);
        fs::write(folder.path().join("a.yaml"), "a: 1\r\n").unwrap();
        assert_eq!(run(&files(&[("a.yaml", "a: 3\n")]), folder.path(), false).written, ["a.yaml"]);
    }

    #[test]
    fn a_list_that_leads_elsewhere_removes_nothing_there() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("mine"), "x\n").unwrap();
        fs::write(inner.join(".list"), format!("{}  ../mine\n", digest("x\n"))).unwrap();
        assert_eq!(run(&files(&[]), &inner, true), Changes::default());
        assert!(folder.path().join("mine").exists());
    }
}
