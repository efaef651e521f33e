//! Writes the modules of `tests/it/generated` anew, from the definitions that the test of the round trip reads.
//! `cargo run -p windlass-crd --example types`, and for the stored version of a definition, on stdout, `.. --example types FILE`.

use std::{error::Error, path::Path};

use windlass_crd::{Definition, Options};

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(file) = std::env::args().nth(1) {
        for definition in Definition::parse(&fs_err::read_to_string(file)?)? {
            if let Some(version) = definition.storage() {
                print!("{}", definition.rust(&version.name, &Options::default())?.source);
            }
        }
        return Ok(());
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut modules = Vec::new();
    for folder in [here.join("../../config/crd/bases"), here.join("tests/it/definitions")] {
        for entry in fs_err::read_dir(&folder)? {
            for definition in Definition::parse(&fs_err::read_to_string(entry?.path())?)? {
                for version in &definition.versions {
                    let name = format!("{}_{}", definition.names.singular.replace('-', "_"), version.name);
                    let module = definition.rust(&version.name, &Options::default())?;
                    fs_err::write(here.join(format!("tests/it/generated/{name}.rs")), module.source)?;
                    modules.push(name);
                }
            }
        }
    }
    modules.sort();
    println!("{}", modules.join("\n"));
    Ok(())
}
