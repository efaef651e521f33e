//! A project of the user's: where it is, how it is built, and what changes in it.

pub(crate) mod build;
mod error;
pub(crate) mod watch;

use std::path::{Path, PathBuf};

use windlass_scaffold as scaffold;

pub(crate) use self::error::Error;

/// A project that this version understands.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) name: String,
    /// The version of Windlass that wrote it.
    pub(crate) cli_version: String,
}

impl Project {
    /// The project around the working folder, if there is one. One of another tool is none of ours.
    pub(crate) fn find() -> Result<Option<Self>, Error> {
        use scaffold::Error::{NoProject, OtherLayout};
        match Self::here() {
            Ok(project) => Ok(Some(project)),
            Err(Error::Scaffold(NoProject(_) | OtherLayout { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The project around the working folder, which must be there.
    pub(crate) fn here() -> Result<Self, Error> {
        Self::above(&std::env::current_dir().map_err(Error::WorkingFolder)?)
    }

    fn above(folder: &Path) -> Result<Self, Error> {
        let (root, project) = scaffold::Project::find(folder)?;
        Ok(Self { root, name: project.project_name, cli_version: project.cli_version })
    }

    /// The name of the project's library, by which its log lines are known.
    pub(crate) fn library(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Where the samples are.
    pub(crate) fn samples(&self) -> PathBuf {
        self.root.join("config").join("samples")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_found_from_any_folder_inside_it() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("src/deep");
        std::fs::create_dir_all(&inner).unwrap();
        assert!(Project::above(&inner).unwrap_err().hint().unwrap().contains("windlass init"));
        let text = scaffold::Project::new("my-shop", "example.com").unwrap().to_yaml();
        std::fs::write(folder.path().join("PROJECT"), text).unwrap();
        let project = Project::above(&inner).unwrap();
        assert_eq!((project.root.as_path(), project.library().as_str()), (folder.path(), "my_shop"));
    }
}
