//! A Go project of kubebuilder or operator-sdk, read for what a Rust project can take over.
//!
//! [`Project::read`] takes the project's directory and changes nothing. Everything declarative comes as data (kinds,
//! definitions, permissions, samples, webhooks); what is written in Go comes as a list of what is left to port, with the
//! files and the functions.
//!
//! ```no_run
//! use windlass_crd::{Options, kubebuilder::Project};
//!
//! let project = Project::read("../memcached-operator".as_ref())?;
//! for resource in &project.resources {
//!     // The types, for src/<kind>/api.rs.
//!     if let Some(definition) = project.definition(resource) {
//!         let module = definition.rust(&resource.version, &Options::default())?;
//!         println!("{}", module.source);
//!     }
//!     // `.owns::<Deployment>()`, and a list for the person who ports it.
//!     if let Some(controller) = &resource.controller {
//!         for kind in &controller.owns {
//!             println!("owns {:?}", kind.rust_path());
//!         }
//!         for function in &controller.functions {
//!             println!("- [ ] {} ({}:{})", function.name, controller.file.display(), function.line);
//!         }
//!     }
//! }
//! // `.permits([rule(group, [resource], verbs)])`, of the operator.
//! for permission in project.permissions_beyond() {
//!     println!("{permission:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod go;
mod project_file;
mod rbac;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::Definition;

pub use self::{
    go::{Function, GoFile, GoKind},
    project_file::Webhooks,
    rbac::Permission,
};

/// Why a project could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no file `PROJECT`.
    #[error("failed to find the file PROJECT in {}", .0.display())]
    NoProject(PathBuf),
    /// A file of the project could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of the project is not what it should be.
    #[error("failed to understand {}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<crate::Error>,
    },
    /// The layout is of a version that is not known here.
    #[error("failed to use {}: its version is {version:?}, and 2 and 3 are known", path.display())]
    Version {
        /// The file `PROJECT`.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// It is a Windlass project already.
    #[error("failed to use {}: it is a Windlass project already", .0.display())]
    Windlass(PathBuf),
}

/// A Go project.
#[derive(Clone, Debug)]
pub struct Project {
    /// The project's name; the directory's where the file does not say.
    pub name: String,
    /// The domain of its API groups.
    pub domain: String,
    /// The Go module.
    pub repo: String,
    /// Whether kinds of several groups have directories of their own.
    pub multigroup: bool,
    /// Its kinds, each version one.
    pub resources: Vec<Resource>,
    /// What is in `config/crd/bases`.
    pub definitions: Vec<Definition>,
    /// What `config/rbac/role.yaml` permits, one resource each.
    pub permissions: Vec<Permission>,
    /// The objects in `config/samples`.
    pub samples: Vec<Sample>,
    /// What `config/webhook/manifests.yaml` declares, also for kinds that are not the project's.
    pub webhooks: Vec<Webhook>,
    /// Go files that are neither types, controllers, webhooks, tests nor generated: what those call.
    pub other_files: Vec<PathBuf>,
    /// What is missing or was not understood, in one sentence each.
    pub notes: Vec<String>,
}

/// A kind in one version.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The group before the domain; empty where the domain is the whole group.
    pub group: String,
    /// The domain.
    pub domain: String,
    /// `v1`.
    pub version: String,
    /// `CronJob`.
    pub kind: String,
    /// `cronjobs`, from the definition where there is one.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether the project defines the kind: it is neither Kubernetes' own nor somebody else's.
    pub defined: bool,
    /// Whether it has a controller.
    pub has_controller: bool,
    /// The webhooks that it has.
    pub webhooks: Webhooks,
    /// The controller's file, where it was found.
    pub controller: Option<GoFile>,
    /// The files of its webhooks and conversions.
    pub webhook_files: Vec<GoFile>,
}

impl Resource {
    /// The API group: `batch.example.com`.
    pub fn api_group(&self) -> String {
        match (self.group.as_str(), self.domain.as_str()) {
            (group, "") => group.to_owned(),
            ("", domain) => domain.to_owned(),
            (group, domain) => format!("{group}.{domain}"),
        }
    }
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its file, below the project.
    pub file: PathBuf,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// All of it.
    pub object: Value,
}

/// A webhook of `config/webhook/manifests.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Whether it may change objects.
    pub mutating: bool,
    /// Its path on the server.
    pub path: String,
    /// The groups that it is asked about.
    pub groups: Vec<String>,
    /// The versions.
    pub versions: Vec<String>,
    /// The resources.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
    /// `Fail` or `Ignore`.
    pub failure_policy: String,
}

impl Project {
    /// Reads the project in a directory.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let mut project = project_file::read(dir)?;
        for document in documents_below(&dir.join("config/crd/bases"))? {
            let found = Definition::from_value(document.1).map_err(|source| parse(&document.0, source))?;
            project.definitions.push(found);
        }
        project.permissions = rbac::read(&dir.join("config/rbac/role.yaml"))?;
        for (path, object) in documents_below(&dir.join("config/samples"))? {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            if text("kind") != "Kustomization" && !text("kind").is_empty() {
                let file = path.strip_prefix(dir).unwrap_or(&path).to_owned();
                project.samples.push(Sample {
                    file,
                    api_version: text("apiVersion"),
                    kind: text("kind"),
                    object,
                });
            }
        }
        project.webhooks = webhooks(&dir.join("config/webhook/manifests.yaml"))?;
        project.settle();
        go::find(dir, &mut project)?;
        project.note();
        Ok(project)
    }

    /// The definition of a kind.
    pub fn definition(&self, resource: &Resource) -> Option<&Definition> {
        let group = resource.api_group();
        self.definitions.iter().find(|found| found.group == group && found.names.kind == resource.kind)
    }

    /// What the role permits beyond what Windlass computes from the controllers: reading and finalizing their kinds and
    /// writing their status, writing what they own, reading what they watch, events and leases.
    pub fn permissions_beyond(&self) -> Vec<Permission> {
        rbac::beyond(self)
    }

    /// Takes over what the definitions and the webhooks know better than the file `PROJECT`.
    fn settle(&mut self) {
        for index in 0..self.resources.len() {
            if let Some(definition) = self.definition(&self.resources[index]).cloned() {
                let resource = &mut self.resources[index];
                resource.plural = definition.names.plural;
                resource.namespaced = definition.scope == crate::Scope::Namespaced;
                resource.webhooks.conversion |= definition.conversion == "Webhook";
            }
            let resource = &mut self.resources[index];
            let group = resource.api_group();
            for webhook in &self.webhooks {
                let is_asked = webhook.groups.contains(&group)
                    && webhook.versions.contains(&resource.version)
                    && webhook.resources.contains(&resource.plural);
                resource.webhooks.defaulting |= is_asked && webhook.mutating;
                resource.webhooks.validation |= is_asked && !webhook.mutating;
            }
        }
    }

    fn note(&mut self) {
        let mut notes = Vec::new();
        for resource in &self.resources {
            let name = format!("{} {}/{}", resource.kind, resource.api_group(), resource.version);
            match self.definition(resource) {
                None if resource.defined => {
                    notes.push(format!(
                        "{name} has no definition in config/crd/bases: run `make manifests` there first"
                    ));
                }
                Some(definition) if definition.version(&resource.version).is_err() => {
                    notes.push(format!("the definition of {name} does not have this version: run `make manifests` there first"));
                }
                _ => {}
            }
            if resource.has_controller && resource.controller.is_none() {
                notes.push(format!("the controller of {name} was not found"));
            }
        }
        if self.permissions.is_empty() {
            notes.push("config/rbac/role.yaml permits nothing, or is not there".to_owned());
        }
        self.notes.extend(notes);
    }
}

fn parse(path: &Path, source: crate::Error) -> Error {
    Error::Parse { path: path.to_owned(), source: source.into() }
}

/// The text of a file; none where there is none.
fn text_of(path: &Path) -> Result<Option<String>, Error> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}

/// The YAML documents of a file; none where there is no file.
fn documents(path: &Path) -> Result<Vec<Value>, Error> {
    let Some(text) = text_of(path)? else { return Ok(Vec::new()) };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| parse(path, crate::Error::yaml(&error)))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The entries of a directory in the order of their names; none where there is no directory.
fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let listing = match fs_err::read_dir(path) {
        Ok(listing) => listing,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(source) => return Err(failed(source)),
    };
    let mut entries: Vec<PathBuf> =
        listing.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    entries.sort();
    Ok(entries)
}

/// The YAML documents of a directory, with their files.
fn documents_below(path: &Path) -> Result<Vec<(PathBuf, Value)>, Error> {
    let mut found = Vec::new();
    for file in entries(path)? {
        if file.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            found.extend(documents(&file)?.into_iter().map(|document| (file.clone(), document)));
        }
    }
    Ok(found)
}

fn webhooks(path: &Path) -> Result<Vec<Webhook>, Error> {
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for document in documents(path)? {
        let mutating = match document["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => true,
            Some("ValidatingWebhookConfiguration") => false,
            _ => continue,
        };
        for webhook in document["webhooks"].as_array().into_iter().flatten() {
            for rule in webhook["rules"].as_array().into_iter().flatten() {
                found.push(Webhook {
                    mutating,
                    path: webhook
                        .pointer("/clientConfig/service/path")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned(),
                    groups: strings(&rule["apiGroups"]),
                    versions: strings(&rule["apiVersions"]),
                    resources: strings(&rule["resources"]),
                    operations: strings(&rule["operations"]),
                    failure_policy: webhook["failurePolicy"].as_str().unwrap_or("Fail").to_owned(),
                });
            }
        }
    }
    Ok(found)
}
