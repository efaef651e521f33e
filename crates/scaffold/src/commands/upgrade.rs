//! `windlass upgrade`: what was scaffolded becomes what this windlass would scaffold. Between the two and what a person
//! has changed meanwhile, a three-way merge decides; where both touch the same lines, a person does.

use std::{collections::BTreeSet, path::Path};

use crate::{
    Error, Plan, Project, merge,
    plan::{Change, Folder, PRISTINE, pristine, put, recover},
    project::FILE,
    render,
};

/// Brings the project in or above a folder to the scaffold of this windlass. With `markers`, conflicts are written into
/// the files; without, those files stay as they are. Either way the plan lists them.
pub fn upgrade(folder: &Path, markers: bool) -> Result<Plan, Error> {
    let (root, mut project) = Project::find(folder)?;
    recover(&root)?;
    project.cli_version = env!("CARGO_PKG_VERSION").into();
    let (new, kinds) = (render::files(&project)?, render::Kind::all(&project));
    let disk = Folder(&root);
    let scaffolded = disk.list(PRISTINE)?;
    let mut plan = Plan::empty(&root);
    let paths: BTreeSet<&String> = new.0.keys().chain(&scaffolded).collect();
    for path in paths.into_iter().filter(|path| !render::is_derived(&kinds, path)) {
        let (base, ours) = (disk.read(&pristine(path))?, disk.read(path)?);
        match (base, ours, new.get(path)) {
            (Some(base), _, Some(theirs)) if base == theirs => {}
            (Some(base), Some(ours), Some(theirs)) => match merge::three_way(&base, &ours, theirs) {
                Ok(text) => {
                    put(&disk, path, &text, &mut plan.changes)?;
                    put(&disk, &pristine(path), theirs, &mut plan.changes)?;
                }
                Err(text) => {
                    if markers {
                        put(&disk, path, &text, &mut plan.changes)?;
                        put(&disk, &pristine(path), theirs, &mut plan.changes)?;
                    }
                    plan.conflicts.push((path.clone(), text));
                }
            },
            (Some(_), None, Some(theirs)) => {
                plan.absent.push(path.clone());
                put(&disk, &pristine(path), theirs, &mut plan.changes)?;
            }
            (None, Some(ours), Some(theirs)) if ours != theirs => plan.kept.push(path.clone()),
            (None, _, Some(theirs)) => {
                put(&disk, path, theirs, &mut plan.changes)?;
                put(&disk, &pristine(path), theirs, &mut plan.changes)?;
            }
            (Some(base), ours, None) => {
                plan.changes.push(Change::Remove { path: pristine(path) });
                match ours {
                    Some(ours) if ours == base => plan.changes.push(Change::Remove { path: path.clone() }),
                    Some(_) => plan.kept.push(path.clone()),
                    None => {}
                }
            }
            (None, _, None) => {}
        }
    }
    put(&disk, FILE, &project.to_yaml(), &mut plan.changes)?;
    plan.sort();
    Ok(plan)
}
