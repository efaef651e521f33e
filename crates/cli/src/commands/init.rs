//! `windlass init`: a new project, empty or with what a Go project has.

use std::path::{Path, PathBuf};

use windlass::{Operator, Placement};
use windlass_scaffold::{
    commands::{InitRequest, from_kubebuilder, init, read_kubebuilder},
    names,
    project::License,
};

use super::scaffold::{Asked, LOCK, carry_out, from_here, here, make, settle_lock};
use crate::{
    args::scaffold::{self, InitArgs},
    error::Error,
    printer::Printer,
};

pub(super) fn run(args: &InitArgs, printer: Printer) -> Result<(), Error> {
    match &args.from_kubebuilder {
        Some(source) => ported(args, source, printer),
        None => fresh(args, printer),
    }
}

fn fresh(args: &InitArgs, printer: Printer) -> Result<(), Error> {
    let folder = folder(args.name.as_deref().unwrap_or(Path::new(".")))?;
    let mut asked = Asked::default();
    let question = "Domain of its API groups (such as example.com)";
    let domain = asked.value("--domain", args.domain.as_ref(), question, names::domain)?;
    asked.complete()?;
    let request = request(args, folder, domain)?;
    carry_out(&init(&request)?, args.dry_run, printer)?;
    if args.dry_run {
        return Ok(());
    }
    settle_lock(&request.folder);
    enter(&request.folder, printer)?;
    printer.command("windlass create api --group GROUP --version v1alpha1 --kind KIND")?;
    printer.command("cargo test")
}

/// A project with what a Go project has.
fn ported(args: &InitArgs, source: &Path, printer: Printer) -> Result<(), Error> {
    let go = read_kubebuilder(source)?;
    let folder = folder(args.name.as_deref().unwrap_or(Path::new(&go.name)))?;
    let mut request = request(args, folder, go.domain.clone())?;
    request.repo = request.repo.or_else(|| Some(go.repo.clone()).filter(|repo| !repo.is_empty()));
    carry_out(&from_kubebuilder(&request, &go, source)?, args.dry_run, printer)?;
    if args.dry_run {
        return Ok(());
    }
    settle_lock(&request.folder);
    if args.make {
        make(&request.folder, printer)?;
    }
    enter(&request.folder, printer)?;
    printer.command("cargo test")?;
    printer.aside("PORTING.md lists what is left to port")
}

fn folder(name: &Path) -> Result<PathBuf, Error> {
    if name == Path::new(".") { here() } else { Ok(here()?.join(name)) }
}

fn request(args: &InitArgs, folder: PathBuf, domain: String) -> Result<InitRequest, Error> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(InitRequest {
        generated: config(&name)?,
        name,
        folder,
        domain,
        repo: args.repo.clone(),
        license: match args.license {
            scaffold::License::None => License::None,
            scaffold::License::Mit => License::Mit,
            scaffold::License::Apache => License::Apache,
        },
        owner: args.owner.clone(),
        sdk: args.sdk.clone(),
        lock: Some(LOCK.to_owned()),
    })
}

/// How to get to a new project.
fn enter(folder: &Path, printer: Printer) -> Result<(), Error> {
    printer.line("")?;
    if folder != here()? {
        printer.command(format_args!("cd {}", from_here(folder).display()))?;
    }
    Ok(())
}

/// What the operator itself would write to `config/`, which has no kinds yet.
fn config(name: &str) -> Result<Vec<(String, String)>, Error> {
    let operator = Operator::new(name);
    let placement = Placement::new(format!("{name}-system"), format!("{name}:latest"));
    let files = operator.config_tree(&placement).files().map_err(|error| Error::Config(error.into()))?;
    Ok(files.into_iter().map(|file| (format!("config/{}", file.path), file.content)).collect())
}
