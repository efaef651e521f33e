//! What is going to happen to a project's files: computed in memory, shown if asked for, checked against what people have
//! changed, and carried out as a whole ([`Plan::carry_out`]).

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use fs_err as fs;

use crate::{Files, Project, error::Error, format, merge, project::FILE};

mod transaction;

#[cfg(test)]
mod tests;

pub use transaction::recover;

/// Where the scaffolded form of every file is kept: the common ancestor of what people and `windlass upgrade` change.
pub const PRISTINE: &str = ".windlass/scaffold";

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It comes to be.
    Create {
        /// Where.
        path: String,
        /// What is in it.
        content: String,
    },
    /// It becomes another.
    Replace {
        /// Where.
        path: String,
        /// What is in it.
        content: String,
        /// What was in it.
        former: String,
    },
    /// It goes.
    Remove {
        /// Where.
        path: String,
    },
}

impl Change {
    /// Which file.
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path, .. } | Self::Replace { path, .. } | Self::Remove { path } => path,
        }
    }

    /// What changes in a file that stays, line by line.
    pub fn diff(&self) -> Option<String> {
        match self {
            Self::Replace { content, former, .. } => Some(diffy::create_patch(former, content).to_string()),
            _ => None,
        }
    }

    /// What is in it afterwards.
    pub(crate) fn content(&self) -> Option<&str> {
        match self {
            Self::Create { content, .. } | Self::Replace { content, .. } => Some(content),
            Self::Remove { .. } => None,
        }
    }
}

/// What is going to happen, all of it or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The project.
    pub root: PathBuf,
    /// What happens to which file, ordered by path; the pristine copies are among them.
    pub changes: Vec<Change>,
    /// Files that stay although they would have gone, since a person changed them.
    pub kept: Vec<String>,
    /// Files that a person removed and that are not brought back.
    pub absent: Vec<String>,
    /// Files in which a person and the scaffold changed the same lines, with the merge that shows both.
    pub conflicts: Vec<(String, String)>,
}

impl Plan {
    /// The changes that people care for: without the pristine copies.
    pub fn visible(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| !change.path().starts_with(PRISTINE))
    }

    pub(crate) fn empty(root: &Path) -> Self {
        let (changes, kept, absent, conflicts) = Default::default();
        Self { root: root.to_owned(), changes, kept, absent, conflicts }
    }

    pub(crate) fn sort(&mut self) {
        self.changes.sort_by(|one, other| one.path().cmp(other.path()));
    }

    /// Whether nothing would happen.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A project on disk, seen through its paths with `/`.
pub(crate) struct Folder<'a>(pub(crate) &'a Path);

impl Folder<'_> {
    /// The content of a file, if there is one.
    pub(crate) fn read(&self, path: &str) -> Result<Option<String>, Error> {
        let path = self.0.join(path);
        match fs::read(&path) {
            // Checked out on Windows, a file has other line ends than the scaffold, and is not changed by that.
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn pristine(&self, path: &str) -> Result<Option<String>, Error> {
        self.read(&pristine(path))
    }

    /// All files below a folder, by their paths below it.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        let mut next = vec![String::new()];
        while let Some(below) = next.pop() {
            let path = self.0.join(folder).join(&below);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::Read { path, source }),
            };
            for entry in entries {
                let entry = entry.map_err(|source| Error::Read { path: path.clone(), source })?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let name = if below.is_empty() { name } else { format!("{below}/{name}") };
                if entry.path().is_dir() { next.push(name) } else { found.push(name) }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Where the scaffolded form of a file is.
pub(crate) fn pristine(path: &str) -> String {
    format!("{PRISTINE}/{path}")
}

/// The step from one scaffold of a project to another.
pub(crate) struct Step<'a> {
    pub(crate) root: &'a Path,
    pub(crate) old: &'a Files,
    pub(crate) new: &'a Files,
    /// Overwrite and remove what people changed.
    pub(crate) force: bool,
}

/// What is found out about the files, one after the other.
#[derive(Default)]
struct Findings {
    changes: Vec<Change>,
    kept: Vec<String>,
    absent: Vec<String>,
    exist: Vec<String>,
    conflicts: Vec<(String, String)>,
}

impl Step<'_> {
    /// The plan of this step, with a new PROJECT file.
    ///
    /// Fails, and lists them all, if files would be overwritten that nobody scaffolded, or if a person and the scaffold
    /// changed the same lines.
    pub(crate) fn plan(&self, project: &Project) -> Result<Plan, Error> {
        let folder = Folder(self.root);
        let mut found = Findings::default();
        let paths: BTreeSet<&String> = self.old.0.keys().chain(self.new.0.keys()).collect();
        for path in paths {
            match (self.old.get(path), self.new.get(path)) {
                (None, Some(new)) => self.create(&folder, path, new, &mut found)?,
                (Some(old), Some(new)) if old != new => Self::edit(&folder, path, old, new, &mut found)?,
                (Some(old), None) => self.remove(&folder, path, old, &mut found)?,
                _ => {}
            }
        }
        if !found.exist.is_empty() {
            return Err(Error::Exists(found.exist));
        }
        if !found.conflicts.is_empty() {
            return Err(Error::Conflict(found.conflicts.into_iter().map(|(path, _)| path).collect()));
        }
        put(&folder, FILE, &project.to_yaml(), &mut found.changes)?;
        Ok(found.into_plan(self.root))
    }

    fn create(&self, folder: &Folder<'_>, path: &str, new: &str, found: &mut Findings) -> Result<(), Error> {
        match folder.read(path)? {
            Some(ours) if ours != new && !self.force => found.exist.push(path.to_owned()),
            _ => put(folder, path, new, &mut found.changes)?,
        }
        put(folder, &pristine(path), new, &mut found.changes)
    }

    fn edit(
        folder: &Folder<'_>,
        path: &str,
        old: &str,
        new: &str,
        found: &mut Findings,
    ) -> Result<(), Error> {
        let merged = |ours: &str| -> Result<Result<String, String>, Error> {
            if new.contains(merge::MARKER) {
                let text = merge::register(path, old, new, ours)?;
                // The order of modules is rustfmt's; whoever does without it is left alone.
                return Ok(Ok(if format::rust(ours) == ours { format::rust(&text) } else { text }));
            }
            Ok(merge::three_way(old, ours, new))
        };
        let Some(ours) = folder.read(path)? else {
            found.absent.push(path.to_owned());
            return Ok(());
        };
        match merged(&ours)? {
            Ok(text) => put(folder, path, &text, &mut found.changes)?,
            Err(text) => found.conflicts.push((path.to_owned(), text)),
        }
        // The copy of an older scaffold takes this change and no other.
        let copy = folder.pristine(path)?;
        let copy = copy.and_then(|copy| merged(&copy).ok()?.ok()).unwrap_or_else(|| new.to_owned());
        put(folder, &pristine(path), &copy, &mut found.changes)
    }

    fn remove(&self, folder: &Folder<'_>, path: &str, old: &str, found: &mut Findings) -> Result<(), Error> {
        let copy = folder.pristine(path)?;
        if copy.is_some() {
            found.changes.push(Change::Remove { path: pristine(path) });
        }
        match folder.read(path)? {
            Some(ours) if ours == copy.as_deref().unwrap_or(old) || ours == old || self.force => {
                found.changes.push(Change::Remove { path: path.to_owned() });
            }
            Some(_) => found.kept.push(path.to_owned()),
            None => {}
        }
        Ok(())
    }
}

impl Findings {
    fn into_plan(mut self, root: &Path) -> Plan {
        self.changes.sort_by(|one, other| one.path().cmp(other.path()));
        let Self { changes, kept, absent, conflicts, .. } = self;
        Plan { root: root.to_owned(), changes, kept, absent, conflicts }
    }
}

/// Writes a file, unless it is like that already.
pub(crate) fn put(
    folder: &Folder<'_>,
    path: &str,
    content: &str,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    let (path, content) = (path.to_owned(), content.to_owned());
    match folder.read(&path)? {
        None => changes.push(Change::Create { path, content }),
        Some(former) if former != content => changes.push(Change::Replace { path, content, former }),
        Some(_) => {}
    }
    Ok(())
}
