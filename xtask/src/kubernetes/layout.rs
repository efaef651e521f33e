//! Where a testbed keeps its files: binaries in the user's cache, state in a short run directory.
//!
//! Enters the environment and a testbed's name; leave paths. Nothing here touches a process.

use std::env;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::release::Release;

/// The root of what outlives a testbed and is worth keeping between checkouts.
pub(super) fn cache_root() -> Result<PathBuf> {
    let root = env::var_os("WINDLASS_CACHE")
        .or_else(|| env::var_os("XDG_CACHE_HOME"))
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("failed to find a cache directory: set HOME, XDG_CACHE_HOME or WINDLASS_CACHE")?;
    ensure!(root.is_absolute(), "the cache directory {} must be an absolute path", root.display());
    Ok(root.join("windlass"))
}

/// The directory of the Kubernetes programs of a release.
pub(super) fn binaries(release: Release) -> Result<PathBuf> {
    Ok(cache_root()?.join("kubernetes").join(format!("v{release}")))
}

/// kubectl: of the newest release, whatever the testbed is made of.
pub(super) fn kubectl() -> Result<PathBuf> {
    Ok(binaries(Release::Newest)?.join("kubectl"))
}

/// The Go module that the programs of a release are built from.
pub(super) fn go_module(release: Release) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(release.module())
}

/// The root of the checkout this program was built from.
pub(super) fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie inside the workspace")
}

/// The directory under which every testbed of this user has one of its own.
///
/// It is short, because unix socket paths end at 108 bytes, and outside `/run`, because the box mounts a
/// fresh `/run`. It is ours alone: keys lie below it.
pub(super) fn run_root() -> Result<PathBuf> {
    let uid = rustix::process::getuid();
    let root = env::var_os("WINDLASS_RUN")
        .map_or_else(|| PathBuf::from(format!("/tmp/windlass-{}", uid.as_raw())), PathBuf::from);
    ensure!(root.is_absolute(), "WINDLASS_RUN must be an absolute path, not {}", root.display());
    ensure!(
        root.as_os_str().len() <= 50 && !root.starts_with("/run") && !root.starts_with("/var/run"),
        "WINDLASS_RUN must be a short path outside /run, not {}",
        root.display()
    );
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&root)
        .with_context(|| format!("failed to create {}", root.display()))?;
    let found = fs::symlink_metadata(&root)?;
    if !found.is_dir() || found.uid() != uid.as_raw() || found.mode() & 0o022 != 0 {
        bail!(
            "{} must be a directory that only this user can write: remove it and try again",
            root.display()
        );
    }
    Ok(root)
}

/// The files of one testbed.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) name: String,
    pub(super) run: PathBuf,
}

impl Layout {
    pub(super) fn of(name: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), run: run_root()?.join(name) })
    }

    /// The layout whose run directory is `run`: how a process inside the box finds its own.
    pub(super) fn at(run: &Path) -> Result<Self> {
        let name =
            run.file_name().and_then(|name| name.to_str()).context("a run directory must have a name")?;
        Ok(Self { name: name.to_owned(), run: run.to_owned() })
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.run.join(relative)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    pub(super) fn log(&self, component: &str) -> PathBuf {
        self.path(&format!("{component}.log"))
    }

    /// One line for each component that ended, written by the supervisor and read by `up`.
    pub(super) fn exits(&self) -> PathBuf {
        self.path("exits")
    }
}

/// The names of all testbeds of this user, running or not, in order.
pub(super) fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(run_root()?)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir()
            && let Some(name) = name.to_str()
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Accepts what is safe as a directory, a cgroup and a host name.
pub(super) fn parse_name(name: &str) -> Result<String, String> {
    let fits = (1..=20).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if fits {
        Ok(name.to_owned())
    } else {
        Err("a name has 1 to 20 characters of a-z, 0-9 and '-', and neither starts nor ends with '-'"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_a_directory_and_a_cgroup() {
        for good in ["default", "ci-2", "a"] {
            assert_eq!(parse_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "..", "a/b", "A", "-a", "a-", "a_b", "a23456789012345678901"] {
            assert!(parse_name(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
