//! Servers that debuggers and editors attach to: lldb-server or gdbserver, whichever is there.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::{error::Explained, exit_status::ExitStatus};

/// A debug server that was found.
#[derive(Clone, Debug)]
pub(crate) struct Debugger {
    pub(crate) address: SocketAddr,
    pub(crate) program: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lldb,
    Gdb,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to find a debug server: neither lldb-server nor gdbserver is in the PATH")]
    Missing,
}

impl Explained for Error {
    fn hint(&self) -> Option<String> {
        let hint = if cfg!(target_os = "macos") {
            "lldb-server comes with `brew install llvm`; put $(brew --prefix llvm)/bin into the PATH"
        } else if cfg!(windows) {
            "lldb-server comes with LLVM (`winget install LLVM.LLVM`), gdbserver with MSYS2"
        } else {
            "install one: `apt-get install gdbserver` or `apt-get install lldb` (Debian, Ubuntu)"
        };
        Some(hint.to_owned())
    }

    fn status(&self) -> ExitStatus {
        ExitStatus::Failure
    }
}

impl Debugger {
    /// Looks for a server. lldb knows Rust's types better.
    pub(crate) fn find(address: SocketAddr) -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |name: &str| find_in(&path, name);
        let lldb = found("lldb-server").map(|program| (program, Kind::Lldb));
        let (program, kind) =
            lldb.or_else(|| Some((found("gdbserver")?, Kind::Gdb))).ok_or(Error::Missing)?;
        Ok(Self { address, program, kind })
    }

    /// What comes before the operator's own arguments.
    pub(crate) fn arguments(&self, program: &Path) -> Vec<OsString> {
        let (address, program) = (self.address.to_string().into(), program.into());
        match self.kind {
            Kind::Lldb => vec!["gdbserver".into(), address, "--".into(), program],
            Kind::Gdb => vec!["--once".into(), address, program],
        }
    }

    /// How to attach from a terminal.
    pub(crate) fn attach(&self, program: &Path) -> String {
        match self.kind {
            Kind::Lldb => format!("lldb {} -o 'gdb-remote {}'", program.display(), self.address),
            Kind::Gdb => format!("gdb {} -ex 'target remote {}'", program.display(), self.address),
        }
    }
}

/// A program in one of the folders of a PATH. Versions stand behind the name on Debian: `lldb-server-19`.
pub(crate) fn find_in(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    let names = [format!("{name}{}", std::env::consts::EXE_SUFFIX)];
    let exact = std::env::split_paths(path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|candidate| candidate.is_file());
    exact.or_else(|| {
        let prefix = format!("{name}-");
        let versioned = |file: &str| {
            file.strip_prefix(&prefix)
                .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
        };
        let folders = std::env::split_paths(path);
        let mut found: Vec<PathBuf> = folders
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flat_map(|entries| entries.flatten())
            .filter(|entry| versioned(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.pop()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_under_its_name_or_with_a_version_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(find_in(path, "lldb-server"), None);
        std::fs::write(folder.path().join("lldb-server-19"), "").unwrap();
        std::fs::write(folder.path().join("lldb-server-notes"), "").unwrap();
        assert_eq!(find_in(path, "lldb-server"), Some(folder.path().join("lldb-server-19")));
        let exact = folder.path().join(format!("lldb-server{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&exact, "").unwrap();
        assert_eq!(find_in(path, "lldb-server"), Some(exact));
    }

    #[test]
    fn each_server_has_its_own_way_to_be_started_and_attached_to() {
        let address = "127.0.0.1:2345".parse().unwrap();
        let line = |kind| {
            let debugger = Debugger { address, program: "server".into(), kind };
            let arguments = debugger.arguments(Path::new("shop"));
            let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
            (arguments.join(" "), debugger.attach(Path::new("shop")))
        };
        assert_eq!(
            line(Kind::Gdb),
            ("--once 127.0.0.1:2345 shop".into(), "gdb shop -ex 'target remote 127.0.0.1:2345'".into())
        );
        assert_eq!(
            line(Kind::Lldb),
            ("gdbserver 127.0.0.1:2345 -- shop".into(), "lldb shop -o 'gdb-remote 127.0.0.1:2345'".into())
        );
    }
}
