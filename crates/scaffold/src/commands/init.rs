//! `windlass init`: a project without kinds, in a folder of its own.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::{
    Error, Files, Plan, Project, lock,
    plan::{Folder, Step, put},
    project::License,
    render,
};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct InitRequest {
    /// The name of the project.
    pub name: String,
    /// Where it goes.
    pub folder: PathBuf,
    /// What its groups end with.
    pub domain: String,
    /// Where its source will be.
    pub repo: Option<String>,
    /// Its licence.
    pub license: License,
    /// Who holds the copyright.
    pub owner: Option<String>,
    /// A folder or repository with the SDK, instead of the registry.
    pub sdk: Option<String>,
    /// The versions of all dependencies, as Cargo.lock has them.
    pub lock: Option<String>,
    /// Files that the operator itself would write, by path: they are nobody's to merge.
    pub generated: Vec<(String, String)>,
}

/// A new project.
pub fn init(request: &InitRequest) -> Result<Plan, Error> {
    let project = project(request)?;
    empty(&request.folder)?;
    let new = render::files(&project)?;
    let step = Step { root: &request.folder, old: &Files::default(), new: &new, force: false };
    let mut plan = step.plan(&project)?;
    let folder = Folder(&request.folder);
    if let Some(workspace) = &request.lock {
        put(&folder, "Cargo.lock", &lock::adapted(workspace), &mut plan.changes)?;
    }
    for (path, content) in &request.generated {
        put(&folder, path, content, &mut plan.changes)?;
    }
    plan.sort();
    Ok(plan)
}

/// The project that is asked for, without kinds.
pub(super) fn project(request: &InitRequest) -> Result<Project, Error> {
    let mut project = Project::new(&request.name, &request.domain)?;
    project.repo = request.repo.as_deref().map(repository).transpose()?;
    project.owner = request.owner.as_deref().map(owner).transpose()?;
    project.license = request.license;
    project.sdk = request.sdk.as_deref().map(sdk).transpose()?;
    Ok(project)
}

/// Refuses a folder in which something is, but for version control.
fn empty(folder: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::Read { path: folder.to_owned(), source }),
    };
    for entry in entries {
        let entry = entry.map_err(|source| Error::Read { path: folder.to_owned(), source })?;
        if entry.file_name() != ".git" {
            let found = entry.file_name().to_string_lossy().into_owned();
            return Err(Error::NotEmpty { path: folder.to_owned(), found });
        }
    }
    Ok(())
}

fn plain(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().all(|c| !c.is_control() && !"\"\\{}".contains(c))
}

fn repository(repo: &str) -> Result<String, Error> {
    if plain(repo) && !repo.contains(' ') {
        return Ok(repo.to_owned());
    }
    Err(Error::refused(
        format!("the repository {repo:?} is no address"),
        "write --repo github.com/example/memcached-operator",
    ))
}

fn owner(owner: &str) -> Result<String, Error> {
    if plain(owner) {
        return Ok(owner.to_owned());
    }
    Err(Error::refused(
        format!("the owner {owner:?} cannot stand in a licence"),
        "write a name without quotes and braces",
    ))
}

/// A repository as it is, a folder by its absolute path.
fn sdk(sdk: &str) -> Result<String, Error> {
    if render::is_url(sdk) {
        return Ok(sdk.to_owned());
    }
    let path = Path::new(sdk);
    if !path.join("crates/windlass/Cargo.toml").is_file() {
        let hint = "name a checkout of windlass, with the folder crates/windlass in it, or the URL of its repository";
        return Err(Error::refused(format!("there is no SDK in {sdk:?}"), hint));
    }
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(failed)?;
    Ok(absolute.to_string_lossy().into_owned())
}
