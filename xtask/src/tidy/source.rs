//! A crate's sources as text: which files there are, which of them are tests, and which modules of the crate each uses.
//!
//! This reads Rust as people write it here, formatted by rustfmt, and does not parse it: `use` trees, paths that begin
//! with `crate` or `super`, and tests that stand at the end of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::LazyLock,
};

use anyhow::Result;
use regex::Regex;

static TESTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\(\w+\))? )?mod (\w+) \{")
        .expect("it is a regex")
});
static TEST_FILES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\(\w+\))? )?mod (\w+);")
        .expect("it is a regex")
});
static USE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\buse ([^;]+);").expect("it is a regex"));
static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:crate|super)(?:::\w+)+").expect("it is a regex"));

/// The sources of a crate, without its tests.
pub(super) struct Crate {
    /// Where it lies in the workspace, such as `crates/windlass`.
    pub(super) folder: String,
    /// What stands before the tests of each file, by its path in the crate.
    pub(super) files: BTreeMap<String, String>,
}

impl Crate {
    pub(super) fn read(root: &Path, folder: &str) -> Result<Self> {
        let mut files = Vec::new();
        collect(&root.join(folder), "src", &mut files)?;
        Ok(Self::of(folder, files.iter().map(|(path, text)| (path.as_str(), text.as_str()))))
    }

    /// A crate of these files.
    pub(super) fn of<'a>(folder: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files: Vec<(&str, &str)> = files.into_iter().collect();
        let mut tests = BTreeSet::new();
        for (path, text) in &files {
            let below = path.trim_end_matches(".rs");
            let below = if is_root(path) { "src" } else { below };
            tests.extend(TEST_FILES.captures_iter(text).map(|found| format!("{below}/{}", &found[1])));
        }
        let is_test = |path: &str| {
            let module = path.trim_end_matches(".rs");
            tests.iter().any(|test| module == test || module.starts_with(&format!("{test}/")))
        };
        let kept = files.iter().filter(|(path, _)| !is_test(path));
        let files = kept.map(|(path, text)| ((*path).to_owned(), without_tests(text).to_owned())).collect();
        Self { folder: folder.to_owned(), files }
    }

    /// Which modules of the crate's root use which, and the first file in which they do.
    pub(super) fn uses(&self) -> BTreeMap<(String, String), String> {
        let modules: BTreeSet<&str> = self.files.keys().filter_map(|path| module_of(path)).collect();
        let passed_on = self.passed_on(&modules);
        let mut uses = BTreeMap::new();
        for (path, text) in &self.files {
            let Some(module) = module_of(path) else { continue };
            let depth = path.split('/').count() - 1;
            for segments in paths(text) {
                let Some(name) = below_root(&segments, depth) else { continue };
                let target = modules.get(name).copied().or_else(|| passed_on.get(name).map(String::as_str));
                if let Some(target) = target.filter(|target| *target != module) {
                    uses.entry((module.to_owned(), target.to_owned())).or_insert_with(|| path.clone());
                }
            }
        }
        uses
    }

    /// What the crate's root passes on under its own name, and the module that it comes from.
    fn passed_on(&self, modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
        let roots = self.files.iter().filter(|(path, _)| is_root(path));
        let trees = roots.flat_map(|(_, text)| USE.captures_iter(text).flat_map(|found| leaves(&found[1])));
        trees
            .filter_map(|path| {
                let segments: Vec<&str> =
                    path.split("::").filter(|one| !matches!(*one, "self" | "crate")).collect();
                let (first, last) = (segments.first()?, segments.last()?);
                (segments.len() > 1 && modules.contains(first))
                    .then(|| ((*last).to_owned(), (*first).to_owned()))
            })
            .collect()
    }
}

fn collect(folder: &Path, below: &str, files: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs_err::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = format!("{below}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(folder, &path, files)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = fs_err::read_to_string(entry.path())?;
            files.push((path, text));
        }
    }
    Ok(())
}

fn is_root(path: &str) -> bool {
    matches!(path, "src/lib.rs" | "src/main.rs") || path.starts_with("src/bin/")
}

/// The module of the crate's root that a file belongs to.
fn module_of(path: &str) -> Option<&str> {
    let module = path.strip_prefix("src/")?.trim_end_matches(".rs");
    (!is_root(path)).then(|| module.split('/').next())?
}

fn without_tests(text: &str) -> &str {
    TESTS.find(text).map_or(text, |found| &text[..found.start()])
}

/// The paths that a file uses, in segments.
fn paths(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut all: Vec<String> = USE.captures_iter(&code).flat_map(|found| leaves(&found[1])).collect();
    let body = USE.replace_all(&code, "");
    all.extend(PATH.find_iter(&body).map(|found| found.as_str().to_owned()));
    all.iter().map(|path| path.split("::").map(str::to_owned).collect()).collect()
}

/// The first segment below the crate's root; `None` for a path that does not lead there.
fn below_root(segments: &[String], depth: usize) -> Option<&str> {
    let up = segments.iter().take_while(|one| *one == "super").count();
    match segments.first()?.as_str() {
        "crate" => segments.get(1).map(String::as_str),
        "super" if up >= depth => segments.get(up).map(String::as_str),
        _ => None,
    }
}

/// The paths of a `use` tree, without the names that they get.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return if path.is_empty() { Vec::new() } else { vec![path.to_owned()] };
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let below = parts.into_iter().flat_map(leaves);
    below.map(|path| format!("{}{path}", head.trim()).trim_end_matches("::self").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_uses_has_its_paths() {
        assert_eq!(leaves("crate::{a::{B, c::D as E}, f}"), ["crate::a::B", "crate::a::c::D", "crate::f"]);
        assert_eq!(leaves("super::{\n    x,\n    self,\n}"), ["super::x", "super"]);
    }

    #[test]
    fn paths_that_stay_below_a_module_are_no_uses_of_others() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod fixtures;\n"),
            ("src/a.rs", "mod c; // crate::b::comment\n"),
            ("src/a/c.rs", "use super::d;\nuse super::super::b::E;\n"),
            ("src/b.rs", "\n"),
            ("src/fixtures.rs", "use crate::a::X;\n"),
        ];
        let uses = Crate::of("x", files).uses();
        assert_eq!(uses.into_iter().collect::<Vec<_>>(), [(("a".into(), "b".into()), "src/a/c.rs".into())]);
    }
}
