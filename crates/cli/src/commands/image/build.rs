//! `windlass image build`: a static program for each platform, packed, listed and written.

use std::{io::BufWriter, path::Path};

use fs_err as fs;
use windlass_image::{
    Image, Layout, Platform, Reference, inspect, operator,
    sbom::{Document, Tree, tree_arguments},
    write_docker_archive,
};

use super::{
    Error, PLACE,
    compile::compile,
    package::{self, Package},
    remember, shown, size,
};
use crate::{
    args::{Destination, ImageBuildArgs},
    error,
    printer::Printer,
};

pub(in crate::commands) async fn build(args: &ImageBuildArgs, printer: Printer) -> Result<(), error::Error> {
    let time = epoch(std::env::var("SOURCE_DATE_EPOCH").ok())?;
    let platforms = platforms(args);
    let outputs: &[Destination] = &args.output;
    if platforms.len() > 1 && outputs.iter().any(|one| matches!(one, Destination::DockerArchive(_))) {
        return Err(Error::Platforms(platforms.len()).into());
    }
    let package = Package::find(args.package.as_deref(), args.bin.as_deref()).await?;
    let reference = match &args.image {
        Some(reference) => reference.clone(),
        None => named(&package)?,
    };
    let (mut images, mut sboms) = (Vec::new(), Vec::new());
    for platform in platforms {
        let given = args.binary.iter().find(|(found, _)| *found == platform).map(|(_, path)| path.clone());
        let path = match &given {
            Some(path) => path.clone(),
            None => compile(&package, &platform, &args.profile).await?,
        };
        let (image, program) = pack(args, &package, &platform, &path, time)?;
        let packed: u64 = image.blobs.iter().map(|(blob, _)| blob.size).sum();
        printer.remark(
            &platform.architecture,
            size(packed),
            format_args!("{} unpacked", size(program.len() as u64)),
        )?;
        // Of a program from elsewhere nobody here knows what it is made of.
        let listed = !args.no_sbom && given.is_none();
        sboms.push(if listed { Some(listing(&package, &platform, &program, time).await?) } else { None });
        images.push(image);
    }
    if let Some(document) = sboms.iter().flatten().next() {
        let crates = match document.packages.len() {
            1 => "1 crate".to_owned(),
            count => format!("{count} crates"),
        };
        printer.remark("sbom", crates, "SPDX 2.3, as a referrer")?;
    }
    let layout = Layout::new(&reference, images, sboms);
    printer.fact("image", &reference)?;
    printer.fact("digest", &layout.image(None).map_err(Error::Open)?.digest)?;
    let usual = [Destination::Layout(package.root.join(PLACE))];
    let outputs = if outputs.is_empty() { &usual } else { outputs };
    for output in outputs {
        write(&layout, &reference, output)?;
        let (Destination::Layout(path) | Destination::Archive(path) | Destination::DockerArchive(path)) =
            output;
        printer.fact("written", shown(path))?;
    }
    Ok(remember(&package.root, outputs)?)
}

/// The platforms that are asked for, or those of the programs that are given, or this machine's; each once.
fn platforms(args: &ImageBuildArgs) -> Vec<Platform> {
    let mut platforms = args.platform.clone();
    if platforms.is_empty() {
        platforms = args.binary.iter().map(|(platform, _)| platform.clone()).collect();
    }
    if platforms.is_empty() {
        platforms.push(Platform::of_this_machine());
    }
    platforms.sort();
    platforms.dedup();
    platforms
}

fn named(package: &Package) -> Result<Reference, Error> {
    // A version's build metadata has a sign that no tag has.
    let tag = package.version.replace('+', "_");
    format!("{}:{tag}", package.program.to_lowercase()).parse().map_err(Error::Name)
}

/// The time of all files: reproducible builds set it for everything that they build.
fn epoch(variable: Option<String>) -> Result<u64, Error> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else { return Ok(0) };
    text.parse().map_err(|_| Error::Epoch(text))
}

fn pack(
    args: &ImageBuildArgs,
    package: &Package,
    platform: &Platform,
    path: &Path,
    time: u64,
) -> Result<(Image, Vec<u8>), Error> {
    let program =
        std::fs::read(path).map_err(|source| Error::ReadProgram { path: path.to_owned(), source })?;
    let found =
        inspect(&program).map_err(|source| Error::Program { path: path.to_owned(), source })?.platform;
    if found != *platform {
        let (found, wanted) = (found.to_string(), platform.to_string());
        return Err(Error::Platform { path: path.to_owned(), found, wanted });
    }
    let mut recipe = operator(platform.clone(), &package.program, program.clone(), time);
    recipe.config.labels = package.labels.clone();
    recipe.config.labels.extend(args.label.iter().cloned());
    let image = recipe.build().map_err(|source| Error::Pack(platform.clone(), source))?;
    Ok((image, program))
}

async fn listing(
    package: &Package,
    platform: &Platform,
    program: &[u8],
    time: u64,
) -> Result<Document, Error> {
    let arguments = tree_arguments(&package.name, platform.rust_target());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = package::run(&package.root, &arguments).await?;
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Sbom { name: package.name.clone(), source };
    let lock = fs::read_to_string(package.root.join("Cargo.lock")).map_err(|error| failed(error.into()))?;
    let tree = Tree::parse(&output, &lock).map_err(|error| failed(error.into()))?;
    Ok(Document::new(&package.program, program, tree, time))
}

fn write(layout: &Layout, reference: &Reference, output: &Destination) -> Result<(), Error> {
    match output {
        Destination::Layout(path) => layout.write_directory(path).map_err(Error::Write),
        Destination::Archive(path) => {
            let file = create(path)?;
            layout.write_archive(file).map_err(Error::Write)
        }
        Destination::DockerArchive(path) => {
            let image = layout.image(None).map_err(Error::Open)?;
            let manifests = layout.manifests(image).map_err(Error::Open)?;
            let platform =
                manifests.into_iter().find_map(|manifest| manifest.platform).ok_or(Error::Platforms(0))?;
            let exported =
                layout.export(None, &platform, vec![reference.to_string()]).map_err(Error::Write)?;
            let failed = |source| Error::WriteFile { path: path.clone(), source };
            write_docker_archive(create(path)?, &[exported]).map_err(failed)
        }
    }
}

fn create(path: &Path) -> Result<BufWriter<std::fs::File>, Error> {
    let failed = |source| Error::WriteFile { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::File::create(path).map(BufWriter::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_image_is_named_after_its_program_and_version() {
        let package = Package {
            root: "/".into(),
            name: "shop".into(),
            version: "1.2.0+x".into(),
            program: "shop".into(),
            labels: BTreeMap::new(),
        };
        assert_eq!(named(&package).unwrap().to_string(), "docker.io/library/shop:1.2.0_x");
        let odd = Package { program: "-".into(), ..package };
        assert!(named(&odd).unwrap_err().to_string().contains("--image"));
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        assert_eq!((epoch(None).unwrap(), epoch(Some(String::new())).unwrap()), (0, 0));
        assert_eq!(epoch(Some("1700000000".into())).unwrap(), 1_700_000_000);
        assert!(epoch(Some("yesterday".into())).unwrap_err().to_string().contains("\"yesterday\""));
    }
}
