//! A dependency that no source names makes everybody's build longer for nothing.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use fs_err as fs;

/// Dependencies that are named nowhere, or only by tests although they are not among the dev-dependencies.
pub(super) fn check(root: &Path, folder: &str) -> Result<Vec<String>> {
    let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml"))?;
    let sources = text(&root.join(folder).join("src"))?;
    let mut tests = text(&root.join(folder).join("build.rs"))?;
    for place in ["tests", "benches", "examples"] {
        tests.push_str(&text(&root.join(folder).join(place))?);
    }
    Ok(unused(&manifest, &sources, &tests)
        .into_iter()
        .map(|problem| format!("{folder}: {problem}"))
        .collect())
}

/// All Rust of a file or a folder; nothing where there is none.
fn text(place: &Path) -> Result<String> {
    if place.is_file() {
        return Ok(fs::read_to_string(place)?);
    }
    let mut whole = String::new();
    if place.is_dir() {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
                whole.push_str(&text(&path)?);
            }
        }
    }
    Ok(whole)
}

fn unused(manifest: &str, sources: &str, tests: &str) -> Vec<String> {
    let (mut normal, mut development) = (BTreeSet::new(), BTreeSet::new());
    let mut section = None;
    for line in manifest.lines() {
        if let Some(title) = line.strip_prefix('[') {
            let title = title.trim_end_matches(']');
            // Build dependencies are left out: the SDK has some only for their features.
            section = match title.rsplit('.').next() {
                Some("dependencies") => Some(&mut normal),
                Some("dev-dependencies") => Some(&mut development),
                _ => None,
            };
        } else if let (Some(section), Some(name)) = (section.as_deref_mut(), name(line)) {
            section.insert(name);
        }
    }
    let mut problems = Vec::new();
    for name in &normal {
        if !names(sources, name) {
            problems.push(if names(tests, name) {
                format!("only tests use the dependency {name}: move it to dev-dependencies")
            } else {
                format!("nothing uses the dependency {name}: strike it")
            });
        }
    }
    for name in development.difference(&normal) {
        if !names(sources, name) && !names(tests, name) {
            problems.push(format!("nothing uses the dev-dependency {name}: strike it"));
        }
    }
    problems
}

/// The dependency that a line of a manifest begins.
fn name(line: &str) -> Option<&str> {
    let key = line.split(['=', '.']).next()?.trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    (line.contains('=') && !key.is_empty() && line.starts_with(plain) && key.chars().all(plain))
        .then_some(key)
}

/// Whether a source names a crate: as the head of a path, or in `use`.
fn names(source: &str, dependency: &str) -> bool {
    let name = dependency.replace('-', "_");
    let word = |letter: char| letter.is_alphanumeric() || letter == '_';
    source.match_indices(&name).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + name.len()..]);
        let head = before.strip_suffix("::").unwrap_or(before);
        let alone = !before.ends_with(word) && !head.ends_with(|letter| word(letter) || letter == '>');
        alone && (after.starts_with("::") || before.ends_with("use ") && !after.starts_with(word))
    })
}

#[cfg(test)]
mod tests {
    use super::unused;

    #[test]
    fn what_nothing_names_and_what_only_tests_name_is_told() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nserde.workspace = true\nserde_json = \"1\"\nfs-err = \"3\"\n\n\
                        [target.'cfg(unix)'.dependencies]\nrustix = { version = \"1\" }\n\n[dev-dependencies]\ntempfile = \"3\"\n\
                        proptest = \"1\"\n";
        let sources = "use fs_err as fs;\nlet a = serde_json::json!({});\nlet b = other::rustix::x();";
        let problems = unused(manifest, sources, "fn t() { ::serde::x(); tempfile::tempdir(); }");
        assert_eq!(
            problems,
            [
                "nothing uses the dependency rustix: strike it",
                "only tests use the dependency serde: move it to dev-dependencies",
                "nothing uses the dev-dependency proptest: strike it",
            ]
        );
    }
}
