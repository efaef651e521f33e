//! The project of an operator's author: a crate outside this workspace that uses windlass, and windlass-cluster in its
//! tests.
//!
//! Enters a folder; leaves a package in it, with this workspace's lock file, so that nothing is downloaded.

use std::path::{Path, PathBuf};

use anyhow::Result;

const MAIN: &str = "fn main() {}\n";

pub(super) fn workspace() -> Result<PathBuf> {
    Ok(fs_err::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?)
}

pub(super) fn write(folder: &Path, workspace: &Path) -> Result<()> {
    // A path in TOML as JSON writes it: a backslash is escaped in both in the same way.
    let path = |member: &str| serde_json::to_string(&workspace.join("crates").join(member));
    let manifest = format!(
        "[package]\nname = \"greeting\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nwindlass = {{ path = {} }}\nschemars = \"1\"\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\nthiserror = \"2\"\n\n\
         [dev-dependencies]\ntokio = {{ version = \"1\", features = [\"macros\", \"rt\", \"test-util\"] }}\n\
         windlass-cluster = {{ path = {} }}\n",
        path("windlass")?,
        path("cluster")?,
    );
    fs_err::create_dir(folder.join("src"))?;
    fs_err::write(folder.join("src/main.rs"), MAIN)?;
    fs_err::write(folder.join("Cargo.toml"), manifest)?;
    for shared in ["Cargo.lock", "rust-toolchain.toml"] {
        fs_err::copy(workspace.join(shared), folder.join(shared))?;
    }
    Ok(())
}
