//! The committed lists: which specs are known to pass, and which of them CI runs.
//!
//! One name a line, sorted, nothing twice. A list that names what the suite does not have is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;

use super::spec::{Outcome, Run};

/// Where the list of passing specs lies, from the root of the checkout.
pub(super) const PASSING: &str = "xtask/conformance/passing.txt";
const CI: &str = "xtask/conformance/ci.txt";

/// What is known about specs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) passing: BTreeSet<String>,
    pub(super) ci: BTreeSet<String>,
}

impl Lists {
    pub(super) fn read() -> Result<Self> {
        let lists = Self { passing: read(PASSING)?, ci: read(CI)? };
        let stray = lists.ci.difference(&lists.passing).next();
        ensure!(stray.is_none(), "{CI} names a spec that {PASSING} does not: {}", stray.map_or("", |s| s));
        Ok(lists)
    }

    /// Refuses names that the suite does not have: a typo must not pass for a success.
    pub(super) fn check(&self, specs: &BTreeSet<String>) -> Result<()> {
        let unknown = self.passing.difference(specs).next();
        ensure!(
            unknown.is_none(),
            "{PASSING} names a spec that the suite lacks: {}",
            unknown.map_or("", |s| s)
        );
        Ok(())
    }

    /// Adds what passed; returns how many were new.
    pub(super) fn record(&mut self, runs: &[Run]) -> Result<usize> {
        let before = self.passing.len();
        let passed = runs.iter().filter(|run| run.outcome == Outcome::Passed);
        self.passing.extend(passed.map(|run| run.spec.clone()));
        let text: String = self.passing.iter().flat_map(|spec| [spec, "\n"]).collect();
        fs::write(file(PASSING), text)?;
        Ok(self.passing.len() - before)
    }
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie in the workspace").join(path)
}

fn read(path: &str) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(file(path))?;
    let lines: Vec<&str> = text.lines().collect();
    ensure!(lines.is_sorted_by(|one, next| one < next), "{path} must be sorted and name nothing twice");
    Ok(lines.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_lists_are_sorted_and_agree() {
        let lists = Lists::read().unwrap();
        assert!(!lists.ci.is_empty());
        assert!(lists.passing.len() >= lists.ci.len());
    }

    #[test]
    fn a_name_that_the_suite_lacks_is_refused() {
        let lists = Lists { passing: ["gone".to_owned()].into(), ci: BTreeSet::new() };
        let error = lists.check(&["here".to_owned()].into()).unwrap_err();
        assert!(error.to_string().ends_with("names a spec that the suite lacks: gone"), "{error}");
    }
}
