//! The same for the operator of a project: it is built, and its own program says what it needs.

use std::{ffi::OsString, io::Read, path::Path};

use serde_json::Value;
use windlass_deploy::Release;

use crate::{
    args::{ProjectDeployArgs, ProjectInstallArgs, ProjectUndeployArgs, ProjectUninstallArgs},
    error::Error,
    printer::Printer,
    project::{self, Project, build, build::Manner},
};

pub(crate) async fn install(args: &ProjectInstallArgs, printer: Printer) -> Result<(), Error> {
    let release = release(&Project::here()?, &args.arguments).await?;
    super::install(&args.common, &release, printer).await
}

pub(crate) async fn uninstall(args: &ProjectUninstallArgs, printer: Printer) -> Result<(), Error> {
    let release = release(&Project::here()?, &args.arguments).await?;
    super::uninstall(&args.common, &release, printer).await
}

pub(crate) async fn deploy(args: &ProjectDeployArgs, printer: Printer) -> Result<(), Error> {
    if let Some(file) = &args.file {
        return super::deploy(&args.common, &Release::new(read(file)?)?, printer).await;
    }
    let project = Project::here()?;
    let mut arguments: Vec<OsString> = Vec::new();
    if !args.common.undo {
        let image = args.common.image.clone().or_else(|| configured(&project.root));
        let image = image.ok_or(Error::NoImage)?;
        printer.fact("image", &image)?;
        arguments.extend(["--image".into(), image.into()]);
    }
    if let Some(namespace) = &args.common.namespace {
        arguments.extend(["--namespace".into(), namespace.into()]);
    }
    if let Some(replicas) = args.common.replicas {
        arguments.extend(["--replicas".into(), replicas.to_string().into()]);
    }
    arguments.extend(args.arguments.iter().cloned());
    super::deploy(&args.common, &release(&project, &arguments).await?, printer).await
}

pub(crate) async fn undeploy(args: &ProjectUndeployArgs, printer: Printer) -> Result<(), Error> {
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(namespace) = &args.common.namespace {
        arguments.extend(["--namespace".into(), namespace.into()]);
    }
    arguments.extend(args.arguments.iter().cloned());
    let release = release(&Project::here()?, &arguments).await?;
    super::undeploy(&args.common, &release, printer).await
}

/// Builds the project, and asks its program what it needs in a cluster.
async fn release(project: &Project, arguments: &[OsString]) -> Result<Release, Error> {
    let program = project.build(Manner { quiet: true, ..Manner::default() }).await?;
    let all: Vec<OsString> = std::iter::once("manifests".into()).chain(arguments.iter().cloned()).collect();
    let text = build::printed(&program, &project.root, &all).await?;
    Ok(Release::new(parse(&text, &format!("{} manifests", project.name))?)?)
}

fn parse(text: &str, whence: &str) -> Result<Vec<Value>, Error> {
    let objects = serde_saphyr::from_multiple::<Value>(text)
        .map_err(|source| project::Error::Printed { command: whence.to_owned(), source: source.into() })?;
    let mut all = Vec::new();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        match object["items"].as_array() {
            Some(items) if object["kind"] == "List" => all.extend(items.iter().cloned()),
            _ => all.push(object),
        }
    }
    Ok(all)
}

/// Objects from a file, from the YAML files of a directory, or from stdin.
fn read(path: &Path) -> Result<Vec<Value>, Error> {
    let failed = |source| Error::ReadObjects { path: path.to_owned(), source };
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return parse(&text, "stdin");
    }
    if !path.is_dir() {
        return parse(&std::fs::read_to_string(path).map_err(failed)?, &path.display().to_string());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let yaml = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        if yaml && !name.starts_with("kustomization.") {
            files.push(file);
        }
    }
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .map_err(|source| Error::ReadObjects { path: file.clone(), source })?;
        objects.extend(parse(&text, &file.display().to_string())?);
    }
    Ok(objects)
}

/// The image that `config/manager/kustomization.yaml` puts in.
fn configured(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("config/manager/kustomization.yaml")).ok()?;
    let kustomization: Value = serde_saphyr::from_str(&text).ok()?;
    let images = kustomization["images"].as_array()?;
    let image = images.iter().find(|image| image["name"] == "controller")?;
    let name = image["newName"].as_str()?;
    if let Some(digest) = image["digest"].as_str() {
        return Some(format!("{name}@{digest}"));
    }
    Some(format!("{name}:{}", image["newTag"].as_str().unwrap_or("latest")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_the_one_that_kustomize_puts_in() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(configured(folder.path()), None);
        let manager = folder.path().join("config/manager");
        std::fs::create_dir_all(&manager).unwrap();
        let write = |text: &str| std::fs::write(manager.join("kustomization.yaml"), text).unwrap();
        write("images:\n- name: controller\n  newName: r:5000/shop\n  newTag: \"2\"\n");
        assert_eq!(configured(folder.path()).as_deref(), Some("r:5000/shop:2"));
        write("images:\n- name: controller\n  newName: shop\n  digest: sha256:0\n");
        assert_eq!(configured(folder.path()).as_deref(), Some("shop@sha256:0"));
        write("resources: []\n");
        assert_eq!(configured(folder.path()), None);
    }

    #[test]
    fn a_stream_and_a_list_and_a_directory_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("b.yaml", "kind: List\nitems:\n- kind: B\n- kind: C\n");
        write("a.yaml", "kind: A\n---\n---\nkind: AA\n");
        write("kustomization.yaml", "kind: Kustomization\n");
        write("readme.txt", "no\n");
        let kinds: Vec<String> = read(folder.path())
            .unwrap()
            .iter()
            .map(|object| object["kind"].as_str().unwrap().into())
            .collect();
        assert_eq!(kinds, ["A", "AA", "B", "C"]);
        assert!(matches!(read(Path::new("/nonexistent.yaml")), Err(Error::ReadObjects { .. })));
    }
}
