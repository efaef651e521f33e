//! Writes the generated files of `config/`: `cargo run -p windlass-operators --example manifests`.

use std::path::Path;

use anyhow::Context;
use windlass_operators::manifests::manifests;

#[expect(clippy::print_stdout, reason = "what a program prints")]
fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate must have a parent")?;
    for manifest in manifests()? {
        let path = root.join(&manifest.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("failed to create {}", folder.display()))?;
        }
        std::fs::write(&path, &manifest.content)
            .with_context(|| format!("failed to write {}", path.display()))?;
        println!("{}", manifest.path);
    }
    Ok(())
}
