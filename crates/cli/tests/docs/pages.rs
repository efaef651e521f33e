//! Which pages there are: every Markdown file of the repository, taken apart.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::markdown::Page;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file that people read as a page, by its path from the root, sorted. The guide of the SDK is written
/// for rustdoc, which checks its links; what is read on the web is docs/guide.md. Templates of the scaffold are pages
/// of the projects that are made from them.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), Path::new(""), &mut found);
    assert!(found.len() >= 10, "the pages must be found: {found:?}");
    found.sort();
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (folder.join(entry.file_name()), entry.file_name());
        let name = name.to_str().unwrap();
        let skipped =
            name.starts_with('.') || ["target", "templates", "fixtures", "golden", "src"].contains(&name);
        if entry.file_type().unwrap().is_dir() {
            // A folder with a Cargo.lock of its own is somebody else's repository, or a project under test.
            if !skipped && !root.join(&path).join("Cargo.lock").exists() {
                collect(root, &path, found);
            }
        } else if Path::new(name).extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

pub(crate) fn read(path: &Path) -> Page {
    Page::parse(&fs::read_to_string(root().join(path)).unwrap())
}

/// The Chinese page beside an English one.
pub(crate) fn chinese(english: &Path) -> PathBuf {
    english.with_extension("zh-CN.md")
}

pub(crate) fn is_chinese(path: &Path) -> bool {
    path.to_str().unwrap().ends_with(".zh-CN.md")
}
