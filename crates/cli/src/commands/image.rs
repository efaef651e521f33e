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
use crate::{args::Source, project::Project};

/// Where `build` puts the image unless told otherwise, and where the others look for it.
const PLACE: &str = "dist/image";

/// The layout that is named, or the one of the project, or of the working folder.
fn open(source: Option<&Source>) -> Result<(PathBuf, Layout), crate::error::Error> {
    let path = match source {
        Some(Source(path)) => path.clone(),
        None => Project::find()?.map_or_else(|| PathBuf::from(PLACE), |project| project.root.join(PLACE)),
    };
    let layout = Layout::open(&path).map_err(Error::Open)?;
    Ok((path, layout))
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
    fn sizes_are_short() {
        assert_eq!(
            [0, 9_999, 10_000, 999_999, 1_000_000, 8_250_000].map(size),
            ["0 B", "9999 B", "10 kB", "999 kB", "1.0 MB", "8.2 MB"]
        );
    }
}
