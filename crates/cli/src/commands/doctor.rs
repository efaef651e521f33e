//! `windlass doctor`: whether everything is there, and what to do about what is not.
//!
//! It looks and changes nothing. What `dev` cannot do without fails; what only some commands need is a warning.

mod cluster;
mod project;
mod tools;

use std::{path::Path, process::Stdio, time::Duration};

use futures::future::join_all;
use serde::Serialize;
use tokio::process::Command;

use crate::{
    args::DoctorArgs,
    error::Error,
    printer::{Level, Printer},
    project::Project,
};

/// How long a program may take to say its version.
const TIMEOUT: Duration = Duration::from_secs(20);

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    name: &'static str,
    status: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Level::Ok, message: message.into(), fix: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: Level::Warn, message: message.into(), fix: Some(fix.into()) }
    }

    fn fail(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: Level::Fail, message: message.into(), fix: Some(fix.into()) }
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    ok: bool,
    checks: Vec<Check>,
}

pub(super) async fn run(args: &DoctorArgs, printer: Printer) -> Result<(), Error> {
    let found = Project::find();
    let folder = match &found {
        Ok(Some(project)) => project.root.clone(),
        _ => std::env::current_dir().map_err(crate::project::Error::WorkingFolder)?,
    };
    let project = found.as_ref().ok().and_then(Option::as_ref);
    let rooms = tokio::join!(
        tools::checks(&folder, project),
        project::checks(&found),
        cluster::checks(&args.connection),
    );
    let checks: Vec<Check> = rooms.0.into_iter().chain(rooms.1).chain(rooms.2).collect();
    let failed = checks.iter().filter(|check| check.status == Level::Fail).count();
    match args.output.output {
        Some(format) => printer.data(format, &Answer { ok: failed == 0, checks })?,
        None => {
            for check in &checks {
                printer.verdict(check.status, check.name, &check.message, check.fix.as_deref())?;
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(Error::Unwell(failed)) }
}

/// What a program says, or why it says nothing.
async fn said(
    program: impl AsRef<std::ffi::OsStr>,
    arguments: &[&str],
    folder: &Path,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(TIMEOUT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = said.lines().map(str::trim).find(|line| !line.is_empty());
    Err(first.map_or_else(|| output.status.to_string(), ToOwned::to_owned))
}

/// Looks at several things at once, and returns them in their order.
async fn together(checks: Vec<futures::future::BoxFuture<'_, Option<Check>>>) -> Vec<Check> {
    join_all(checks).await.into_iter().flatten().collect()
}
