//! Which program goes into an image: that of the project, or of a package of the workspace around the working folder.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde::Deserialize;
use tokio::process::Command;

use super::Error;
use crate::project::{self, Project, build::cargo};

/// A package of cargo's, and where it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    /// Where `cargo` runs, and below which the image is put.
    pub(super) root: PathBuf,
    /// Its name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// Its program.
    pub(super) program: String,
    /// What labels tell of it.
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    name: String,
    version: String,
    manifest_path: PathBuf,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    documentation: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Package {
    /// Finds the package that is asked for, or that of the project around the working folder.
    pub(super) async fn find(name: Option<&str>, program: Option<&str>) -> Result<Self, Error> {
        match name {
            Some(name) => {
                let here = std::env::current_dir().map_err(project::Error::WorkingFolder)?;
                let metadata = metadata(&here).await?;
                let found = metadata.packages.into_iter().find(|found| found.name == name);
                let found = found.ok_or_else(|| Error::NoPackage(name.to_owned()))?;
                found.chosen(metadata.workspace_root, name, program)
            }
            None => {
                let project = Project::here()?;
                let metadata = metadata(&project.root).await?;
                let manifest = project.root.join("Cargo.toml");
                let is_own = |found: &Found| same(&found.manifest_path, &manifest);
                let found = metadata.packages.into_iter().find(is_own);
                let found = found.ok_or_else(|| Error::NoPackage(project.name.clone()))?;
                found.chosen(project.root, &project.name, program)
            }
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

impl Found {
    /// The program that is asked for, or the only one, or the one with this name.
    fn chosen(self, root: PathBuf, usual: &str, program: Option<&str>) -> Result<Package, Error> {
        let programs: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.kind.iter().any(|kind| kind == "bin"))
            .map(|target| target.name.as_str())
            .collect();
        let wanted = program.unwrap_or(usual);
        let chosen = match programs.as_slice() {
            [] => return Err(project::Error::NoProgram { name: self.name }.into()),
            several if several.contains(&wanted) => wanted,
            [only] if program.is_none() => only,
            several => {
                let programs = several.iter().map(|&name| name.to_owned()).collect();
                return Err(project::Error::Programs { name: wanted.to_owned(), programs }.into());
            }
        };
        let labels = [
            ("title", Some(chosen.to_owned())),
            ("version", Some(self.version.clone())),
            ("description", self.description.clone()),
            ("licenses", self.license.clone()),
            ("source", self.repository.clone()),
            ("documentation", self.documentation.clone()),
        ];
        let labels = labels
            .into_iter()
            .filter_map(|(key, value)| Some((format!("org.opencontainers.image.{key}"), value?)))
            .collect();
        Ok(Package {
            root,
            program: chosen.to_owned(),
            version: self.version.clone(),
            name: self.name,
            labels,
        })
    }
}

async fn metadata(folder: &Path) -> Result<Metadata, Error> {
    let printed = run(folder, &["metadata", "--no-deps", "--format-version", "1"]).await?;
    serde_json::from_str(&printed).map_err(|error| Error::Metadata(error.into()))
}

/// Runs cargo in a folder, and returns what it prints.
pub(super) async fn run(folder: &Path, arguments: &[&str]) -> Result<String, Error> {
    let program = cargo();
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(|source| project::Error::NoCargo { program, source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(project::Error::Failed { command: format!("cargo {}", arguments[0]), said }.into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(programs: &[&str]) -> Found {
        let target = |name: &&str| Target { name: (*name).to_owned(), kind: vec!["bin".into()] };
        let library = Target { name: "shop".into(), kind: vec!["lib".into()] };
        Found {
            name: "shop".into(),
            version: "1.2.3".into(),
            manifest_path: "/shop/Cargo.toml".into(),
            description: None,
            license: Some("MIT".into()),
            repository: None,
            documentation: None,
            targets: programs.iter().map(target).chain([library]).collect(),
        }
    }

    fn chosen(programs: &[&str], program: Option<&str>) -> Result<String, String> {
        let package = found(programs).chosen("/shop".into(), "shop", program);
        package.map(|package| package.program).map_err(|error| error.to_string())
    }

    #[test]
    fn the_program_is_the_one_that_is_asked_for_the_only_one_or_the_one_of_the_packages_name() {
        assert_eq!(chosen(&["manager"], None), Ok("manager".into()));
        assert_eq!(chosen(&["other", "shop"], None), Ok("shop".into()));
        assert_eq!(chosen(&["other", "shop"], Some("other")), Ok("other".into()));
        assert!(chosen(&["other", "one"], None).unwrap_err().contains("(other, one)"));
        assert!(chosen(&["shop"], Some("nothing")).is_err());
        assert!(chosen(&[], None).unwrap_err().contains("there is no program"));
    }

    #[test]
    fn labels_tell_what_the_package_tells() {
        let labels = found(&["shop"]).chosen("/shop".into(), "shop", None).unwrap().labels;
        let expected = [("licenses", "MIT"), ("title", "shop"), ("version", "1.2.3")];
        let expected =
            expected.map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.to_owned()));
        assert_eq!(labels, BTreeMap::from(expected));
    }
}
