//! The directory for `KUBEBUILDER_ASSETS`: this program under three names.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::Error;

/// The names that envtest and others look for.
pub(crate) const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// The file that says what the API server of a directory is to do.
pub(crate) const MARK: &str = "windlass-envtest";

/// What stands in the mark of a directory whose API server has controllers.
const CONTROLLERS: &str = "controllers";

/// Makes the directory, or brings it up to date, and returns it.
pub(crate) fn prepare(folder: Option<&Path>, controllers: bool) -> Result<PathBuf, Error> {
    let folder = match folder {
        Some(folder) => {
            std::path::absolute(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?
        }
        None => home()?.join(if controllers { "controllers" } else { "plain" }),
    };
    fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    let own = std::env::current_exe().map_err(Error::NoProgram)?;
    for name in PROGRAMS {
        let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        crate::platform::link_program(&own, &path).map_err(|source| Error::Write { path, source })?;
    }
    let mark = folder.join(MARK);
    let word = if controllers { CONTROLLERS } else { "plain" };
    fs::write(&mark, format!("{word}\n")).map_err(|source| Error::Write { path: mark, source })?;
    Ok(folder)
}

/// Whether the API server that was started as `program` has controllers.
pub(super) fn has_controllers(program: &Path) -> bool {
    let beside = |path: &Path| fs::read_to_string(path.parent()?.join(MARK)).ok();
    beside(program).is_some_and(|word| word.trim() == CONTROLLERS)
}

/// Where it is unless somebody says otherwise: one for each version.
fn home() -> Result<PathBuf, Error> {
    let given = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = || std::env::home_dir().map(|home| home.join(".cache"));
    let cache = given.or_else(usual).ok_or(Error::NoHome)?;
    Ok(cache.join("windlass").join("envtest").join(env!("CARGO_PKG_VERSION")))
}

/// A seed that no other run has: uids of two clusters must not meet.
pub(super) fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_holds_the_three_and_says_what_they_do() {
        let place = tempfile::tempdir().unwrap();
        let folder = prepare(Some(&place.path().join("a b")), true).unwrap();
        for name in PROGRAMS {
            assert!(folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)).is_file(), "{name}");
        }
        assert!(has_controllers(&folder.join("kube-apiserver")));
        // A second time with another wish.
        prepare(Some(&folder), false).unwrap();
        assert!(!has_controllers(&folder.join("kube-apiserver")));
        assert!(!has_controllers(Path::new("kube-apiserver")));
    }
}
