//! What can go wrong with a project, and what a person can do about it.

use std::{io, path::PathBuf};

use crate::names::NameError;

/// Why a project was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The Go project cannot be read.
    #[error("{}", one_line(.0))]
    Kubebuilder(#[from] windlass_crd::kubebuilder::Error),
    /// There is no project here.
    #[error("failed to find a project: no PROJECT file in {} or above it", .0.display())]
    NoProject(PathBuf),
    /// The PROJECT file cannot be read.
    #[error("failed to read {}: {message}", path.display())]
    ReadProject {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The project belongs to another tool.
    #[error("failed to use {}: its layout is {layout}", path.display())]
    OtherLayout {
        /// The file.
        path: PathBuf,
        /// What it says.
        layout: String,
    },
    /// The project was written by a windlass that is newer than this one.
    #[error("failed to use a project of windlass {theirs} with windlass {ours}")]
    NewerProject {
        /// The version that wrote it.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
    /// The folder of a new project has something in it.
    #[error("failed to make a project in {}: it is not empty ({found})", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One thing that is there.
        found: String,
    },
    /// A kind is there already.
    #[error("the project has {0} already")]
    KindExists(String),
    /// A kind is not there.
    #[error("the project has no {wanted}")]
    NoKind {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: Vec<String>,
    },
    /// What is asked for contradicts itself or what is there.
    #[error("{problem}")]
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Files would be overwritten that nobody scaffolded.
    #[error("failed to write {}: {} already", list(.0), if .0.len() == 1 { "it exists" } else { "they exist" })]
    Exists(Vec<String>),
    /// A file that registers kinds has lost its marker.
    #[error("failed to register in {path}: the line `{marker}` is missing")]
    NoMarker {
        /// The file.
        path: String,
        /// The line.
        marker: String,
        /// What would have been written above it.
        lines: Vec<String>,
    },
    /// Two changes of one place.
    #[error("failed to change {}: what was changed there by hand and what is new touch the same lines", list(.0))]
    Conflict(Vec<String>),
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written. Nothing was changed.
    #[error("failed to write {}; nothing was changed", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Writing failed, and so did putting things back.
    #[error("failed to undo a change that was interrupted; what was there before is kept in {}", path.display())]
    Undo {
        /// Where the former files are.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted; nothing was changed")]
    Interrupted,
    /// A template is wrong, which is a mistake in this program.
    #[error("failed to render {template}")]
    Render {
        /// The template.
        template: String,
        /// Why.
        source: Box<minijinja::Error>,
    },
}

/// An error with its causes.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.extend([": ", error.to_string().lines().next().unwrap_or_default()]);
        cause = error.source();
    }
    text
}

/// A few names in one line.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        shown.extend([" and ", &(names.len() - SHOWN).to_string(), " more"]);
    }
    shown
}

impl Error {
    /// A request that cannot be granted.
    pub(crate) fn refused(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), hint: hint.into() }
    }

    /// Whether the user can change it; otherwise it is a mistake in this program.
    pub fn is_the_users(&self) -> bool {
        !matches!(self, Self::Render { .. })
    }

    /// What to do.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Name(error) => error.hint().to_owned(),
            Self::Kubebuilder(error) => kubebuilder(error).into(),
            Self::NoProject(_) => "change into a project, or make one: windlass init NAME --domain example.com".into(),
            Self::ReadProject { .. } => "PROJECT is YAML that windlass writes; take it back from version control".into(),
            Self::OtherLayout { .. } => {
                "windlass works on projects of its own, whose layout is windlass.dev/v1: windlass init".into()
            }
            Self::NewerProject { .. } => "update windlass: cargo install windlass-cli".into(),
            Self::NotEmpty { .. } => "choose another name, or an empty folder".into(),
            Self::KindExists(_) => {
                "choose another kind, another --version for a second version of it, or --force to write its files anew".into()
            }
            Self::NoKind { known, .. } if known.is_empty() => "there is no kind yet: windlass create api".into(),
            Self::NoKind { known, .. } => format!("there is {}", known.join(", ")),
            Self::Refused { hint, .. } => hint.clone(),
            Self::Exists(_) => "move them away, or overwrite them with --force".into(),
            Self::NoMarker { marker, lines, .. } => {
                format!("put the line back where the following belongs, or add it yourself: {} {marker}", lines.join(" "))
            }
            Self::Conflict(_) => "nothing was changed; --dry-run shows what is new".into(),
            Self::Write { source, .. } | Self::Read { source, .. } => return advice(source),
            Self::Undo { .. } => "take the project back from version control, or copy the files from there".into(),
            Self::Interrupted | Self::Render { .. } => return None,
        };
        Some(hint)
    }
}

fn kubebuilder(error: &windlass_crd::kubebuilder::Error) -> &'static str {
    use windlass_crd::kubebuilder::Error as Go;
    match error {
        Go::NoProject(_) => "name the folder of a project that kubebuilder or operator-sdk made",
        Go::Version { .. } => "bring the Go project to a newer kubebuilder first: kubebuilder alpha generate",
        Go::Windlass(_) => "change into it, and add to it: windlass create api",
        Go::Read { .. } => "see whether the file is there and can be read by you",
        Go::Parse { .. } => "run `make manifests` in the Go project, and try again",
    }
}

fn advice(source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full; make room and try again".into()
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "the folder cannot be written by you; choose another, or change its permissions".into()
        }
        _ => return None,
    })
}
