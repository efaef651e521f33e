//! A copy of the checkout, to build in and to edit.
//!
//! Enters the checkout; leaves its files, the changed and the new ones too, in a folder that goes away with this.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use tempfile::TempDir;

/// Where the author of an operator works.
const EDITED: &str = "operators/src/webserver/controller.rs";

/// The beginning of the function in it that gets another statement.
const FUNCTION: &str = "ctx: &Context<WebServer>) -> Result<Action, Error> {\n";

pub(super) struct Checkout(TempDir);

impl Checkout {
    pub(super) fn copy(root: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("failed to start git")?;
        ensure!(listed.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&listed.stderr));
        // Beside other builds: the system's folder for temporary files may be in memory.
        let target = root.join("target");
        fs::create_dir_all(&target)?;
        let folder = tempfile::Builder::new().prefix("bench-build-").tempdir_in(target)?;
        for path in String::from_utf8(listed.stdout)?.split('\0').filter(|path| !path.is_empty()) {
            // What is deleted but not committed is still listed.
            let (from, to) = (root.join(path), folder.path().join(path));
            if from.is_file() {
                fs::create_dir_all(to.parent().context("a file must lie in a folder")?)?;
                fs::copy(from, to)?;
            }
        }
        Ok(Self(folder))
    }

    pub(super) fn root(&self) -> &Path {
        self.0.path()
    }

    /// A statement more in a reconciler.
    pub(super) fn edit(&self) -> Result<()> {
        let path = self.root().join(EDITED);
        let text = fs::read_to_string(&path)?;
        let edited =
            edited(&text).with_context(|| format!("{EDITED} has no reconciler that could be edited"))?;
        Ok(fs::write(path, edited)?)
    }
}

fn edited(text: &str) -> Option<String> {
    let (before, after) = text.split_once(FUNCTION)?;
    Some(format!("{before}{FUNCTION}        assert!(web.spec.replicas > -2, \"edited\");\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_reconciler_to_edit() {
        let text = fs::read_to_string(crate::bench::program::root().join(EDITED)).unwrap();
        assert!(edited(&text).unwrap().len() > text.len());
    }
}
