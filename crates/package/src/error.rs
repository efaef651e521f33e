//! What can go wrong while something is packed, and what to do about it.

use std::{io, path::PathBuf};

/// Why something cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A version that is none.
    #[error("failed to read the version {text:?}")]
    Version {
        /// What was given.
        text: String,
    },
    /// A name that Kubernetes would refuse.
    #[error("failed to use {name:?} as the name of {what}")]
    Name {
        /// What was given.
        name: String,
        /// What was to be named.
        what: &'static str,
    },
    /// The objects lack one that everything else is about.
    #[error("failed to find a {0} among the operator's objects")]
    Missing(&'static str),
    /// A document could not be turned into YAML.
    #[error("failed to write YAML for {path}")]
    Yaml {
        /// The file.
        path: String,
        /// The serializer's error.
        #[source]
        source: Box<serde_saphyr::ser_error::Error>,
    },
    /// A file could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("failed to read {}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A version is in the catalogue with another content.
    #[error("failed to add {bundle}: the catalogue has it already, with another content")]
    Present {
        /// The bundle.
        bundle: String,
    },
    /// What is wrong with a bundle or a catalogue.
    #[error("{} of the checks failed: {}", .0.len(), .0.join("; "))]
    Invalid(Vec<String>),
}

impl Error {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Version { .. } => "write MAJOR.MINOR.PATCH, for instance 0.2.0 or 1.0.0-rc.1".into(),
            Self::Name { .. } => "write lower-case letters, digits and -, at most 50 of them".into(),
            Self::Missing(_) => {
                "the objects are those that the operator's program prints: `manifests`".into()
            }
            Self::Write { .. } => "choose another place with --out DIR".into(),
            Self::Present { .. } => {
                "give the new one another version, or --force to put it in the place of the other".into()
            }
            _ => return None,
        })
    }
}
