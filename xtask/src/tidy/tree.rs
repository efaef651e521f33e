//! ARCHITECTURE.md names every crate.

use std::path::Path;

use anyhow::Result;

/// The crates of the workspace, by their folders.
pub(super) fn crates(root: &Path) -> Result<Vec<String>> {
    let mut folders: Vec<String> = ["bench", "operators", "xtask"].map(str::to_owned).into();
    for entry in fs_err::read_dir(root.join("crates"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            folders.push(format!("crates/{}", entry.file_name().to_string_lossy()));
        }
    }
    folders.sort();
    Ok(folders)
}

/// Crates that the tree does not name, and names that are no crate.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let text = fs_err::read_to_string(root.join("ARCHITECTURE.md"))?;
    Ok(compare(&text, &crates(root)?))
}

fn compare(text: &str, folders: &[String]) -> Vec<String> {
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let named: Vec<String> = text.lines().filter(|line| !line.starts_with(' ')).map(first).collect();
    let missing = folders.iter().filter(|folder| !named.contains(folder));
    let missing = missing.map(|folder| format!("ARCHITECTURE.md: the tree does not name {folder}"));
    let gone = named.iter().filter(|name| name.starts_with("crates/") && !folders.contains(name));
    missing.chain(gone.map(|name| format!("ARCHITECTURE.md: there is no {name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_not_named_and_a_name_without_a_crate_are_told() {
        let tree = "```\ncrates/a  this\n  inner\ncrates/b  that\n```\n";
        let told = compare(tree, &["crates/a".into(), "crates/c".into()]);
        assert_eq!(
            told,
            ["ARCHITECTURE.md: the tree does not name crates/c", "ARCHITECTURE.md: there is no crates/b"]
        );
    }
}
