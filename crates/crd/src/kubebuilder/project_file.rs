//! The file `PROJECT`, in the versions 2 and 3.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{Error, Project, Resource, parse, text_of};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    /// A string in version 3, and in some of version 2 a number.
    #[serde(default)]
    version: Value,
    #[serde(default)]
    domain: String,
    #[serde(default)]
    repo: String,
    #[serde(default)]
    project_name: String,
    #[serde(default)]
    multigroup: bool,
    /// One plugin or several.
    #[serde(default)]
    layout: Value,
    #[serde(default)]
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    group: String,
    domain: Option<String>,
    version: String,
    kind: String,
    #[serde(default)]
    plural: String,
    api: Option<Api>,
    controller: Option<bool>,
    #[serde(default)]
    webhooks: Webhooks,
    #[serde(default)]
    external: bool,
    #[serde(default)]
    core: bool,
}

#[derive(Deserialize)]
struct Api {
    namespaced: Option<bool>,
}

/// The webhooks of a kind.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Webhooks {
    /// It fills in defaults.
    #[serde(default)]
    pub defaulting: bool,
    /// It refuses objects.
    #[serde(default)]
    pub validation: bool,
    /// It converts between versions.
    #[serde(default)]
    pub conversion: bool,
}

pub(super) fn read(dir: &Path) -> Result<Project, Error> {
    let path = dir.join("PROJECT");
    let text = text_of(&path)?.ok_or_else(|| Error::NoProject(dir.to_owned()))?;
    let file: File =
        serde_saphyr::from_str(&text).map_err(|error| parse(&path, crate::Error::yaml(&error)))?;
    let version = match &file.version {
        Value::String(version) => version.clone(),
        other => other.to_string(),
    };
    // 3-alpha was what 3 became.
    let two = version == "2";
    if !two && !version.starts_with('3') {
        return Err(Error::Version { path, version });
    }
    if file.layout.to_string().contains("windlass.dev/") {
        return Err(Error::Windlass(dir.to_owned()));
    }
    let name = if file.project_name.is_empty() {
        dir.canonicalize()
            .ok()
            .and_then(|dir| dir.file_name().map(|name| name.to_string_lossy().into_owned()))
    } else {
        Some(file.project_name)
    };
    let domain = file.domain;
    let resources = file.resources.into_iter().map(|entry| resource(entry, &domain, two)).collect();
    Ok(Project {
        name: name.unwrap_or_default(),
        repo: file.repo,
        multigroup: file.multigroup,
        resources,
        definitions: Vec::new(),
        permissions: Vec::new(),
        samples: Vec::new(),
        webhooks: Vec::new(),
        other_files: Vec::new(),
        notes: Vec::new(),
        domain,
    })
}

fn resource(entry: Entry, domain: &str, two: bool) -> Resource {
    let plural = if entry.plural.is_empty() { super::rbac::plural(&entry.kind) } else { entry.plural };
    let defined = two || (entry.api.is_some() && !entry.external && !entry.core);
    Resource {
        domain: match entry.domain {
            Some(domain) => domain,
            None if two || defined => domain.to_owned(),
            None => String::new(),
        },
        group: entry.group,
        version: entry.version,
        plural,
        namespaced: entry.api.and_then(|api| api.namespaced).unwrap_or(two),
        defined,
        has_controller: entry.controller.unwrap_or(two),
        webhooks: entry.webhooks,
        controller: None,
        webhook_files: Vec::new(),
        kind: entry.kind,
    }
}
