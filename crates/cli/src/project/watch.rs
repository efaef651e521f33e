//! Changes in a project's files: what is built, and the samples.
//!
//! The times of the files are looked at, a few dozen of them a few times a second: that works on every system and
//! every file system, in containers and on network drives too, where notifications get lost.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How often files are looked at. A change is told once two looks agree, so that an editor can finish writing.
const LOOK: Duration = Duration::from_millis(200);

/// What of a project is built, beside its sources.
const FILES: [&str; 5] =
    ["Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain.toml", ".cargo/config.toml"];

/// When each file was changed, and how long it is.
type Snapshot = BTreeMap<PathBuf, (SystemTime, u64)>;

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Something that is built, relative to the project.
    pub(crate) sources: Vec<PathBuf>,
    /// Whether a sample was.
    pub(crate) samples: bool,
}

/// Looks at the files of a project.
#[derive(Debug)]
pub(crate) struct Watch {
    root: PathBuf,
    samples: PathBuf,
    known: Snapshot,
}

impl Watch {
    pub(crate) fn new(project: &super::Project) -> Self {
        let samples = project.samples();
        let known = snapshot(&project.root, &samples);
        Self { root: project.root.clone(), samples, known }
    }

    /// Waits for the next change, counted from the last one that was returned. Cancel-safe.
    pub(crate) async fn changed(&mut self) -> Changes {
        let mut last = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let (root, samples) = (self.root.clone(), self.samples.clone());
            let Ok(now) = tokio::task::spawn_blocking(move || snapshot(&root, &samples)).await else {
                continue;
            };
            if now == self.known {
                last = None;
            } else if last.as_ref() == Some(&now) {
                let changes = self.compare(&now);
                self.known = now;
                return changes;
            } else {
                last = Some(now);
            }
        }
    }

    fn compare(&self, now: &Snapshot) -> Changes {
        let all = now.keys().chain(self.known.keys().filter(|path| !now.contains_key(*path)));
        let mut changes = Changes::default();
        for path in all.filter(|path| now.get(*path) != self.known.get(*path)) {
            if path.starts_with(&self.samples) {
                changes.samples = true;
            } else {
                changes.sources.push(path.strip_prefix(&self.root).unwrap_or(path).to_owned());
            }
        }
        changes
    }
}

fn snapshot(root: &Path, samples: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    for file in FILES {
        look(&root.join(file), &mut found);
    }
    walk(&root.join("src"), &mut found);
    walk(samples, &mut found);
    found
}

fn walk(folder: &Path, found: &mut Snapshot) {
    // A folder that is being moved away is as good as gone.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_temporary(&entry.file_name().to_string_lossy()) {
            look(&entry.path(), found);
        }
    }
}

fn look(path: &Path, found: &mut Snapshot) {
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => walk(path, found),
        Ok(data) => drop(found.insert(path.to_owned(), (changed_at(&data), data.len()))),
        Err(_) => {}
    }
}

fn changed_at(data: &Metadata) -> SystemTime {
    data.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// What editors leave while they write: vim's `.x.swp` and `4913`, emacs' `#x#` and `.#x`, `x~`, `x.tmp`.
fn is_temporary(name: &str) -> bool {
    let ends = ["~", ".tmp", ".swp", ".swx", ".bak", ".orig"];
    name.starts_with(['.', '#']) || name == "4913" || ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    fn project(root: &Path) -> Project {
        for folder in ["src/greeting", "config/samples", "target"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("src/lib.rs"), "").unwrap();
        Project { root: root.to_owned(), name: "x".into(), cli_version: String::new() }
    }

    #[tokio::test]
    async fn what_is_built_and_the_samples_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(&project(folder.path()));
        std::fs::write(folder.path().join("src/greeting/api.rs"), "x").unwrap();
        let sources = vec![PathBuf::from("src/greeting/api.rs")];
        assert_eq!(watch.changed().await, Changes { sources: sources.clone(), samples: false });
        std::fs::write(folder.path().join("config/samples/a.yaml"), "x").unwrap();
        assert_eq!(watch.changed().await, Changes { sources: Vec::new(), samples: true });
        std::fs::remove_file(folder.path().join("src/greeting/api.rs")).unwrap();
        assert_eq!(watch.changed().await, Changes { sources, samples: false });
    }

    #[tokio::test]
    async fn what_editors_and_cargo_write_for_themselves_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(&project(folder.path()));
        for file in ["src/.lib.rs.swp", "src/4913", "src/lib.rs~", "src/#lib.rs#", "target/x", "README.md"] {
            std::fs::write(folder.path().join(file), "x").unwrap();
        }
        let waited = tokio::time::timeout(LOOK * 5, watch.changed()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
}
