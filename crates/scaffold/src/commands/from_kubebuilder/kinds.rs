//! The kinds of a Go project: entries of `PROJECT`, types and samples leave.

use std::path::Path;

use serde_json::Value;
use windlass_crd::{
    Definition, Options, Version,
    kubebuilder::{self, GoKind},
};

use super::{ApiRequest, Findings, module, resource, sample};
use crate::{
    Error, Project, format, names,
    project::{Api, Ported, Resource, Webhooks},
    render::{self, Renderer},
};

/// The packages of k8s-openapi that every release has.
const PACKAGES: [&str; 12] = [
    "apps::v1",
    "autoscaling::v2",
    "batch::v1",
    "certificates::v1",
    "coordination::v1",
    "core::v1",
    "discovery::v1",
    "networking::v1",
    "policy::v1",
    "rbac::v1",
    "scheduling::v1",
    "storage::v1",
];

/// Kubernetes' own kinds that live in no namespace and that people write controllers for.
const CLUSTER_SCOPED: [&str; 11] = [
    "APIService",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
];

/// Adds the kinds of the Go project to the new one.
pub(super) fn take_over(
    go: &kubebuilder::Project,
    source: &Path,
    project: &mut Project,
    found: &mut Findings,
) -> Result<(), Error> {
    let mut done: Vec<(String, String)> = Vec::new();
    for entry in &go.resources {
        let name = (entry.api_group(), entry.kind.clone());
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        if !entry.defined {
            foreign(entry, project, found);
        } else if let Some(definition) = go.definition(entry)
            && let Err(error) = own(go, source, entry, definition, project, found)
        {
            match error {
                Error::Read { .. } | Error::Render { .. } => return Err(error),
                _ => found.left.push(format!("{} could not be taken over: {error}", entry.kind)),
            }
        }
    }
    owned(go, project, found);
    Ok(())
}

/// Somebody else's kind: it has a controller here, and no types.
fn foreign(entry: &kubebuilder::Resource, project: &mut Project, found: &mut Findings) {
    let name = format!("{} {}/{}", entry.kind, entry.api_group(), entry.version);
    if !entry.has_controller {
        found.left.push(format!("{name} is somebody else's, and its webhooks are not taken over: write a `Webhook` and add it in src/lib.rs"));
        return;
    }
    let request = ApiRequest {
        group: entry.api_group(),
        version: entry.version.clone(),
        kind: entry.kind.clone(),
        plural: Some(entry.plural.clone()),
        namespaced: Some(!CLUSTER_SCOPED.contains(&entry.kind.as_str())),
        controller: true,
        external: true,
        ..ApiRequest::default()
    };
    match resource(project, &request) {
        Ok(resource) => {
            project.resources.push(resource);
            if entry.webhooks.defaulting || entry.webhooks.validation {
                found.left.push(format!("the webhooks of {name}, which is somebody else's: write a `Webhook` and add it in src/lib.rs"));
            }
        }
        Err(error) => found.left.push(format!("{name} could not be taken over: {error}")),
    }
}

fn own(
    go: &kubebuilder::Project,
    source: &Path,
    entry: &kubebuilder::Resource,
    definition: &Definition,
    project: &mut Project,
    found: &mut Findings,
) -> Result<(), Error> {
    names::kind(&entry.kind)?;
    names::resource(&entry.plural)?;
    let stored = definition.storage().ok_or_else(|| {
        Error::refused(format!("{} has no versions", definition.name), "run `make manifests` there first")
    })?;
    names::version(&stored.name)?;
    let versions: Vec<&kubebuilder::Resource> = go
        .resources
        .iter()
        .filter(|other| other.kind == entry.kind && other.api_group() == entry.api_group())
        .collect();
    let types = rust(definition, &stored.name, found)?;
    let hooks = |of: fn(&kubebuilder::Webhooks) -> bool| versions.iter().any(|version| of(&version.webhooks));
    let mut hub = Resource {
        api: Some(Api { crd_version: "v1".into(), namespaced: entry.namespaced }),
        controller: versions.iter().any(|version| version.has_controller),
        domain: entry.domain.clone(),
        group: entry.group.clone(),
        kind: entry.kind.clone(),
        plural: entry.plural.clone(),
        version: stored.name.clone(),
        ..Resource::default()
    };
    hub.path = format!("{}::{}", names::library(&project.project_name), module(project, &hub));
    let module = hub.module();
    let mut ported = reported(stored, &types, &entry.kind);
    ported.sample = sample::take_over(go, source, &hub, stored, found)?;
    hub.ported = Some(ported);

    let mut spokes = Vec::new();
    for version in definition.versions.iter().filter(|version| version.name != stored.name) {
        if names::version(&version.name).is_ok() && is_alike(stored, version) {
            spokes.push(version.name.clone());
        } else {
            found.left.push(format!(
                "{} {} has other fields than {}, which is stored: add it with `windlass create api --group {} --version {} --kind {}`, and write its fields and its conversion",
                entry.kind, version.name, stored.name, entry.group, version.name, entry.kind
            ));
        }
    }
    hub.hub = !spokes.is_empty();
    let webhooks = Webhooks {
        conversion: hub.hub,
        defaulting: hooks(|hooks| hooks.defaulting),
        validation: hooks(|hooks| hooks.validation),
        webhook_version: "v1".into(),
    };
    hub.webhooks = (webhooks.conversion || webhooks.defaulting || webhooks.validation).then_some(webhooks);
    for version in &spokes {
        let spoke = Resource {
            controller: false,
            hub: false,
            webhooks: None,
            ported: None,
            version: version.clone(),
            ..hub.clone()
        };
        sample::take_over(go, source, &spoke, definition.version(version).unwrap_or(stored), found)?;
        project.resources.push(spoke);
    }
    project.resources.push(hub);
    let renderer = Renderer::new(project);
    let kind = renderer.kinds.iter().find(|kind| kind.module == module);
    let kind = kind.expect("a kind that was added must be rendered");
    found.files.0.insert(format!("src/{module}/api.rs"), render::with_versions(&types, kind));
    for spoke in &kind.spokes {
        let types = rust(definition, &spoke.version, found)?;
        let (path, text) = render::spoke_types(&renderer, kind, spoke, &types)?;
        found.files.0.insert(path, text);
    }
    Ok(())
}

/// The types of a version.
fn rust(definition: &Definition, version: &str, found: &mut Findings) -> Result<String, Error> {
    let made = definition.rust(version, &Options::default()).map_err(|error| {
        Error::refused(error.to_string(), "run `make manifests` in the Go project, and try again")
    })?;
    if !made.lost.is_empty() {
        let sentences = made.lost.iter().map(|lost| match lost.path.as_str() {
            "" => lost.what.clone(),
            path => format!("`{path}`: {}", lost.what),
        });
        found.lost.push((format!("{} {version}", definition.names.kind), sentences.collect()));
    }
    Ok(format::rust(&made.source))
}

/// What of a status can be reported: as long as no field must be there, and those that everybody knows are what they
/// usually are.
fn reported(version: &Version, types: &str, kind: &str) -> Ported {
    let status = version.schema().and_then(|root| root.get("properties")?.get("status"));
    let is_free = status.is_some_and(|status| status["required"].as_array().is_none_or(Vec::is_empty));
    let body = types.split_once(&format!("pub struct {kind}Status {{")).map(|(_, rest)| rest);
    let body = body.and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
    let has = |field: &str| version.has_status() && is_free && body.contains(field);
    Ported {
        conditions: has("    pub conditions: Vec<Condition>,"),
        observed_generation: has("    pub observed_generation: Option<i64>,"),
        ..Ported::default()
    }
}

/// Whether objects of one version are objects of the other, but for the version's name: then their conversion is known.
fn is_alike(one: &Version, other: &Version) -> bool {
    let schema = |version: &Version| version.schema().map(|schema| bare(&Value::Object(schema.clone())));
    let has = |name: &str| one.schema().and_then(|root| root.get("properties")?.get(name)).is_some();
    has("spec") && has("status") && schema(one) == schema(other)
}

/// A schema without descriptions; a property of that name has an object there and stays.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            Value::Object(kept.map(|(name, value)| (name.clone(), bare(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        other => other.clone(),
    }
}

/// The kinds that controllers own, when all kinds of the project are known.
fn owned(go: &kubebuilder::Project, project: &mut Project, found: &mut Findings) {
    let known = project.clone();
    for resource in project.resources.iter_mut().filter(|resource| resource.controller) {
        let group = resource.api_group();
        let Some(ported) = &mut resource.ported else { continue };
        let same = |entry: &&kubebuilder::Resource| entry.kind == resource.kind && entry.api_group() == group;
        let files = go.resources.iter().filter(same).filter_map(|entry| entry.controller.as_ref());
        for kind in files.flat_map(|file| &file.owns) {
            let path = openapi(kind).or_else(|| {
                let own = go.resources.iter().any(|entry| entry.defined && entry.kind == kind.kind);
                let inside = kind.package.starts_with(&go.repo) && own;
                let entry =
                    known.resources.iter().find(|other| other.ported.is_some() && other.kind == kind.kind);
                entry.filter(|_| inside).map(|entry| format!("crate::{}::{}", entry.module(), entry.kind))
            });
            match path {
                Some(path) if ported.owns.contains(&path) => {}
                Some(path) => ported.owns.push(path),
                None => found.left.push(format!(
                    "the controller of {} owns {} of {}: declare it with `.owns`, and its permissions follow",
                    resource.kind, kind.kind, kind.package
                )),
            }
        }
        ported.owns.sort();
    }
}

fn openapi(kind: &GoKind) -> Option<String> {
    let path = kind.rust_path()?;
    let package = path.strip_prefix("k8s_openapi::api::")?.rsplit_once("::")?.0;
    PACKAGES.contains(&package).then_some(path)
}
