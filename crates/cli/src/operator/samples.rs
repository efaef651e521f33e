//! The samples of a project: applied once, and again when their files change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use fs_err as fs;
use serde_json::Value;
use windlass::kube::Client;

use super::apply;
use crate::project::{Error, Project};

/// Whose fields the samples' are.
const MANAGER: &str = "windlass-samples";

/// What was applied of which file.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    applied: BTreeMap<PathBuf, Vec<Value>>,
}

/// What became of the samples.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was applied.
    pub(crate) applied: Vec<String>,
    /// What was not, and why.
    pub(crate) failed: Vec<Error>,
}

impl Samples {
    /// Applies what is new in the files. One that cannot be applied does not keep the others from it, and is tried
    /// again the next time.
    pub(crate) async fn apply(&mut self, client: &Client, project: &Project) -> Outcome {
        let mut outcome = Outcome::default();
        for path in files(&project.samples()) {
            let objects = match read(&path) {
                Ok(objects) => objects,
                Err(error) => {
                    outcome.failed.push(error);
                    continue;
                }
            };
            let known = self.applied.get(&path);
            if known == Some(&objects) {
                continue;
            }
            // A file that has just been saved is what its author wants; at the start somebody may have edited the object.
            match each(client, &objects, known.is_some()).await {
                Ok(names) => {
                    outcome.applied.extend(names);
                    self.applied.insert(path, objects);
                }
                Err(error) => outcome.failed.push(error),
            }
        }
        outcome
    }
}

async fn each(client: &Client, objects: &[Value], force: bool) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for object in objects {
        match apply::one(client, object, MANAGER, force).await {
            Ok(name) => names.push(name),
            // What somebody has edited is theirs.
            Err(Error::Apply { source, .. }) if source.conflict && !force => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// The YAML files of a folder, but not what kustomize reads.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_sample = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        yaml && !name.starts_with(['.', '#']) && !name.starts_with("kustomization.")
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_sample).collect();
    files.sort();
    files
}

pub(crate) fn read(path: &Path) -> Result<Vec<Value>, Error> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Sample { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(|error| failed(error.into()))?;
    let objects = serde_saphyr::from_multiple::<Value>(&text).map_err(|error| failed(error.into()))?;
    let objects: Vec<Value> = objects.into_iter().filter(|object| !object.is_null()).collect();
    let named = |object: &Value| {
        ["/apiVersion", "/kind", "/metadata/name"]
            .iter()
            .all(|field| object.pointer(field).is_some_and(Value::is_string))
    };
    if objects.iter().all(named) {
        Ok(objects)
    } else {
        Err(failed("every object needs an apiVersion, a kind and a metadata.name".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_are_the_yaml_files_without_kustomizes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "kustomization.yaml", ".b.yaml.swp", "README.md", "#a.yml"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> =
            files(folder.path()).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
        assert!(files(&folder.path().join("missing")).is_empty());
    }

    #[test]
    fn a_file_may_hold_several_objects_and_each_must_have_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
        fs::write(&path, format!("# two\n{object}---\n{object}")).unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
        fs::write(&path, "apiVersion: v1\nkind: ConfigMap\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("a.yaml"));
        fs::write(&path, "").unwrap();
        assert!(read(&path).unwrap().is_empty());
    }
}
