//! `cargo build` in a project, and the program that comes out of it.
//!
//! Enters: a project. Leaves: the path of its program. What cargo and the compiler say to people goes to stderr as it
//! is said, with colours where a terminal shows them.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::process::Command;

use super::{Error, Project};
use crate::diverted;

/// How a build talks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Tell of errors and warnings alone.
    pub(crate) quiet: bool,
    /// No colours, wherever it is shown.
    pub(crate) plain: bool,
    /// With what a debugger needs.
    pub(crate) debugger: bool,
}

impl Project {
    /// Builds the project, and returns its program.
    pub(crate) async fn build(&self, manner: Manner) -> Result<PathBuf, Error> {
        let program = cargo();
        let mut command = Command::new(&program);
        command.args(["build", "--message-format=json-render-diagnostics"]);
        for variable in of_another_package() {
            command.env_remove(variable);
        }
        if manner.quiet {
            command.arg("--quiet");
        }
        if manner.plain {
            command.args(["--color", "never"]);
        }
        if manner.debugger {
            // Variables, not only lines; what the project's profile says of its dependencies stays.
            command.args(["--config", "profile.dev.debug=2"]);
        }
        command.current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::piped());
        // The terminal may show something else: then what is said is passed on at the end.
        command.stderr(if diverted::is_on() { Stdio::piped() } else { Stdio::inherit() });
        let running = command.kill_on_drop(true).spawn();
        let running = running.map_err(|source| Error::NoCargo { program: program.clone(), source })?;
        let output = running.wait_with_output().await;
        let output = output.map_err(|source| Error::NoCargo { program, source })?;
        if !output.stderr.is_empty() {
            let _ = std::io::Write::write_all(&mut diverted::Stderr, &output.stderr);
        }
        if !output.status.success() {
            return Err(Error::Build { name: self.name.clone(), status: output.status });
        }
        program_in(&self.name, &String::from_utf8_lossy(&output.stdout))
    }
}

/// The program among what cargo tells that it has built: the only one, or the one with this name.
pub(crate) fn program_in(name: &str, messages: &str) -> Result<PathBuf, Error> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs: Vec<(String, PathBuf)> = parsed
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(message["executable"].as_str()?)))
        })
        .collect();
    if let Some(position) = programs.iter().position(|(found, _)| found == name) {
        return Ok(programs.swap_remove(position).1);
    }
    match programs.len() {
        0 => Err(Error::NoProgram { name: name.to_owned() }),
        1 => Ok(programs.swap_remove(0).1),
        _ => Err(Error::Programs {
            name: name.to_owned(),
            programs: programs.into_iter().map(|(name, _)| name).collect(),
        }),
    }
}

/// The cargo that is asked for: the one that runs this, or the one in the path.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").filter(|path| !path.is_empty()).map_or_else(|| "cargo".into(), PathBuf::from)
}

/// The variables in which a `cargo run` or `cargo test` around this process describes its package. A build script that
/// watches them would take them for its own, and run again with everything that depends on it: the next time, too.
pub(crate) fn of_another_package() -> impl Iterator<Item = OsString> {
    let describes = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os().map(|(name, _)| name).filter(move |name| name.to_str().is_some_and(describes))
}

/// Runs a subcommand of the operator's program, and returns what it prints.
pub(crate) async fn printed(
    program: &Path,
    root: &Path,
    arguments: &[impl AsRef<OsStr>],
) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    let output = output.map_err(|source| Error::Run { program: program.to_owned(), source })?;
    if !output.status.success() {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        return Err(Error::Failed { command: format!("{name} {}", words.join(" ")), said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(name: &str, executable: &str) -> String {
        format!(r#"{{"reason":"compiler-artifact","target":{{"name":"{name}"}},"executable":{executable}}}"#)
    }

    #[test]
    fn the_program_is_the_only_one_or_the_one_of_the_projects_name() {
        let library = artifact("shop", "null");
        let only = artifact("other", "\"/t/other\"");
        let messages = format!("{library}\nnot json\n{only}\n");
        assert_eq!(program_in("shop", &messages).unwrap(), Path::new("/t/other"));
        let both = format!("{messages}{}\n", artifact("shop", "\"/t/shop\""));
        assert_eq!(program_in("shop", &both).unwrap(), Path::new("/t/shop"));
    }

    #[test]
    fn what_describes_another_package_is_known() {
        // Cargo describes this one to its tests.
        let found: Vec<OsString> = of_another_package().collect();
        assert!(found.contains(&"CARGO_PKG_NAME".into()) && found.contains(&"CARGO_MANIFEST_DIR".into()));
        assert!(!found.contains(&"CARGO".into()) && !found.contains(&"PATH".into()), "{found:?}");
    }

    #[test]
    fn no_program_or_several_are_errors_with_advice() {
        let none = program_in("shop", &artifact("shop", "null")).unwrap_err();
        assert!(none.hint().unwrap().contains("src/main.rs"), "{none}");
        let several = [artifact("a", "\"/t/a\""), artifact("b", "\"/t/b\"")].join("\n");
        let several = program_in("shop", &several).unwrap_err();
        assert!(several.to_string().contains("(a, b)"), "{several}");
    }
}
