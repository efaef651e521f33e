//! The days that once were bad, kept in a file beside the test: `tests/it/main.rs` has `tests/it/main.sim-days`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::plan::Written;

const HEAD: &str = "# Days on which a simulation has found something: they are lived first, in every run. One line each: the\n\
                    # test, the day, and what was broken when it was found. Commit this file.\n";

/// The file of one test.
#[derive(Debug)]
pub(crate) struct Regressions {
    file: Option<PathBuf>,
    test: String,
}

impl Regressions {
    /// The file beside `source`, which is a path as the compiler knows it: from the root of the workspace.
    pub(crate) fn beside(source: &str, test: &str) -> Self {
        let package =
            std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let found = package.ancestors().map(|root| root.join(source)).find(|path| path.is_file());
        Self { file: found.map(|path| path.with_extension("sim-days")), test: test.to_owned() }
    }

    /// The days of this test.
    pub(crate) fn days(&self) -> Result<Vec<Written>, String> {
        let Some(text) = self.file.as_deref().and_then(|file| fs::read_to_string(file).ok()) else {
            return Ok(Vec::new());
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut days = Vec::new();
        for line in lines {
            let mut words = line.split_whitespace();
            if words.next() == Some(&self.test) {
                days.push(words.next().unwrap_or_default().parse()?);
            }
        }
        Ok(days)
    }

    /// Keeps a day. Returns where.
    pub(crate) fn keep(&self, day: &Written, why: &str) -> Option<PathBuf> {
        let file = self.file.as_deref()?;
        let known = self.days().is_ok_and(|days| days.contains(day));
        if !known {
            append(file, &format!("{} {day} {why}\n", self.test)).ok()?;
        }
        Some(file.to_owned())
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let new = !file.exists();
    let mut open = fs::OpenOptions::new().create(true).append(true).open(file)?;
    if new {
        open.write_all(HEAD.as_bytes())?;
    }
    open.write_all(line.as_bytes())
}
