//! What can go wrong between here and a registry, and what to do about it.

use http::StatusCode;

use super::CredentialsError;
use crate::{Digest, LayoutError};

/// Why a registry did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers, or not in a language that is understood.
    #[error("failed to reach the registry {host}: {why}")]
    Unreachable {
        /// The registry.
        host: String,
        /// What the system said.
        why: String,
    },
    /// Its certificate is not trusted.
    #[error("failed to trust the registry {host}: {why}")]
    Untrusted {
        /// The registry.
        host: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// It wants to know who asks, or knows and says no.
    #[error("the registry {host} denies access to {repository}: {why}")]
    Denied {
        /// The registry.
        host: String,
        /// What was asked for.
        repository: String,
        /// What it said.
        why: String,
        /// Whether it was told a name and a password.
        logged_in: bool,
    },
    /// It was asked too much, or is too busy, and stayed so.
    #[error("the registry {host} is busy ({status}), also after {attempts} attempts{}", seconds(*.after))]
    Busy {
        /// The registry.
        host: String,
        /// What it answered last.
        status: StatusCode,
        /// How often it was asked.
        attempts: u32,
        /// When it wants to be asked again.
        after: Option<u64>,
    },
    /// Something else has the tag.
    #[error("{image} is there already, with other content ({found})")]
    TagExists {
        /// The name and tag.
        image: String,
        /// What has it.
        found: Digest,
    },
    /// It has no such thing.
    #[error("the registry {host} has no {what}")]
    NotFound {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// It refuses, with its own reason.
    #[error("the registry {host} refuses {what}: {why}")]
    Refused {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Its answer.
        status: StatusCode,
        /// What it said.
        why: String,
    },
    /// What it gave or took is not what it should be.
    #[error("the registry {host} has {found} where {expected} should be")]
    Mismatch {
        /// The registry.
        host: String,
        /// What was asked for.
        expected: Digest,
        /// What it is.
        found: Digest,
    },
    /// It does not follow the specification.
    #[error("the registry {host} answers {what} in a way that is not understood: {why}")]
    Protocol {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// A file of trusted authorities cannot be read.
    #[error("failed to read certificate authorities from {what}: {why}")]
    Authorities {
        /// The file, or the system's.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The environment names a proxy that cannot be used.
    #[error("failed to use the proxy of {variable}: {why}")]
    Proxy {
        /// The variable.
        variable: String,
        /// What is wrong with it.
        why: String,
    },
    /// An image is pushed under a tag.
    #[error("{0} names a digest, which nobody can choose")]
    ByDigest(String),
    /// Who we are cannot be told.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// What is to be sent cannot be read.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

fn seconds(after: Option<u64>) -> String {
    after.map_or_else(String::new, |after| format!("; it asks to wait {after} s"))
}

impl Error {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreachable { .. } => {
                "is it up, and the name right? A private registry without TLS needs --insecure".into()
            }
            Self::Untrusted { .. } => {
                "name the authority that signed its certificate with --ca-file FILE, or trust anybody with --insecure"
                    .into()
            }
            Self::Denied { host, logged_in: false, .. } => {
                format!("log in with `docker login {host}` or `podman login {host}`, or give --username and --password-stdin")
            }
            Self::Denied { .. } => "this login may not do that; is the repository's name right?".into(),
            Self::Busy { .. } => "run the same command later: what is there already is not sent again".into(),
            Self::TagExists { .. } => "choose another tag, or leave out --no-clobber to replace it".into(),
            Self::Refused { status: StatusCode::PAYLOAD_TOO_LARGE, .. } => {
                "something in between limits requests; send in parts with --chunk-size 16".into()
            }
            Self::Refused { status: StatusCode::METHOD_NOT_ALLOWED, .. } => {
                "it may be read-only, as mirrors are".into()
            }
            Self::Proxy { variable, .. } => {
                format!("write http://HOST:PORT into {variable}, or unset it; NO_PROXY=HOST leaves one registry out")
            }
            Self::ByDigest(_) => "leave out what begins with @".into(),
            Self::Mismatch { .. } => "run the same command again; if it stays so, the registry has lost content".into(),
            Self::Credentials(error) => error.hint(),
            _ => return None,
        })
    }
}
