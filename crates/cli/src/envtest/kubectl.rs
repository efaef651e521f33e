//! What is called kubectl: the user's own, which is looked for in the PATH.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use super::Error;

pub(super) fn run(program: &Path, arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own: Vec<PathBuf> =
        [program.to_owned(), std::env::current_exe().unwrap_or_default()].map(real).into();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(format!("kubectl{}", std::env::consts::EXE_SUFFIX)))
        .find(|candidate| {
            candidate.is_file() && !own.contains(&real(candidate.clone())) && !is_ours(candidate)
        });
    let found = found.ok_or(Error::NoKubectl)?;
    let status = Command::new(&found).args(arguments).status();
    let status = status.map_err(|source| Error::Kubectl { program: found, source })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Whether a file is of a directory that `windlass envtest` made, where it may be a copy.
fn is_ours(candidate: &Path) -> bool {
    candidate.parent().is_some_and(|folder| folder.join(super::assets::MARK).is_file())
}
