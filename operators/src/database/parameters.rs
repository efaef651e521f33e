//! `spec.parameters`: what may be said in them, and how a server is kept from settings that it cannot start with.
//!
//! A name that is misspelt, a value that is out of range, more memory than there is: only a server of that version knows.
//! So a server without data is started with the new parameters in a Job, and the running one is restarted after that has
//! worked. Until then, and for as long as it does not work, it goes on with those that it has: they stand in the status.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use windlass::Context;

use super::{
    api::Database,
    build,
    controller::Error,
    jobs,
    status::{self, Observed},
};
use crate::workload::Problem;

/// What the operator sets itself, what would lead a server away from its data and its log, and what includes files.
const DENIED: [&str; 22] = [
    "archive_command",
    "archive_library",
    "archive_mode",
    "config_file",
    "data_directory",
    "data_sync_retry",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "include",
    "include_dir",
    "include_if_exists",
    "listen_addresses",
    "password_encryption",
    "port",
    "recovery_end_command",
    "restore_command",
    "shared_preload_libraries_dir",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
    "zero_damaged_pages",
];

/// Refuses what no server should be asked to try. PostgreSQL reads names in any case.
pub(super) fn check(db: &Database) -> Result<(), Problem> {
    for (name, value) in &db.spec.parameters {
        let place = format!("spec.parameters[{name:?}]");
        if !is_name(name) {
            return Err(Problem::spec(format!(
                "{place} is no name of a setting: letters, digits, '_' and '$', with one '.' after an extension's name"
            )));
        }
        let plain = name.to_ascii_lowercase();
        if DENIED.contains(&plain.as_str()) {
            return Err(Problem::spec(format!(
                "{place} is a parameter that the operator sets itself; leave it out"
            )));
        }
        if value.chars().any(char::is_control) {
            return Err(Problem::spec(format!(
                "{place} has a line's end or another control character in its value"
            )));
        }
        let needed = match plain.as_str() {
            "wal_level" if !["replica", "logical"].contains(&value.to_ascii_lowercase().as_str()) => {
                "replica or logical"
            }
            "max_wal_senders" if value.trim().parse::<u32>().is_ok_and(|senders| senders < 2) => "2 or more",
            _ => continue,
        };
        return Err(Problem::spec(format!("{place} is {value:?}; backups need {needed}")));
    }
    Ok(())
}

/// A word, or two of them with a dot.
fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(inner)
    };
    match name.split_once('.') {
        Some((extension, setting)) => is_word(extension) && is_word(setting),
        None => is_word(name),
    }
}

/// Whether a server may be started with the parameters of the spec.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It may.
    Accepted,
    /// A Job tries.
    Checking(Box<Job>),
    /// A Job has tried, and stays until there is another wish.
    Refused(Box<Job>, Problem),
}

impl Verdict {
    /// Judges what was seen. Without data there is no server to be kept running.
    pub(super) fn of(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<Self, Error> {
        let status = db.status.clone().unwrap_or_default();
        // Earlier operators did not record them: what runs is what the spec said.
        let known = status.parameters.as_ref().is_none_or(|accepted| *accepted == db.spec.parameters);
        if known || !status.initialized {
            return Ok(Self::Accepted);
        }
        let wanted = build::check_job(db);
        let found = seen.jobs.iter().find(|job| job.name_any() == wanted.name_any());
        if found.is_some_and(|job| status::is_complete(job)) {
            return Ok(Self::Accepted);
        }
        if let Some((job, (_, why))) = found.and_then(|job| Some((job, status::job_failure(job)?))) {
            let why = jobs::why(ctx, job, why).map_err(Error::Read)?;
            let message = format!(
                "a server does not start with spec.parameters: {why}; the server goes on with those that it has; mend \
                 them, or delete that Job to try again"
            );
            return Ok(Self::Refused(Box::new(wanted), Problem::new("ParametersRefused", message)));
        }
        Ok(Self::Checking(Box::new(wanted)))
    }

    /// The Job that tries, or has.
    pub(super) fn job(&self) -> Option<Job> {
        match self {
            Self::Accepted => None,
            Self::Checking(job) | Self::Refused(job, _) => Some((**job).clone()),
        }
    }

    /// What a person has to know.
    pub(super) fn problem(&self) -> Option<Problem> {
        match self {
            Self::Refused(_, problem) => Some(problem.clone()),
            Self::Accepted | Self::Checking(_) => None,
        }
    }

    /// What is waited for.
    pub(super) fn waiting(&self) -> Option<Problem> {
        let message =
            "a server without data is started with the new parameters, before the server is restarted";
        matches!(self, Self::Checking(_)).then(|| Problem::new("CheckingParameters", message))
    }

    /// The Database with the parameters that its server may have.
    pub(super) fn applied_to(&self, db: &Database) -> Database {
        let mut db = db.clone();
        if *self == Self::Accepted {
            db.status.get_or_insert_default().parameters = Some(db.spec.parameters.clone());
        } else if let Some(accepted) = db.status.as_ref().and_then(|status| status.parameters.clone()) {
            db.spec.parameters = accepted;
        }
        db
    }
}
