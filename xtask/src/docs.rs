//! The generated pages of docs/: the guide, from the one that rustdoc renders, and the reference of every command.
//!
//! Enters: crates/windlass/src/docs/guide.md and the help texts. Leaves: docs/guide.md and docs/commands.md. Tests
//! compare both, so that neither can fall behind.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use regex::{Captures, Regex};

const HEADER: &str =
    "<!-- Written by `cargo xtask docs` from crates/windlass/src/docs/guide.md; a test compares. -->\n\n";
const LANGUAGES: &str = "[Index](README.md) · [中文](guide.zh-CN.md)\n";

pub(crate) fn run() -> Result<()> {
    fs::write(root().join("docs/guide.md"), guide()?)?;
    let mut command = crate::kubernetes::cargo();
    command.args(["test", "--quiet", "--package", "windlass-cli", "--bin", "windlass", "reference"]);
    let status = command.env("WINDLASS_WRITE_DOCS", "1").status();
    ensure!(status.context("failed to run cargo")?.success(), "failed to write docs/commands.md");
    Ok(())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The guide as a page: what rustdoc hides is left out, and what only rustdoc can link to is plain code.
fn guide() -> Result<String> {
    let source = fs::read_to_string(root().join("crates/windlass/src/docs/guide.md"))?.replace("\r\n", "\n");
    let item = Regex::new(r"\[(`[^`\]]+`)\]\((?:crate|kube)::[^)]*\)")?;
    let mut page = HEADER.to_owned();
    let mut in_rust = false;
    for (number, line) in source.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            let opens = !info.is_empty();
            in_rust = opens && is_rust(info);
            page.push_str(if in_rust { "```rust" } else { line });
        } else if in_rust && (line.trim() == "#" || line.trim_start().starts_with("# ")) {
            continue;
        } else {
            let plain = |found: &Captures<'_>| found[1].to_owned();
            page.push_str(&if in_rust { line.into() } else { item.replace_all(line, plain) });
        }
        page.push('\n');
        if number == 0 {
            page.push('\n');
            page.push_str(LANGUAGES);
        }
    }
    Ok(page)
}

/// Whether rustdoc would take a block of this kind for Rust.
fn is_rust(info: &str) -> bool {
    info.split(',').all(|word| ["rust", "no_run", "ignore", "should_panic", "compile_fail"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_on_the_web_is_that_of_the_sdk() {
        let written = fs::read_to_string(root().join("docs/guide.md")).unwrap().replace("\r\n", "\n");
        assert!(written == guide().unwrap(), "docs/guide.md differs; `cargo xtask docs` writes it anew");
    }

    #[test]
    fn nothing_that_only_rustdoc_understands_is_left() {
        let guide = guide().unwrap();
        assert!(!guide.contains("](crate::") && !guide.contains("\n# use "), "{guide}");
        assert!(guide.contains("| `ctrl.Manager` | `Operator` |"), "{guide}");
    }
}
