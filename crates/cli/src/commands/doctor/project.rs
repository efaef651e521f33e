//! The project around the working folder: its files, and whether they are in step with each other and with Windlass.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Check, said};
use crate::project::{Error, Project, build::cargo};

/// The version of this program.
const OURS: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn checks(found: &Result<Option<Project>, Error>) -> Vec<Check> {
    let project = match found {
        Ok(Some(project)) => project,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let fix = error.hint().unwrap_or_else(|| "restore it".into());
            return vec![Check::fail("project", error.to_string(), fix)];
        }
    };
    let mut checks = vec![scaffold(project)];
    checks.push(lock(project));
    checks.extend(manifests(project).await);
    checks
}

/// Who wrote the project. One of a newer Windlass is not read at all.
fn scaffold(project: &Project) -> Check {
    let (name, version) = (&project.name, project.cli_version.as_str());
    if version == OURS {
        return Check::ok("project", format!("{name}, of windlass {version}"));
    }
    Check::warn("project", format!("{name} is of windlass {version}, and this is {OURS}"), "windlass upgrade")
}

/// Whether the versions of its dependencies are fixed, and the SDK's is that of this program.
fn lock(project: &Project) -> Check {
    let Ok(text) = std::fs::read_to_string(project.root.join("Cargo.lock")) else {
        return Check::fail(
            "Cargo.lock",
            "not there: every build may take other versions",
            "cargo generate-lockfile",
        );
    };
    match locked(&text, "windlass") {
        Some(version) if version == OURS => {
            Check::ok("Cargo.lock", format!("windlass {version}, as this program"))
        }
        Some(version) => Check::warn(
            "Cargo.lock",
            format!("windlass {version}, and this program is {OURS}"),
            format!("cargo update windlass --precise {OURS}, or install windlass {version}"),
        ),
        None => Check::fail("Cargo.lock", "windlass is not in it", "cargo add windlass"),
    }
}

/// The version of a package in a lock file.
fn locked(text: &str, package: &str) -> Option<String> {
    let mut lines = text.lines();
    lines.find(|line| *line == format!("name = \"{package}\""))?;
    Some(lines.next()?.strip_prefix("version = \"")?.trim_end_matches('"').to_owned())
}

/// Whether config/ is what the program of the last build would write. Nothing is built for that.
async fn manifests(project: &Project) -> Option<Check> {
    let program = last_build(project).await?;
    let arguments = ["manifests", "--out", "config", "--check"];
    let help = said(&program, &["manifests", "--help"], &project.root).await.ok()?;
    if !help.contains("--check") {
        return None;
    }
    Some(match said(&program, &arguments, &project.root).await {
        Ok(_) => Check::ok("manifests", "config/ is what the last build writes"),
        Err(why) => Check::warn("manifests", format!("config/ is out of step: {why}"), "windlass manifests"),
    })
}

async fn last_build(project: &Project) -> Option<PathBuf> {
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let metadata: Value = serde_json::from_str(&said(cargo(), &arguments, &project.root).await.ok()?).ok()?;
    let folder = Path::new(metadata["target_directory"].as_str()?).join("debug");
    Some(folder.join(format!("{}{}", project.name, std::env::consts::EXE_SUFFIX)))
        .filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdks_version_is_read_from_the_lock() {
        let text = "[[package]]\nname = \"windlass-cluster\"\nversion = \"0.3.0\"\n\n\
                    [[package]]\nname = \"windlass\"\nversion = \"0.2.0\"\n";
        assert_eq!(locked(text, "windlass").as_deref(), Some("0.2.0"));
        assert_eq!(locked(text, "serde"), None);
    }
}
