//! A command that a project's own program carries out: `windlass explain-rbac`.
//!
//! The project is built first, so that what is printed or written is what the sources say now.

use std::{
    ffi::{OsStr, OsString},
    process::Stdio,
};

use tokio::process::Command;

use crate::{
    args::ExplainRbacArgs,
    error::Error,
    project::{self, Project, build::Manner},
};

pub(super) async fn explain_rbac(args: &ExplainRbacArgs) -> Result<(), Error> {
    let mut arguments: Vec<OsString> = vec!["-o".into(), args.output.word().into()];
    arguments.extend(args.arguments.iter().cloned());
    pass("explain-rbac", &arguments).await
}

/// Builds the project and lets its program answer: its output and its exit code are this command's.
async fn pass(subcommand: &str, arguments: &[OsString]) -> Result<(), Error> {
    let project = Project::here()?;
    let program = project.build(Manner { quiet: true, ..Manner::default() }).await?;
    let mut command = Command::new(&program);
    command.arg(subcommand).args(arguments.iter().map(OsStr::new));
    command.current_dir(&project.root).stdin(Stdio::null()).kill_on_drop(true);
    let failed = |source| project::Error::Run { program: program.clone(), source };
    let status = command.status().await.map_err(failed)?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Error::Passed(u8::try_from(code).unwrap_or(1))),
        None => Err(project::Error::Ended { name: project.name, status: status.to_string() }.into()),
    }
}
