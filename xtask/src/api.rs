//! `cargo xtask api`: what the libraries offer to others, one line an item, in files that a review can see change.
//!
//! Enters: each library, as rustdoc describes it to programs. Leaves: its `public-api.txt`, or with `--check` the lines
//! that are not as the file says.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args as ClapArgs;
use fs_err as fs;

/// The libraries that operators and their tests depend on.
const LIBRARIES: [(&str, &str); 3] =
    [("windlass-apimachinery", "apimachinery"), ("windlass", "windlass"), ("windlass-cluster", "cluster")];

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not as it would be
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let rustdoc = Rustdoc::new()?;
    let mut different = 0;
    for (package, folder) in LIBRARIES {
        let offered = rustdoc.items(package)?;
        let file = root().join("crates").join(folder).join("public-api.txt");
        if !args.check {
            fs::write(&file, &offered)?;
            continue;
        }
        let written = fs::read_to_string(&file)?;
        let changes = changes(&written, &offered);
        different += changes.len();
        for change in changes {
            anstream::println!("{package}: {change}");
        }
    }
    ensure!(
        different == 0,
        "{different} lines of public-api.txt are not what the libraries offer: run `cargo xtask api`, and say in \
         CHANGELOG.md what users must change"
    );
    Ok(())
}

/// The lines that went (`-`) and came (`+`).
fn changes(written: &str, offered: &str) -> Vec<String> {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (written.lines().collect(), offered.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}"));
    gone.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect()
}

/// The toolchain's rustdoc, which writes JSON only where unstable features are allowed.
struct Rustdoc {
    folder: tempfile::TempDir,
    target: PathBuf,
}

impl Rustdoc {
    /// Allows them to rustdoc alone: with the variable set for all of cargo, build scripts would run again and hundreds of
    /// crates with them.
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("rustdoc");
        fs::write(&script, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
        fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        Ok(Self { folder, target })
    }

    /// What a library offers, sorted, one line an item.
    fn items(&self, package: &str) -> Result<String> {
        let mut cargo = crate::kubernetes::cargo();
        cargo.args(["rustdoc", "--quiet", "--lib", "--package", package]);
        cargo.args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"]);
        cargo.env("RUSTDOC", self.folder.path().join("rustdoc"));
        let status = cargo.status().context("failed to run cargo")?;
        if !status.success() {
            bail!("`cargo rustdoc --package {package}` ended with {status}");
        }
        read(&self.target.join("doc").join(package.replace('-', "_")).with_extension("json"))
    }
}

fn read(description: &Path) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(description)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("{} is of another rustdoc than this xtask knows", description.display()))?;
    let items: BTreeSet<_> = api.items().map(ToString::to_string).collect();
    Ok(items.into_iter().map(|item| item + "\n").collect())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn what_went_and_what_came_is_told() {
        let changes = changes("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!(changes, ["- pub fn a()", "+ pub fn c()"]);
    }
}
