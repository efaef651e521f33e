//! `windlass catalog`: versions added to a catalogue, and the catalogue shown and looked over.

use std::path::Path;

use windlass_package::catalog;

use super::{Error, stream, written};
use crate::{
    args::{CatalogAddArgs, CatalogCommand, CatalogRenderArgs, Format},
    error::Error as CommandError,
    printer::Printer,
};

/// `windlass catalog`.
pub(in crate::commands) fn catalog(command: &CatalogCommand, printer: Printer) -> Result<(), CommandError> {
    match command {
        CatalogCommand::Add(args) => add(args, printer),
        CatalogCommand::Render(args) => render(args, printer),
        CatalogCommand::Validate { catalog } => {
            for (package, catalog) in catalogs(catalog)? {
                catalog.validate().map_err(Error::from)?;
                let versions = catalog.bundles().count();
                printer.fact("catalog", format_args!("{package} is whole, with {versions} versions"))?;
            }
            Ok(())
        }
    }
}

fn add(args: &CatalogAddArgs, printer: Printer) -> Result<(), CommandError> {
    if args.image.is_some() && args.bundles.len() > 1 {
        return Err(Error::OneImage.into());
    }
    let mut sources = Vec::new();
    for folder in &args.bundles {
        sources.push(catalog::Source::read(folder).map_err(Error::from)?);
    }
    let mut packages: Vec<String> = sources.iter().map(|source| source.package().to_owned()).collect();
    packages.sort();
    packages.dedup();
    for package in packages {
        let mut catalog = catalog::Catalog::read(&args.out, &package).map_err(Error::from)?;
        for source in sources.iter().filter(|source| source.package() == package) {
            source.validate().map_err(Error::from)?;
            catalog.add(source, args.image.as_deref(), args.write.force).map_err(Error::from)?;
        }
        catalog.validate().map_err(Error::from)?;
        let files = catalog.files().map_err(Error::from)?;
        written(&files, &args.out, "windlass catalog add", Vec::new(), &args.write, printer)?;
    }
    Ok(())
}

fn render(args: &CatalogRenderArgs, printer: Printer) -> Result<(), CommandError> {
    for (_, catalog) in catalogs(&args.catalog)? {
        match args.output.output {
            Some(Format::Json) => {
                for document in catalog.documents() {
                    printer.data(Format::Json, document)?;
                }
            }
            _ => printer.answer(stream(catalog.documents())?.as_bytes())?,
        }
    }
    Ok(())
}

/// The catalogues of a directory, by their packages.
fn catalogs(folder: &Path) -> Result<Vec<(String, catalog::Catalog)>, CommandError> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let mut packages: Vec<String> = entries
        .filter(|entry| entry.path().join("catalog.yaml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    packages.sort();
    if packages.is_empty() {
        return Err(Error::NoCatalog(folder.to_owned()).into());
    }
    let read = |package: String| {
        let catalog = catalog::Catalog::read(folder, &package).map_err(Error::from)?;
        Ok((package, catalog))
    };
    packages.into_iter().map(read).collect()
}
