//! How one attempt of a write ended, for whoever may try it again.
//!
//! What the store said leaves here as a type. A failure that a plugin, a webhook or a rule made can have the same
//! reason and the same name, and trying again would only make it again.

use crate::error::Error;

/// The outcome of one attempt.
pub(in crate::registry) type Attempt<T> = Result<T, Unwritten>;

/// Why an attempt wrote nothing.
#[derive(Debug)]
pub(in crate::registry) enum Unwritten {
    /// The store holds an object of this name now.
    Taken(Error),
    /// The store does not hold the object any more.
    Gone(Error),
    /// Another write came between reading and committing.
    Moved(Error),
    /// Anything else: another attempt would end in the same way.
    Refused(Error),
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Unwritten> for Error {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            Unwritten::Taken(error)
            | Unwritten::Gone(error)
            | Unwritten::Moved(error)
            | Unwritten::Refused(error) => error,
        }
    }
}
