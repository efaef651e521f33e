//! Where the state of named clusters is on this system.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use fs_err as fs;

use super::{ClusterDirectory, Error, error};

/// The name of a cluster that was given none.
pub(crate) const DEFAULT: &str = "default";

/// The folder of all named clusters of a user.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// `$WINDLASS_HOME`, or where the system keeps the state of programs.
    pub(crate) fn find() -> Result<Self, Error> {
        let folder = locate(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
        let folder = folder.ok_or(Error::NoHome)?;
        let absolute = std::path::absolute(&folder).map_err(error::failed("find", &folder))?;
        Ok(Self(absolute.join("clusters")))
    }

    /// The cluster of a name, whether it is there or not.
    pub(crate) fn place(&self, name: &str) -> ClusterDirectory {
        ClusterDirectory { name: name.to_owned(), folder: self.0.join(name) }
    }

    /// All clusters that something is known of, by name.
    pub(crate) fn all(&self) -> Result<Vec<ClusterDirectory>, Error> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(error::failed("list", &self.0)(source)),
        };
        let mut places = Vec::new();
        for entry in entries {
            let entry = entry.map_err(error::failed("list", &self.0))?;
            let name = entry.file_name().into_string().ok().filter(|name| check_name(name).is_ok());
            if let Some(name) = name.filter(|_| entry.path().is_dir()) {
                places.push(self.place(&name));
            }
        }
        places.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(places)
    }

    /// The cluster of a name, if something is known of it.
    pub(crate) fn known(&self, name: &str) -> Result<ClusterDirectory, Error> {
        let place = self.place(name);
        if place.exists() {
            return Ok(place);
        }
        let known = self.all()?.iter().map(|place| place.name().to_owned()).collect();
        Err(Error::Unknown { name: name.to_owned(), known })
    }
}

/// A name that is one word in a path, a shell and Kubernetes.
pub(crate) fn check_name(name: &str) -> Result<String, String> {
    if windlass::apimachinery::names::is_dns1123_label(name) {
        Ok(name.to_owned())
    } else {
        Err("use lowercase letters, digits and '-' inside, at most 63".into())
    }
}

fn locate(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(home) = variable("WINDLASS_HOME") {
        return Some(home.into());
    }
    if cfg!(windows) {
        return variable("LOCALAPPDATA").map(|folder| PathBuf::from(folder).join("windlass"));
    }
    let home = || variable("HOME").map(PathBuf::from);
    if cfg!(target_os = "macos") {
        return Some(home()?.join("Library/Application Support/windlass"));
    }
    // The specification wants relative paths ignored.
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(state.or_else(|| Some(home()?.join(".local/state")))?.join("windlass"))
}

/// A folder that only its owner can look into.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_state_is_where_the_system_keeps_it_unless_told_otherwise() {
        let located = |set: &[(&str, &str)]| {
            locate(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| OsString::from(value)))
        };
        let home = ("HOME", "/home/me");
        assert_eq!(located(&[home]), Some("/home/me/.local/state/windlass".into()));
        assert_eq!(located(&[home, ("XDG_STATE_HOME", "/s")]), Some("/s/windlass".into()));
        assert_eq!(located(&[home, ("XDG_STATE_HOME", "s")]), Some("/home/me/.local/state/windlass".into()));
        assert_eq!(located(&[home, ("WINDLASS_HOME", "/w")]), Some("/w".into()));
        assert_eq!(located(&[]), None);
    }

    #[test]
    fn a_name_is_one_word_everywhere() {
        for name in ["default", "a", "a-1", "0"] {
            assert_eq!(check_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", "a-", "A", "a.b", "a/b", "..", "a b", &"a".repeat(64)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
