//! What ships an operator: `manifests --format`, `bundle` and `catalog`, for a project and for the seven operators.
//!
//! Enters: arguments. An operator is asked for its objects ([`source`]), a person or Cargo.toml for the facts
//! ([`facts`]); `windlass_package` makes files of both, and this writes, compares or lists them.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use windlass_package::{Changes, Facts, Files, Objects, catalog as catalogue, helm, olm};

use crate::{
    args::{
        BundleArgs, BundleCommand, BundleMakeArgs, ChannelArgs, ManifestsArgs, OperatorsBundleArgs,
        OperatorsManifestsArgs, PackageFormat, WriteArgs,
    },
    error::{Error as CommandError, Explained},
    exit_status::ExitStatus,
    printer::Printer,
    project,
};

mod catalog;
mod facts;
mod source;

pub(super) use catalog::catalog;
use source::Source;

/// What can be wrong with what is to be packed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Package(#[from] windlass_package::Error),
    #[error("{count} of the files in {} are not what would be written: {}", folder.display(), names.join(", "))]
    Stale { folder: PathBuf, count: usize, names: Vec<String>, command: String },
    #[error("failed to read {}", path.display())]
    Icon { path: PathBuf, source: std::io::Error },
    #[error("failed to use {} as an icon", .0.display())]
    IconType(PathBuf),
    #[error("failed to choose the kind {name:?}: the operator has no such kind")]
    UnknownKind { name: String, known: Vec<String> },
    #[error("failed to read what cargo says of the package")]
    Metadata(#[source] serde_json::Error),
    #[error("failed to use {0:?} as a maintainer")]
    Maintainer(String),
    #[error("--force and --output are not for the format {0}")]
    NotForced(&'static str),
    #[error("failed to find a catalogue in {}", .0.display())]
    NoCatalog(PathBuf),
    #[error("failed to add several bundles with one --image")]
    OneImage,
}

impl Explained for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Package(error) => return error.hint(),
            Self::Stale { command, .. } => format!("write it anew: {command}"),
            Self::IconType(_) => "it must end with .svg, .png, .jpg or .gif".into(),
            Self::UnknownKind { known, .. } => format!("there are {}", known.join(", ")),
            Self::Maintainer(_) => "write 'NAME <MAIL>'".into(),
            Self::NotForced(_) => {
                "--dry-run and --check say what differs; a file without its first line is left alone".into()
            }
            Self::NoCatalog(_) => "make one: windlass catalog add".into(),
            Self::OneImage => "add them one after the other".into(),
            _ => return None,
        })
    }

    fn status(&self) -> ExitStatus {
        if matches!(self, Self::Metadata(_)) { ExitStatus::Error } else { ExitStatus::Failure }
    }
}

/// `windlass manifests --format yaml|helm|olm`.
pub(super) async fn manifests(args: &ManifestsArgs, printer: Printer) -> Result<(), CommandError> {
    let mut arguments = args.arguments.clone();
    if let (PackageFormat::Kustomize, Some(image)) = (args.format, &args.facts.image) {
        // The program writes these files itself, and keeps the image that they name unless it is told another.
        arguments.push(format!("--image={image}").into());
    }
    let source = Source::project(&args.only, &arguments).await?;
    let facts = source.facts(&args.facts).await?;
    let command = format!("windlass manifests --format {}", word(args.format));
    pack(
        &source,
        facts,
        args.format,
        args.out.clone(),
        command,
        &ChannelArgs::default(),
        &args.write,
        printer,
    )
    .await
}

/// `windlass operators manifests`.
pub(super) async fn operators_manifests(
    args: &OperatorsManifestsArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let source = Source::Operators { only: args.only.clone(), placed: args.placed.clone() };
    let facts = source.facts(&args.facts).await?;
    let (format, chosen) = (word(args.format), only(&args.only));
    let command = format!("windlass operators manifests --format {format}{chosen}{}", args.placed.flags());
    pack(
        &source,
        facts,
        args.format,
        args.out.clone(),
        command,
        &ChannelArgs::default(),
        &args.write,
        printer,
    )
    .await
}

/// `windlass bundle`.
pub(super) async fn bundle(args: &BundleArgs, printer: Printer) -> Result<(), CommandError> {
    if let Some(BundleCommand::Validate { bundle }) = &args.command {
        let source = catalogue::Source::read(bundle).map_err(Error::from)?;
        source.validate().map_err(Error::from)?;
        return printer.fact("bundle", format_args!("{} is whole", source.name()));
    }
    let BundleMakeArgs { facts, channels, out, write, arguments } = &args.make;
    let source = Source::project(&[], arguments).await?;
    let facts = source.facts(facts).await?;
    let command = "windlass bundle".to_owned();
    pack(&source, facts, PackageFormat::Olm, out.clone(), command, channels, write, printer).await
}

/// `windlass operators bundle`.
pub(super) async fn operators_bundle(
    args: &OperatorsBundleArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let source = Source::Operators { only: args.only.clone(), placed: args.placed.clone() };
    let facts = source.facts(&args.facts).await?;
    let command = format!("windlass operators bundle{}{}", only(&args.only), args.placed.flags());
    let out = Some(args.out.clone());
    pack(&source, facts, PackageFormat::Olm, out, command, &args.channels, &args.write, printer).await
}

fn word(format: PackageFormat) -> &'static str {
    match format {
        PackageFormat::Kustomize => "kustomize",
        PackageFormat::Yaml => "yaml",
        PackageFormat::Helm => "helm",
        PackageFormat::Olm => "olm",
    }
}

fn only(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" --only {}", names.join(",")) }
}

#[expect(clippy::too_many_arguments, reason = "each is a part of one command line")]
async fn pack(
    source: &Source,
    mut facts: Facts,
    format: PackageFormat,
    out: Option<PathBuf>,
    command: String,
    channels: &ChannelArgs,
    write: &WriteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    facts.command = command;
    match format {
        PackageFormat::Kustomize => source.kustomize(&facts, out, write, printer).await,
        PackageFormat::Yaml => {
            let objects = source.placed(&facts).await?;
            let text = stream(&objects)?;
            let Some(out) = out else { return printer.answer(text.as_bytes()) };
            let files = Files::single(".windlass-generated", "install.yaml", text);
            written(&files, &out, &facts.command, Vec::new(), write, printer)
        }
        PackageFormat::Helm => {
            let files = helm::chart(&facts, &source.objects(&facts, false).await?).map_err(Error::from)?;
            let out = out.unwrap_or_else(|| source.root().join("chart"));
            written(&files, &out, &facts.command, Vec::new(), write, printer)
        }
        PackageFormat::Olm => {
            let objects = source.objects(&facts, true).await?;
            let options = options(&facts, channels);
            let bundle = olm::bundle(&facts, &objects, &source.samples()?, &options).map_err(Error::from)?;
            let out = out.unwrap_or_else(|| source.root());
            written(&bundle.files, &out, &facts.command, bundle.remarks, write, printer)
        }
    }
}

fn stream(objects: &[Value]) -> Result<String, CommandError> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).map_err(|error| CommandError::Encode(error.into()))?);
    }
    Ok(text)
}

fn options(facts: &Facts, args: &ChannelArgs) -> olm::Options {
    // A bare version means one of this package.
    let whole = |version: &String| match windlass_package::Version::parse(version) {
        Ok(version) => format!("{}.v{version}", facts.name),
        Err(_) => version.clone(),
    };
    olm::Options {
        channels: args.channels.clone(),
        default_channel: args.default_channel.clone(),
        replaces: args.replaces.as_ref().map(whole),
        skips: args.skips.iter().map(whole).collect(),
        skip_range: args.skip_range.clone(),
        architectures: args.arch.clone(),
    }
}

/// What was done, as data.
#[derive(Serialize)]
struct Answer<'a> {
    folder: String,
    written: &'a [String],
    removed: &'a [String],
    kept: &'a [String],
    remarks: &'a [String],
}

/// Writes files, or says what would be written, or fails because it is not as it would be.
fn written(
    files: &Files,
    out: &Path,
    command: &str,
    remarks: Vec<String>,
    args: &WriteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let plan = files.plan(out, args.force).map_err(Error::from)?;
    let changes = plan.changes();
    if !args.check && !args.dry_run {
        plan.apply().map_err(Error::from)?;
    }
    match args.output.output {
        Some(format) => {
            let answer = Answer {
                folder: out.display().to_string(),
                written: &changes.written,
                removed: &changes.removed,
                kept: &changes.kept,
                remarks: &remarks,
            };
            printer.data(format, &answer)?;
        }
        None => tell(changes, out, &remarks, args, printer)?,
    }
    if args.check && !changes.is_empty() {
        let names: Vec<String> = changes.written.iter().chain(&changes.removed).cloned().collect();
        let command = format!("{command} --out {}", out.display());
        return Err(Error::Stale { folder: out.to_owned(), count: names.len(), names, command }.into());
    }
    Ok(())
}

fn tell(
    changes: &Changes,
    out: &Path,
    remarks: &[String],
    args: &WriteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let (write, remove) = match (args.check, args.dry_run) {
        (true, _) => ("stale", "left over"),
        (_, true) => ("would write", "would remove"),
        _ => ("wrote", "removed"),
    };
    for (verb, paths) in [(write, &changes.written), (remove, &changes.removed)] {
        for path in paths {
            printer.line(format_args!("{verb} {}", out.join(path).display()))?;
        }
    }
    for path in &changes.kept {
        let path = out.join(path);
        printer.line(format_args!("kept {} (changed by hand; --force replaces it)", path.display()))?;
    }
    for remark in remarks {
        printer.warning(remark)?;
    }
    if changes.is_empty() && changes.kept.is_empty() {
        printer.aside(format_args!("{} is up to date", out.display()))?;
    }
    Ok(())
}

/// What an operator's objects are, for whoever packs them.
fn objects(all: Vec<Value>, restricted: Vec<Value>) -> Result<Objects, CommandError> {
    Ok(Objects::new(all).map_err(Error::from)?.restricted(restricted))
}

/// What was printed by a program, as objects.
fn printed(command: &str, text: &str) -> Result<Vec<Value>, project::Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| project::Error::Printed {
        command: command.to_owned(),
        source,
    };
    let list: Value = serde_json::from_str(text).map_err(|error| failed(error.into()))?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}
