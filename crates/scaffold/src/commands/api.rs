//! `windlass create api`: a kind with its types, its controller, a sample and tests; or another version of one.

use std::path::Path;

mod foreign;

use super::from_kubebuilder;
use crate::{
    Error, Files, Plan, Project, names,
    plan::{Folder, Step, recover},
    project::{Api, Resource, Webhooks},
    render::{self, Renderer, is_hub},
};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// The group, without the domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Its plural, if the regular one is wrong.
    pub plural: Option<String>,
    /// Whether its objects are in namespaces; they are unless told otherwise.
    pub namespaced: Option<bool>,
    /// Whether to make a controller.
    pub controller: bool,
    /// Whether somebody else defines the kind; then the group is the whole API group.
    pub external: bool,
    /// The CRD of somebody else's kind, to make types from. It says group, version and kind where they are empty.
    pub crd: Option<String>,
    /// The image that it runs.
    pub image: Option<String>,
    /// The port that the image listens on.
    pub port: Option<u16>,
    /// The user that the image runs as.
    pub run_as_user: Option<u32>,
    /// Whether it cleans up before objects go.
    pub finalizer: bool,
    /// Of a further version: whether it is stored from now on, and the others are converted through it.
    pub hub: bool,
    /// Overwrite what is there.
    pub force: bool,
}

/// Whether a kind is there in another version, so that one must be chosen to be stored.
pub fn is_further_version(folder: &Path, group: &str, version: &str, kind: &str) -> Result<bool, Error> {
    let (_, project) = Project::find(folder)?;
    let same = |known: &Resource| known.kind == kind && known.group == group;
    Ok(project.resources.iter().any(|known| same(known) && known.version != version)
        && !project.resources.iter().any(|known| same(known) && known.version == version))
}

/// Adds a kind, or a version of one, to the project in or above a folder.
pub fn create_api(folder: &Path, request: &ApiRequest) -> Result<Plan, Error> {
    let (root, project) = Project::find(folder)?;
    recover(&root)?;
    let foreign = request.crd.as_deref().map(|yaml| foreign::read(yaml, request)).transpose()?;
    let request = foreign.as_ref().map_or(request, |foreign| &foreign.request);
    let resource = resource(&project, request)?;
    let same_kind = |known: &Resource| known.is_same_kind(&resource);
    let mut next = project.clone();
    if let Some(known) =
        next.resources.iter_mut().find(|known| same_kind(known) && known.version == resource.version)
    {
        if !request.force {
            return Err(Error::KindExists(resource.describe()));
        }
        if known.hub || known.webhooks.is_some() {
            let hint = "delete the kind first: windlass delete api";
            return Err(Error::refused("a kind with webhooks or several versions is not written anew", hint));
        }
        *known = resource;
    } else if next.resources.iter().any(same_kind) {
        add_version(&mut next, &resource, request)?;
    } else if request.hub {
        let hint = "leave out --hub: the only version of a kind is the one that is stored";
        return Err(Error::refused(format!("there is no other version of {}", resource.kind), hint));
    } else {
        next.resources.push(resource);
    }
    let (mut old, mut new) = (render::files(&project)?, render::files(&next)?);
    if let Some(foreign) = &foreign {
        let module = next.resources.last().map(Resource::module).unwrap_or_default();
        new.0.insert(format!("src/{module}/api.rs"), foreign.types.clone());
    } else if next.resources.len() > project.resources.len() {
        take_over(&root, &project, &next, &old, &mut new)?;
    }
    from_kubebuilder::follow(&root, &project, &next, &mut old, &mut new)?;
    Step { root: &root, old: &old, new: &new, force: request.force }.plan(&next)
}

pub(super) fn resource(project: &Project, request: &ApiRequest) -> Result<Resource, Error> {
    names::group(&request.group)?;
    names::version(&request.version)?;
    if request.external && request.crd.is_none() {
        names::external_kind(&request.kind)?;
    } else {
        names::kind(&request.kind)?;
    }
    check(request)?;
    let plural = request.plural.clone().unwrap_or_else(|| names::plural(&request.kind));
    names::resource(&plural)?;
    request.image.as_deref().map_or(Ok(()), names::image)?;
    let mut resource = Resource {
        api: Some(Api { crd_version: "v1".into(), namespaced: request.namespaced.unwrap_or(true) }),
        controller: request.controller,
        core: request.external && is_core(&request.group),
        domain: if request.external { String::new() } else { project.domain.clone() },
        external: request.external,
        from_crd: request.crd.is_some(),
        finalizer: request.finalizer,
        group: request.group.clone(),
        image: request.image.clone(),
        kind: request.kind.clone(),
        plural,
        port: request.image.as_ref().map(|_| request.port.unwrap_or(80)),
        run_as_user: request.run_as_user,
        version: request.version.clone(),
        ..Resource::default()
    };
    let module = module(project, &resource);
    resource.path = format!("{}::{module}", names::library(&project.project_name));
    Ok(resource)
}

/// Whether Kubernetes itself serves a group.
fn is_core(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Refuses what contradicts itself.
fn check(request: &ApiRequest) -> Result<(), Error> {
    let makes_more = request.image.is_some() || request.finalizer;
    if request.external && (makes_more || !request.controller) {
        let hint = "leave out --image, --finalizer and --controller=false: the kind is somebody else's";
        return Err(Error::refused("an external kind has a controller of yours and nothing else", hint));
    }
    if !request.controller && makes_more {
        let hint = "leave out --image and --finalizer, or --controller=false";
        return Err(Error::refused("types without a controller run nothing and clean up nothing", hint));
    }
    Ok(())
}

/// The module of a kind: with its group where a kind of another group has the same name.
pub(super) fn module(project: &Project, resource: &Resource) -> String {
    let module = names::module(&resource.kind);
    if let Some(known) = project.resources.iter().find(|known| known.is_same_kind(resource)) {
        return known.module();
    }
    if !project.resources.iter().any(|known| known.module() == module) {
        return module;
    }
    let group: String =
        resource.api_group().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{group}_{module}")
}

/// Adds a version of a kind that is there: stored, or converted to and from the one that is.
fn add_version(next: &mut Project, resource: &Resource, request: &ApiRequest) -> Result<(), Error> {
    let given = request.plural.is_some() || request.image.is_some() || request.finalizer || request.external;
    if given || request.namespaced.is_some() {
        let problem =
            format!("{} is there already, and its versions differ in their fields alone", resource.kind);
        return Err(Error::refused(
            problem,
            "leave out --plural, --namespaced, --image, --finalizer and --external",
        ));
    }
    let stored = next.resources.iter().position(|known| known.is_same_kind(resource) && is_hub(next, known));
    let stored = &mut next.resources[stored.expect("one version of a kind must be stored")];
    let webhooks = Webhooks {
        conversion: true,
        webhook_version: "v1".into(),
        ..stored.webhooks.clone().unwrap_or_default()
    };
    let plain = Resource {
        controller: false,
        finalizer: false,
        hub: false,
        ported: None,
        webhooks: None,
        version: resource.version.clone(),
        ..stored.clone()
    };
    stored.webhooks = Some(webhooks);
    stored.hub = true;
    let mut further = plain.clone();
    if request.hub {
        // The stored version keeps its place, since kinds are registered in that order.
        further = Resource { version: stored.version.clone(), ..plain };
        stored.version.clone_from(&resource.version);
    }
    next.resources.push(further);
    Ok(())
}

/// A further version begins with the fields and the sample that the stored one has by now, not with those that were
/// scaffolded.
fn take_over(
    root: &Path,
    project: &Project,
    next: &Project,
    old: &Files,
    new: &mut Files,
) -> Result<(), Error> {
    let (folder, renderer) = (Folder(root), Renderer::new(next));
    let before = render::Kind::all(project);
    for kind in &renderer.kinds {
        let Some(known) = before.iter().find(|known| known.kind == kind.kind && known.module == kind.module)
        else {
            continue;
        };
        let path = |kind: &render::Kind| format!("src/{}/api.rs", kind.module);
        let changed = |path: &str| -> Result<Option<String>, Error> {
            Ok(folder.read(path)?.filter(|ours| old.get(path) != Some(ours)))
        };
        let (api, sample) = (changed(&path(known))?, changed(&format!("config/samples/{}", known.sample))?);
        for spoke in
            kind.spokes.iter().filter(|spoke| known.spokes.iter().all(|old| old.version != spoke.version))
        {
            if let Some(api) = &api {
                let (path, text) = render::spoke_types(&renderer, kind, spoke, api)?;
                new.0.insert(path, text);
            }
            if let Some(sample) = sample.as_ref().filter(|_| spoke.sample != known.sample) {
                let (path, text) = render::spoke_sample(kind, spoke, sample);
                new.0.insert(path, text);
            }
        }
        if let Some(sample) = sample.filter(|_| kind.sample != known.sample) {
            let was = format!("apiVersion: {}/{}", known.api_group, known.version);
            let is = format!("apiVersion: {}/{}", kind.api_group, kind.version);
            new.0.insert(format!("config/samples/{}", kind.sample), sample.replace(&was, &is));
        }
    }
    Ok(())
}
