//! No crate of others' is compiled twice, whichever command comes first.
//!
//! Enters what cargo would build for each of several commands (its unit graph: nothing is compiled); leaves the crates
//! that two of them build differently, with the features that only one of them turns on.

mod project;
mod units;

use std::path::Path;

use anyhow::{Result, bail};

use units::Units;

/// What the README's two commands, and somebody who wants everything, make cargo build.
const WORKSPACE: [&[&str]; 3] = [&["build"], &["build", "--workspace"], &["test", "--workspace", "--no-run"]];

/// What the author of an operator asks for, all day.
const PROJECT: [&[&str]; 2] = [&["build"], &["test", "--no-run"]];

pub(crate) fn run() -> Result<()> {
    let root = project::workspace()?;
    let folder = tempfile::tempdir()?;
    project::write(folder.path(), &root)?;
    let mut twice = compare(&root, &WORKSPACE)?;
    twice.extend(compare(folder.path(), &PROJECT)?);
    if twice.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\n  hint: features stand in [workspace.dependencies]; what only tests need, or windlass-cluster, windlass turns on too",
        twice.join("\n")
    )
}

/// What each command builds in another way than the first.
fn compare(folder: &Path, commands: &[&[&str]]) -> Result<Vec<String>> {
    let first = Units::of(folder, commands[0])?;
    let mut twice = Vec::new();
    for command in &commands[1..] {
        let second = Units::of(folder, command)?;
        let between = format!("`cargo {}` and `cargo {}`", commands[0].join(" "), command.join(" "));
        twice.extend(first.differences(&second).into_iter().map(|what| format!("{between} differ: {what}")));
    }
    Ok(twice)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_command_compiles_a_crate_of_others_that_another_has_compiled() {
        super::run().unwrap();
    }
}
