//! Guards the convention that real-cluster tests are told from others by: one reason for every ignored test.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use fs_err as fs;

/// The reason that every ignored integration test carries.
pub(super) const REASON: &str = "needs a real cluster";

/// Ignored tests that others run: the reason that each carries, and what its name contains.
pub(super) const ELSEWHERE: [(&str, &str); 2] = [
    ("needs a real API server: run `cargo xtask fuzz differential`", "fidelity::fuzz::live"),
    ("another test runs it, on a terminal of its own", "panics_while_it_shows"),
];

/// Fails when a test below `tests/` is ignored for another reason: it would run as a real-cluster test.
pub(super) fn check(checkout: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for member in members(checkout)? {
        collect(&member.join("tests"), &mut sources)?;
    }
    sources.sort();
    let mut strays = Vec::new();
    for source in sources {
        for line in strays_in(&fs::read_to_string(&source)?) {
            strays.push(format!("{}:{line}", source.strip_prefix(checkout).unwrap_or(&source).display()));
        }
    }
    if !strays.is_empty() {
        bail!("these tests are ignored, but not with the reason \"{REASON}\":\n  {}", strays.join("\n  "));
    }
    Ok(())
}

fn members(checkout: &Path) -> Result<Vec<PathBuf>> {
    let mut members = vec![checkout.join("operators")];
    for entry in fs::read_dir(checkout.join("crates"))? {
        members.push(entry?.path());
    }
    Ok(members)
}

fn collect(directory: &Path, sources: &mut Vec<PathBuf>) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    Ok(())
}

/// The numbers of the lines that ignore a test for another reason.
fn strays_in(source: &str) -> Vec<usize> {
    let reasons = ELSEWHERE.iter().map(|(reason, _)| *reason).chain([REASON]);
    let expected: Vec<String> = reasons.map(|reason| format!("#[ignore = \"{reason}\"]")).collect();
    source
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.trim_start().starts_with("#[ignore") && !expected.iter().any(|known| known == line.trim())
        })
        .map(|(index, _)| index + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ignored_test_of_the_checkout_has_somebody_who_runs_it() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    }

    #[test]
    fn another_reason_or_none_is_a_stray() {
        let source = "#[ignore = \"needs a real cluster\"]\n#[ignore]\nfn a() {}\n    #[ignore = \"slow\"]\n";
        assert_eq!(strays_in(source), [2, 4]);
    }
}
