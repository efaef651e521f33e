//! Why something could not be put into a cluster or taken out of it, and what to do about that.

use std::time::Duration;

use windlass::kube;

use crate::count;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to tell an operator by.
    #[error("failed to find a Deployment or a ServiceAccount among the manifests")]
    Nameless,
    /// Something that is no object.
    #[error("failed to read a manifest without {0}")]
    NotAnObject(&'static str),
    /// A request was refused or could not be made.
    #[error("failed to {verb} {what}")]
    Request {
        /// What was to be done.
        verb: &'static str,
        /// With what.
        what: String,
        /// What the API server said.
        source: Refused,
    },
    /// The user lacks permissions.
    #[error("the user of this kubeconfig may not: {}", .0.join("; "))]
    Forbidden(Vec<String>),
    /// The namespace is on its way out.
    #[error("the namespace {name} is being deleted{why}")]
    Terminating {
        /// The namespace.
        name: String,
        /// What still keeps it.
        why: String,
    },
    /// A name is in use.
    #[error("{what} is somebody else's: {owner}")]
    Taken {
        /// The object.
        what: String,
        /// Who has it.
        owner: String,
    },
    /// Stored objects would break.
    #[error("the new definitions would break {} stored: {}", that_are(*.objects), findings.join("; "))]
    Breaking {
        /// How many objects there are.
        objects: usize,
        /// What would break, and where.
        findings: Vec<String>,
    },
    /// Between two definitions there is no version that both have.
    #[error(
        "objects of {what} are stored in {stored}, which the other definition lacks, and {wanted}, in which that stores \
         them, is not served now"
    )]
    NoCommonVersion {
        /// The definition.
        what: String,
        /// The versions that objects may be stored in.
        stored: String,
        /// The version that they would be stored in.
        wanted: String,
    },
    /// A definition that the API server does not serve.
    #[error("{what} is not served after {} s: {why}", limit.as_secs())]
    NotServed {
        /// The definition.
        what: String,
        /// How long that was waited for.
        limit: Duration,
        /// What its conditions say.
        why: String,
    },
    /// Objects would be lost, and nobody has said that they may be.
    #[error("{} would be lost, and nothing was deleted", count::objects(*.total))]
    NotAgreed {
        /// How many.
        total: usize,
    },
    /// Objects that do not go.
    #[error("{} still there after {} s: {}", objects_are(.objects.len()), limit.as_secs(), .objects.join(", "))]
    Remaining {
        /// Which ones, and what keeps them.
        objects: Vec<String>,
        /// How long that was waited for.
        limit: Duration,
    },
    /// Objects that were made while others were deleted.
    #[error("{what} got {} meanwhile, and is kept", new(*.count))]
    NewObjects {
        /// The definition.
        what: String,
        /// How many.
        count: usize,
    },
    /// Pods that do not come up.
    #[error("{what} is not ready after {} s: {why}", after.as_secs())]
    NotReady {
        /// The Deployment.
        what: String,
        /// How long that was waited for.
        after: Duration,
        /// Why, in the words of its Pods.
        why: String,
    },
    /// There is nothing to go back to.
    #[error("failed to find a former version of {name} in the namespace {namespace}")]
    NothingToUndo {
        /// The operator.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// A revision that is not kept.
    #[error("failed to find revision {revision} of {name}; there are {there}")]
    NoRevision {
        /// The operator.
        name: String,
        /// The revision.
        revision: u64,
        /// Those that there are.
        there: String,
    },
    /// A record that cannot be read or written.
    #[error("failed to {verb} the record of revision {revision}")]
    Record {
        /// What was to be done with it.
        verb: &'static str,
        /// The revision.
        revision: u64,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// YAML that could not be made.
    #[error("failed to write YAML for {what}")]
    Yaml {
        /// The object.
        what: String,
        /// The serializer's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn objects_are(number: usize) -> String {
    format!("{} {}", count::objects(number), if number == 1 { "is" } else { "are" })
}

fn that_are(number: usize) -> String {
    if number == 1 { "the object that is".into() } else { format!("the {number} objects that are") }
}

fn new(number: usize) -> String {
    if number == 1 { "1 new object".into() } else { format!("{number} new objects") }
}

/// What an API server said, without what a client wraps around it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    message: String,
    /// The HTTP status, or 0 if there was none.
    pub code: u16,
}

impl From<kube::Error> for Refused {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self { code: status.code, message: status.message },
            error => {
                let mut message = error.to_string();
                let mut cause = std::error::Error::source(&error);
                while let Some(error) = cause {
                    let text = error.to_string();
                    if !message.contains(&text) {
                        message = format!("{message}: {text}");
                    }
                    cause = error.source();
                }
                Self { code: 0, message }
            }
        }
    }
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Forbidden(_) => "ask whoever administers the cluster to grant these; nothing was changed".into(),
            Self::Terminating { .. } => "wait until it is gone, then run this again; nothing was changed".into(),
            Self::Taken { .. } => {
                "choose another name or namespace, or take it over with --force-conflicts; nothing was changed".into()
            }
            Self::Breaking { .. } => {
                "keep what was there beside what is new, or go on with --allow-breaking; nothing was changed".into()
            }
            Self::NoCommonVersion { .. } => "deploy a version that has both first; nothing was changed".into(),
            Self::NotAgreed { total } => {
                format!("to lose them, say how many: --delete-objects={total}")
            }
            Self::Remaining { .. } => {
                "their finalizers wait for an operator: is it running? Run this again once they are gone".into()
            }
            Self::NewObjects { .. } => "run this again to see them".into(),
            Self::NotReady { .. } => {
                "mend it and run this again, or go back: windlass deploy --undo; --wait=TIME waits longer".into()
            }
            Self::NothingToUndo { .. } => "windlass keeps what `windlass deploy` has deployed".into(),
            Self::Request { source, .. } if source.code == 0 => {
                "is the cluster up, and does the kubeconfig name it?".into()
            }
            Self::Request { source, .. } if source.code == 403 => {
                "what was done so far stays, and a second run with the permission finishes it".into()
            }
            _ => return None,
        })
    }
}
