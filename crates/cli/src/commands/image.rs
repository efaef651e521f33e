//! `windlass image`: the operator's image, without Docker.
//!
//! Enters a project or a package of a workspace; leaves an OCI layout or an archive, an image in a registry, or one in a
//! container engine of this machine.

mod build;
mod compile;
mod error;
mod load;
mod package;
mod push;

use std::path::{Path, PathBuf};

use windlass_image::Layout;

pub(crate) use self::error::Error;
pub(super) use self::{build::build, load::load, push::push};
use crate::{
    args::{Destination, Source},
    project::Project,
};

/// Where `build` puts the image unless told otherwise, and where the others look for it.
const PLACE: &str = "dist/image";

/// Where it says that an image was last built elsewhere, beside the usual place.
const ELSEWHERE: &str = "dist/last-image";

/// The layout that is named, or the one that was built last for the project or in the working folder.
fn open(source: Option<&Source>) -> Result<(PathBuf, Layout), crate::error::Error> {
    let path = match source {
        Some(Source(path)) => path.clone(),
        None => built(&Project::find()?.map_or_else(PathBuf::new, |project| project.root))?,
    };
    let layout = Layout::open(&path).map_err(Error::Open)?;
    Ok((path, layout))
}

/// Where the last build put an image that can be read again.
fn built(root: &Path) -> Result<PathBuf, Error> {
    match fs_err::read_to_string(root.join(ELSEWHERE)) {
        Ok(path) if path.trim().is_empty() => Err(Error::NotReadable),
        Ok(path) => Ok(path.trim_end_matches('\n').into()),
        Err(_) => Ok(root.join(PLACE)),
    }
}

/// Remembers where a build has put an image.
fn remember(root: &Path, outputs: &[Destination]) -> Result<(), Error> {
    let note = root.join(ELSEWHERE);
    let failed = |source| Error::WriteFile { path: note.clone(), source };
    let readable = outputs.iter().find_map(|output| match output {
        Destination::Layout(path) | Destination::Archive(path) => Some(path),
        Destination::DockerArchive(_) => None,
    });
    let path = match readable {
        Some(path) => std::path::absolute(path).map_err(failed)?,
        None => PathBuf::new(),
    };
    if path == std::path::absolute(root.join(PLACE)).map_err(failed)? {
        return match std::fs::remove_file(&note) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        };
    }
    if let Some(folder) = note.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(&note, format!("{}\n", path.display())).map_err(failed)
}

/// A path as people write it: from the working folder, if it lies below that.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    short.display().to_string()
}

/// Bytes as people count them.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_last_is_what_is_pushed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, usual) = (folder.path(), Destination::Layout(folder.path().join(PLACE)));
        let elsewhere = root.join("out.tar");
        assert_eq!(built(root).unwrap(), root.join(PLACE), "before the first build that tells");
        remember(
            root,
            &[Destination::DockerArchive("d.tar".into()), Destination::Archive(elsewhere.clone())],
        )
        .unwrap();
        assert_eq!(built(root).unwrap(), elsewhere);
        remember(root, &[Destination::DockerArchive("d.tar".into())]).unwrap();
        assert!(
            matches!(built(root), Err(Error::NotReadable)),
            "the one before it is not pushed in its place"
        );
        for _ in 0..2 {
            remember(root, std::slice::from_ref(&usual)).unwrap();
            assert_eq!(built(root).unwrap(), root.join(PLACE));
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 9_999, 10_000, 999_999, 1_000_000, 8_250_000].map(size),
            ["0 B", "9999 B", "10 kB", "999 kB", "1.0 MB", "8.2 MB"]
        );
    }
}
