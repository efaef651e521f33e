//! Writes the generated files of `config/`: `cargo run -p windlass-operators --example manifests`.

use std::path::Path;

use anyhow::Context;
use windlass_operators::manifests::tree;

#[expect(clippy::print_stdout, reason = "what a program prints")]
fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate must have a parent")?;
    let changes = tree()?.write(&root.join("config"))?;
    for (verb, paths) in [("wrote", changes.written), ("removed", changes.removed)] {
        for path in paths {
            println!("{verb} config/{path}");
        }
    }
    Ok(())
}
