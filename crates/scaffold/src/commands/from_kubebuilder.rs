//! `windlass init --from-kubebuilder`: a Go project comes in, a new project leaves, in one plan. Types, names, samples and
//! permissions are taken over; what is written in Go is listed in `PORTING.md`.

mod kinds;
mod permissions;
mod porting;
mod sample;

use std::path::{Path, PathBuf};

use fs_err as fs;
use windlass_crd::kubebuilder;

use super::{
    ApiRequest, InitRequest,
    api::{module, resource},
    init,
};
use crate::{
    Change, Error, Plan, Project,
    plan::{Folder, Step, pristine, put},
    render::{self, Files},
};

/// The list of what is left.
const PORTING: &str = "PORTING.md";

/// What was found out on the way.
#[derive(Debug, Default)]
struct Findings {
    /// Files that follow from the Go project: types and samples.
    files: Files,
    /// Further samples, which nobody removes with a kind.
    samples: Vec<(String, String)>,
    /// What could not be taken over, in one sentence each.
    left: Vec<String>,
    /// What a CRD says and the types do not: kind, version, and the sentences.
    lost: Vec<(String, Vec<String>)>,
}

/// Reads the Go project in a folder.
pub fn read_kubebuilder(folder: &Path) -> Result<kubebuilder::Project, Error> {
    Ok(kubebuilder::Project::read(folder)?)
}

/// A new project with what a Go project has. The folder of the Go project is only read.
pub fn from_kubebuilder(
    request: &InitRequest,
    go: &kubebuilder::Project,
    source: &Path,
) -> Result<Plan, Error> {
    // All that can be wrong with the request itself is found there, and so is a folder that is not empty.
    let plain = init::init(request)?;
    let mut project = init::project(request)?;
    let mut found = Findings::default();
    kinds::take_over(go, source, &mut project, &mut found)?;
    let defined = go.resources.iter().filter(|resource| resource.defined).count();
    if defined > 0 && project.resources.iter().all(|resource| resource.external) {
        let problem = format!("none of the kinds of {} has a definition in config/crd/bases", go.name);
        return Err(Error::refused(problem, "run `make manifests` in the Go project, and try again"));
    }
    let folder = Folder(&request.folder);
    let mut new = render::files(&project)?;
    new.0.extend(found.files.0.clone());
    let step = Step { root: &request.folder, old: &Files::default(), new: &new, force: false };
    let mut plan = step.plan(&project)?;
    permissions::permit(go, &mut plan, &mut found);
    for (path, content) in &found.samples {
        if plan.changes.iter().all(|change| change.path() != path) {
            put(&folder, path, content, &mut plan.changes)?;
        }
    }
    put(&folder, PORTING, &porting::page(go, &project, &found), &mut plan.changes)?;
    let generated = plain.changes.into_iter().filter(|change| {
        let is_known = plan.changes.iter().any(|known| known.path() == change.path());
        !is_known && !change.path().starts_with(crate::plan::PRISTINE)
    });
    let generated: Vec<Change> = generated.collect();
    plan.changes.extend(generated);
    plan.sort();
    Ok(plan)
}

/// What the types and samples of kinds from Go become when a step gives them other versions, or takes the kinds away:
/// they follow from what is there, so both sides of the step are told.
pub(super) fn follow(
    root: &Path,
    project: &Project,
    next: &Project,
    old: &mut Files,
    new: &mut Files,
) -> Result<(), Error> {
    let folder = Folder(root);
    let after = render::Kind::all(next);
    for before in render::Kind::all(project).iter().filter(|kind| kind.ported.is_some()) {
        let stays = after.iter().find(|kind| kind.kind == before.kind && kind.module == before.module);
        let kept = stays.map(render::ported_paths).unwrap_or_default();
        for path in render::ported_paths(before).into_iter().filter(|path| !kept.contains(path)) {
            if let Some(copy) = folder.read(&pristine(&path))? {
                old.0.insert(path, copy);
            }
        }
        let Some(kind) = stays else { continue };
        let versions = |kind: &render::Kind| -> Vec<String> {
            kind.spokes.iter().map(|spoke| spoke.version.clone()).collect()
        };
        if (&kind.version, versions(kind)) == (&before.version, versions(before)) {
            continue;
        }
        let types = format!("src/{}/api.rs", kind.module);
        if let Some(text) = folder.read(&types)? {
            new.0.insert(types.clone(), render::with_versions(&text, kind));
            old.0.insert(types, text);
        }
        let sample = format!("config/samples/{}", before.sample);
        if let Some(text) = folder.read(&sample)?.filter(|_| new.get(&sample).is_some()) {
            old.0.insert(sample, text);
        }
    }
    Ok(())
}

/// A path as the files of a project have it.
fn slashed(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn text(source: &Path, file: &Path) -> Result<String, Error> {
    let path: PathBuf = source.join(file);
    let text = fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
    Ok(text.replace("\r\n", "\n"))
}
