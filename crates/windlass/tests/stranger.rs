//! The example of the crate's front page, in a crate of its own: with the dependencies that the page shows and no others,
//! outside the workspace. What is built is shared with the workspace as far as features agree.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PAGE: &str = include_str!("../src/lib.rs");

/// The text of the first block of a language.
fn block(language: &str) -> String {
    let lines = PAGE.lines().map(|line| line.trim_start_matches("//!"));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block = lines.skip_while(|line| *line != format!("```{language}")).skip(1);
    block.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect()
}

fn write(root: &Path, workspace: &Path) {
    let windlass = format!("\"{}\"", workspace.join("crates/windlass").display());
    let dependencies = block("toml").replace("\"../windlass/crates/windlass\"", &windlass);
    assert!(dependencies.contains(&windlass), "the page must show where windlass comes from: {dependencies}");
    let package =
        "[package]\nname = \"greeting\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    // Nobody debugs it, and line tables cost time; like the workspace, for whose dependencies it would build anew.
    let profile =
        "\n[profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n";
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("Cargo.toml"), format!("{package}{dependencies}{profile}")).unwrap();
    fs::write(root.join("src/main.rs"), block("no_run")).unwrap();
    // The versions of the workspace: nothing is downloaded.
    fs::copy(workspace.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
    fs::copy(workspace.join("rust-toolchain.toml"), root.join("rust-toolchain.toml")).unwrap();
}

#[test]
fn the_example_of_the_front_page_is_a_crate_of_its_own() {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stranger");
    write(&root, &workspace);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--offline", "--quiet", "--", "manifests", "--image", "greeting:1"]);
    command.current_dir(&root).env("CARGO_TARGET_DIR", target);
    // What cargo tells a test about its package would make build scripts that watch it run again.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let ran = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    assert!(printed.contains("name: greetings.example.com"), "{printed}");
}
