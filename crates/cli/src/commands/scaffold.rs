//! What the commands have in common that change a project: asking, showing a plan, carrying it out.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use windlass_scaffold::{Change, Plan};

use crate::{error::Error, printer::Printer, project::build, signals::Signals};

/// The versions that this windlass was built with.
pub(super) const LOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/Cargo.lock"));

/// The folder that a command works in.
pub(super) fn here() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(Error::Ask)
}

/// Values of flags: those that are missing are asked for if a person is there, and named otherwise.
#[derive(Default)]
pub(super) struct Asked {
    missing: Vec<&'static str>,
}

impl Asked {
    /// The value of a flag. What is asked for must be good before the next question comes.
    pub(super) fn value<E: std::fmt::Display>(
        &mut self,
        flag: &'static str,
        given: Option<&String>,
        question: &str,
        check: impl Fn(&str) -> Result<(), E>,
    ) -> Result<String, Error> {
        if let Some(given) = given {
            return Ok(given.clone());
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            self.missing.push(flag);
            return Ok(String::new());
        }
        loop {
            let mut stderr = anstream::stderr().lock();
            write!(stderr, "{question}: ").and_then(|()| stderr.flush()).map_err(Error::Ask)?;
            let mut line = String::new();
            if io::stdin().read_line(&mut line).map_err(Error::Ask)? == 0 {
                self.missing.push(flag);
                return Ok(String::new());
            }
            let line = line.trim();
            match check(line) {
                Ok(()) => return Ok(line.to_owned()),
                Err(problem) => writeln!(stderr, "{problem}").map_err(Error::Ask)?,
            }
        }
    }

    /// A question that is answered with yes or no, and with no unless told otherwise.
    #[expect(clippy::unused_self, reason = "whoever asks questions asks this one too")]
    pub(super) fn yes(&self, question: &str) -> Result<bool, Error> {
        let mut stderr = anstream::stderr().lock();
        write!(stderr, "{question} ").and_then(|()| stderr.flush()).map_err(Error::Ask)?;
        let mut line = String::new();
        io::stdin().read_line(&mut line).map_err(Error::Ask)?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
    }

    /// Fails if something is missing.
    pub(super) fn complete(self) -> Result<(), Error> {
        if self.missing.is_empty() { Ok(()) } else { Err(Error::MissingFlags(self.missing)) }
    }
}

/// Carries out a plan, or shows it.
pub(super) fn carry_out(plan: &Plan, dry_run: bool, printer: Printer) -> Result<(), Error> {
    if dry_run {
        return show(plan, printer);
    }
    let signals = Signals::new()?;
    plan.carry_out(&|| signals.is_received())?;
    for change in plan.visible() {
        let (verb, path) = described(change);
        printer.fact(verb, path)?;
    }
    remarks(plan, printer)
}

fn described(change: &Change) -> (&'static str, &str) {
    match change {
        Change::Create { path, .. } => ("create", path),
        Change::Replace { path, .. } => ("change", path),
        Change::Remove { path } => ("remove", path),
    }
}

fn remarks(plan: &Plan, printer: Printer) -> Result<(), Error> {
    for path in &plan.kept {
        printer.remark("keep", path, "changed by hand; --force removes it")?;
    }
    for path in &plan.absent {
        printer.remark("absent", path, "removed by hand, and left so")?;
    }
    Ok(())
}

/// Prints what would happen, with what would change in files that are there.
fn show(plan: &Plan, printer: Printer) -> Result<(), Error> {
    for change in plan.visible() {
        let (verb, path) = described(change);
        printer.fact(verb, path)?;
        if let Some(diff) = change.diff() {
            printer.line(diff.trim_end())?;
        }
    }
    remarks(plan, printer)?;
    printer.aside("a dry run: nothing was written")
}

/// Writes what follows from the code: the project's own binary knows it. The files of a change stay whatever comes of it.
pub(super) fn make(root: &Path, printer: Printer) -> Result<(), Error> {
    const COMMAND: [&str; 6] = ["run", "--quiet", "--", "manifests", "--out", "config"];
    printer.fact("run", format_args!("cargo {}", COMMAND.join(" ")))?;
    let ran = cargo(root).args(COMMAND).stdout(Stdio::null()).status();
    match ran {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => {
            printer.warning("config/ was not written; when the project builds, write it: make manifests")
        }
        Err(error) => printer.warning(&format!(
            "config/ was not written: failed to run cargo: {error}; when it is there: make manifests"
        )),
    }
}

/// Lets Cargo bring Cargo.lock in line with Cargo.toml, from what is in its cache. It does that by itself at the first
/// build, so nothing is lost where there is no Cargo, or not everything is in its cache.
pub(super) fn settle_lock(root: &Path) {
    let _ = cargo(root).args(["metadata", "--offline", "--format-version", "1", "--quiet"]).output();
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(build::cargo());
    command.current_dir(root);
    for variable in build::of_another_package() {
        command.env_remove(variable);
    }
    command
}

/// A path as one would type it from here.
pub(super) fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
