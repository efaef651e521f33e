//! The README says what the operators do, and each line of it names a test: that test must exist.

use std::{collections::BTreeMap, path::Path};

/// The links of the form ``[`name`](path)`` in a text.
fn named(text: &str) -> Vec<(&str, &str)> {
    let after = text.split("[`").skip(1);
    after
        .filter_map(|rest| {
            let (name, rest) = rest.split_once("`](")?;
            let (path, _) = rest.split_once(')')?;
            Some((name, path))
        })
        .collect()
}

/// Whether a source defines something of this name: a function, or a test by a macro.
fn defines(source: &str, name: &str) -> bool {
    let is_word_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let starts = [format!("fn {name}"), format!("    {name}: ")];
    starts.iter().any(|start| {
        source
            .match_indices(start.as_str())
            .any(|(at, found)| start.ends_with(' ') || is_word_end(&source[at + found.len()..]))
    })
}

fn is_source(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn every_test_that_the_readme_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut sources = BTreeMap::new();
    let mut missing = Vec::new();
    let links = named(&readme);
    let tests = links.iter().filter(|(name, path)| is_source(path) && *name != "workload");
    let mut count = 0;
    for (name, path) in tests {
        let read = || std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let source: &String = sources.entry(*path).or_insert_with(read);
        count += 1;
        if !defines(source, name) {
            missing.push(format!("{name} in {path}"));
        }
    }
    assert!(count > 50, "the README names its tests as [`name`](path): only {count} found");
    assert!(missing.is_empty(), "the README names tests that are not there: {missing:#?}");
}

#[test]
fn only_a_whole_name_counts() {
    assert!(defines("async fn a_test(bed: Bed) {}", "a_test"));
    assert!(defines("    a_test: operator => case;", "a_test"));
    assert!(!defines("fn a_test_of_more() {}", "a_test"));
    assert_eq!(named("| x | [`a`](b.rs), [`c`](d/e.rs) |"), [("a", "b.rs"), ("c", "d/e.rs")]);
}
