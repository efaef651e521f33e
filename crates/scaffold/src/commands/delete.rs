//! `windlass delete api`: what was scaffolded for a kind goes; what a person made of it stays unless they say otherwise.

use std::path::Path;

use super::{Target, from_kubebuilder};
use crate::{
    Error, Plan, Project,
    plan::{Folder, Step, pristine, recover},
    render::{self, is_hub},
};

/// Removes a kind, or a version of one that is not stored.
pub fn delete_api(folder: &Path, target: &Target, force: bool) -> Result<Plan, Error> {
    let (root, project) = Project::find(folder)?;
    recover(&root)?;
    let at = target.find(&project)?;
    let resource = &project.resources[at];
    let others: Vec<&str> = project
        .resources
        .iter()
        .filter(|known| known.is_same_kind(resource) && *known != resource)
        .map(|known| known.version.as_str())
        .collect();
    if is_hub(&project, resource) && !others.is_empty() {
        let problem = format!("{} is the version that is stored", resource.describe());
        let hint =
            format!("delete the versions first that are converted to and from it: {}", others.join(", "));
        return Err(Error::refused(problem, hint));
    }
    let mut next = project.clone();
    let gone = next.resources.remove(at);
    if let [only] = others.as_slice() {
        // The last one that was converted: what is stored is the kind's only version again.
        let stored =
            next.resources.iter_mut().find(|known| known.is_same_kind(&gone) && known.version == *only);
        if let Some(stored) = stored {
            stored.hub = false;
            let left =
                stored.webhooks.take().map(|hooks| crate::project::Webhooks { conversion: false, ..hooks });
            stored.webhooks = left.filter(|hooks| hooks.defaulting || hooks.validation);
        }
    }
    step(&root, &project, &next, force)
}

/// The plan that leads from one project to another.
pub(super) fn step(root: &Path, project: &Project, next: &Project, force: bool) -> Result<Plan, Error> {
    let (mut old, mut new) = (render::files(project)?, render::files(next)?);
    let stays = |gone: &render::Kind| render::Kind::all(next).iter().any(|kind| kind.module == gone.module);
    for kind in render::Kind::all(project).iter().filter(|kind| kind.typed && !stays(kind)) {
        // Its types were made from a CRD that nobody has any more: what was scaffolded is all that is known of them.
        let path = format!("src/{}/api.rs", kind.module);
        if let Some(copy) = Folder(root).read(&pristine(&path))? {
            old.0.insert(path, copy);
        }
    }
    from_kubebuilder::follow(root, project, next, &mut old, &mut new)?;
    Step { root, old: &old, new: &new, force }.plan(next)
}
