//! What can go wrong when a reconciler reads, applies or writes; and the trait that its own errors implement.

use std::{error::Error as StdError, fmt};

use crate::object::{Kind, ObjectKey};

mod any;
mod no_answer;

pub use any::AnyError;
pub(crate) use no_answer::NoAnswer;

/// A failed read or write of a [`Context`](crate::Context).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused a request, or could not be reached.
    #[error("failed to {operation} {kind} {key}")]
    Request {
        /// The verb: `apply`, `create`, `delete`, …
        operation: &'static str,
        /// The kind of the object.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// The client's error.
        #[source]
        source: Box<kube::Error>,
    },
    /// A request that was made with a client of kube's failed: what `?` makes of a [`kube::Error`].
    #[error("failed to ask the API server")]
    Client(#[source] Box<kube::Error>),
    /// An object of the wanted name exists and belongs to someone else. It was not touched.
    #[error(
        "failed to apply {kind} {key}: it exists and is not controlled by {owner}; \
         rename or delete it, or choose another name"
    )]
    NameConflict {
        /// The kind of the object.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// Who wanted it.
        owner: String,
    },
    /// The controller reads a kind that it does not watch.
    #[error(
        "failed to read {kind}: controller {controller} does not watch it; \
         add .owns::<{}>(), .watches(..) or .reads::<{}>() to the controller", kind.kind, kind.kind
    )]
    NotWatched {
        /// The kind.
        kind: Box<Kind>,
        /// The controller.
        controller: String,
    },
    /// The controller applies a kind that it has not declared with `owns`.
    #[error(
        "failed to apply {kind}: controller {controller} does not own it; \
         add .owns::<{}>() to the controller", kind.kind
    )]
    NotOwned {
        /// The kind.
        kind: Box<Kind>,
        /// The controller.
        controller: String,
    },
    /// The child is outside of what the controller watches by `owns`: nobody would notice if it were changed or
    /// deleted.
    #[error(
        "failed to apply {kind} {key}: controller {controller} would not notice its deletion, for it owns only what \
         matches {scope}; change the child so that it matches, or own more"
    )]
    OutOfScope {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// The controller.
        controller: String,
        /// What the controller owns, in words.
        scope: String,
    },
    /// A watch that was added while the controller runs cannot be started. It was removed again.
    #[error("failed to watch {kind}: {reason}")]
    WatchFailed {
        /// The kind.
        kind: Box<Kind>,
        /// What the API server said, or what happened instead of an answer.
        reason: String,
    },
    /// A label selector that Kubernetes would not accept.
    #[error("failed to read the label selector {selector:?} for {kind}: {reason}")]
    InvalidSelector {
        /// The kind.
        kind: Box<Kind>,
        /// The selector.
        selector: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The API server does not serve a kind that the controller declared as optional.
    #[error(
        "failed to apply {kind} {key}: the API server does not serve this kind; \
         ask ctx.is_served first"
    )]
    NotServed {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
    },
    /// A status was written of a kind that has none: its definition does not turn the subresource on.
    #[error(
        "failed to update the status of {kind} {key}: the kind has no status subresource; add `subresources: \
         {{status: {{}}}}` to its CustomResourceDefinition, in Rust `#[kube(status = \"..\")]`"
    )]
    NoStatus {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
    },
    /// A child that cannot be owned or named: no name, or a namespace that its owner cannot own into.
    #[error("failed to apply {kind} {key}: {reason}")]
    InvalidChild {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A write that belongs to the reconciled object was called without one, as in `deleted`.
    #[error("failed to {operation}: object {key} is gone")]
    NoObject {
        /// The operation.
        operation: &'static str,
        /// The key of the run.
        key: ObjectKey,
    },
    /// Children that nothing would delete were applied for an object that is being deleted.
    #[error("failed to apply detached children: object {key} is being deleted; end the run before")]
    Deleting {
        /// The key of the run.
        key: ObjectKey,
    },
    /// An index that nobody declared.
    #[error("failed to read index {index:?} of {kind}: add .index::<{}>({index:?}, ..) to a controller", kind.kind)]
    NoIndex {
        /// The kind.
        kind: Box<Kind>,
        /// The index.
        index: String,
    },
    /// Two indexes of a kind have one name.
    #[error(
        "failed to add index {index:?} of {kind}: there is another one of that name; choose another name, or have \
         both declarations name the same function"
    )]
    IndexExists {
        /// The kind.
        kind: Box<Kind>,
        /// The index.
        index: String,
    },
    /// An object that cannot be written as JSON, or whose JSON has the wrong shape.
    #[error("failed to encode {kind} {key}")]
    Encode {
        /// The kind of the object.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
}

/// Result of a [`Context`](crate::Context) call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a reconciler.
///
/// ```
/// use windlass::ReconcileError;
///
/// #[derive(Debug, thiserror::Error)]
/// enum Error {
///     #[error("failed to apply the children")]
///     ApplyChildren(#[source] windlass::Error),
///     #[error("spec.schedule {0:?} is not a cron expression")]
///     BadSchedule(String),
/// }
///
/// impl ReconcileError for Error {
///     fn category(&self) -> &'static str {
///         match self {
///             Self::ApplyChildren(source) => source.category(),
///             Self::BadSchedule(_) => "BadSchedule",
///         }
///     }
///
///     fn retryable(&self) -> bool {
///         !matches!(self, Self::BadSchedule(_))
///     }
/// }
/// ```
///
/// A reconciler that needs no categories of its own takes [`AnyError`], into which `?` turns everything.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the error of a reconciler",
    label = "this must implement `ReconcileError`",
    note = "write `impl windlass::ReconcileError for {Self} {{}}` if it is your own type and a `std::error::Error`",
    note = "or use `windlass::AnyError`, into which `?` turns every error, boxed ones too"
)]
pub trait ReconcileError: AsError + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// A short, constant name in PascalCase: the reason of the Warning event, and a log field.
    fn category(&self) -> &'static str {
        FAILED
    }

    /// Whether trying again may help. A terminal error (`false`) waits for the next change of the object.
    fn retryable(&self) -> bool {
        true
    }
}

/// What can be seen as an error: every [`std::error::Error`], and [`AnyError`].
///
/// Implemented for every type that fits; there is nothing to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error",
    note = "derive `thiserror::Error` for it, or use `windlass::AnyError`"
)]
pub trait AsError {
    /// The error itself.
    fn as_error(&self) -> &(dyn StdError + 'static);
}

impl<E: StdError + 'static> AsError for E {
    fn as_error(&self) -> &(dyn StdError + 'static) {
        self
    }
}

/// The category of an error that has none of its own.
const FAILED: &str = "ReconcileFailed";

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Request { source, .. } | Self::Client(source) => category_of(source),
            Self::NameConflict { .. } => "NameConflict",
            Self::NotWatched { .. }
            | Self::NotOwned { .. }
            | Self::OutOfScope { .. }
            | Self::InvalidSelector { .. }
            | Self::NoIndex { .. }
            | Self::NoStatus { .. }
            | Self::IndexExists { .. } => "Misconfigured",
            Self::WatchFailed { .. } => "WatchFailed",
            Self::NotServed { .. } => "KindNotServed",
            Self::InvalidChild { .. } => "InvalidChild",
            Self::NoObject { .. } | Self::Deleting { .. } => "ObjectGone",
            Self::Encode { .. } => "EncodeFailed",
        }
    }

    fn retryable(&self) -> bool {
        match self {
            // The name may become free without any event that the controller watches.
            Self::Request { .. } | Self::Client(_) | Self::NameConflict { .. } => true,
            // Permissions come, and so do the fields that a scope may select by, without any event.
            Self::WatchFailed { .. } | Self::OutOfScope { .. } => true,
            Self::NotWatched { .. }
            | Self::NotOwned { .. }
            | Self::InvalidSelector { .. }
            | Self::IndexExists { .. }
            | Self::NoIndex { .. }
            | Self::NoStatus { .. }
            // Every object is looked at again when the kind appears.
            | Self::NotServed { .. }
            | Self::InvalidChild { .. }
            | Self::NoObject { .. }
            | Self::Deleting { .. }
            | Self::Encode { .. } => false,
        }
    }
}

/// A failure that a person can do something about, in words for a status or an event.
///
/// ```
/// use windlass::{Error, conditions};
///
/// fn degraded(error: &Error) -> Option<windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
///     let problem = error.problem()?;
///     Some(conditions::is_true(conditions::DEGRADED, problem.reason, problem.message))
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// A constant in PascalCase.
    pub reason: &'static str,
    /// What is wrong, with the API server's own words where it refused something.
    pub message: String,
}

impl Error {
    /// What to tell a person, if one can do something about it: a name that is taken, a child that is invalid,
    /// a permission or a kind that is missing.
    ///
    /// `None` for what passes by itself; to report each of these would make a status flicker.
    pub fn problem(&self) -> Option<Problem> {
        let for_a_person = match self {
            Self::NameConflict { .. } | Self::InvalidChild { .. } | Self::NotServed { .. } => true,
            Self::Request { .. } | Self::Client(_) => {
                self.status().is_some_and(|s| s.is_invalid() || s.is_forbidden())
            }
            _ => false,
        };
        for_a_person.then(|| Problem {
            reason: self.category(),
            message: match self.status() {
                Some(status) => self.advised(format!("{self}: {}", status.message)),
                None => self.to_string(),
            },
        })
    }

    /// Whether the API server answered 404.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_not_found)
    }

    /// Whether the API server answered 409 because of a conflict.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_conflict)
    }

    /// Whether the API server answered 409 because the object exists.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_already_exists)
    }

    /// Whether the API server did not answer in time.
    pub fn is_timeout(&self) -> bool {
        self.source_of_request().is_some_and(NoAnswer::is_cause_of)
    }

    /// The `Status` that the API server answered with, if it answered.
    pub fn status(&self) -> Option<&kube::core::Status> {
        match self.source_of_request() {
            Some(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }

    fn source_of_request(&self) -> Option<&kube::Error> {
        match self {
            Self::Request { source, .. } | Self::Client(source) => Some(source),
            _ => None,
        }
    }

    /// What an author can do about it.
    fn hint(&self) -> Option<String> {
        // Quotas and admission forbid as well, and no permission helps against them.
        let denied =
            |status: &kube::core::Status| status.is_forbidden() && status.message.contains(" cannot ");
        self.status().is_some_and(denied).then(|| {
            let rule = match self {
                Self::Request { kind, .. } => format!("{:?}, [{:?}], ..", kind.group, kind.plural),
                _ => "..".to_owned(),
            };
            format!(
                "is it declared? .permits([rbac::rule({rule})]) adds a permission to the controller, \
                 and the `rbac` command prints what to apply"
            )
        })
    }

    fn advised(&self, mut text: String) -> String {
        if let Some(hint) = self.hint() {
            text.push_str("; ");
            text.push_str(&hint);
        }
        text
    }
}

fn category_of(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => "Forbidden",
        kube::Error::Api(status) if status.is_conflict() => "Conflict",
        kube::Error::Api(status) if status.is_not_found() => "NotFound",
        kube::Error::Api(status) if status.is_invalid() => "Invalid",
        kube::Error::Api(_) => "ApiError",
        error if NoAnswer::is_cause_of(error) => "Timeout",
        _ => "RequestFailed",
    }
}

/// An error and its sources as one line: `a: b: c`.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = own_text(error);
    let mut source = source_of(error);
    while let Some(cause) = source {
        let text = own_text(cause);
        // Some libraries repeat their source in their own text.
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        source = source_of(cause);
    }
    match own_error(error) {
        Some(own) => own.advised(line),
        None => line,
    }
}

/// The first error of ours in a chain.
fn own_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let own = error.downcast_ref().or_else(|| error.downcast_ref::<Box<Error>>().map(|boxed| &**boxed));
        if own.is_some() {
            return own;
        }
        cause = error.source();
    }
    None
}

/// The cause of an error. A server's answer needs none: its `Status` has been told already.
fn source_of<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match as_kube(error) {
        Some(kube::Error::Api(_)) => None,
        _ => error.source(),
    }
}

/// The client's error, also where it is kept in a box.
fn as_kube<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a kube::Error> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<kube::Error>>().map(|boxed| &**boxed))
}

/// What an error says itself. kube prints a `Status` in full, which a reader does not need.
fn own_text(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = as_kube(error) {
        return format!("{} (HTTP {})", status.message, status.code);
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_chain_says_everything_once() {
        let denial = r#"pods is forbidden: User "u" cannot get resource "pods""#;
        let status = Status::failure(denial, "Forbidden").with_code(403);
        let error = Error::Request {
            operation: "get",
            kind: Box::new(Kind::of::<k8s_openapi::api::core::v1::Pod>()),
            key: ObjectKey::namespaced("ns", "a"),
            source: Box::new(kube::Error::Api(Box::new(status))),
        };
        let text = chain(&error);
        assert!(text.starts_with(&format!("failed to get Pod ns/a: {denial} (HTTP 403); ")), "{text}");
        assert!(text.contains(r#".permits([rbac::rule("", ["pods"], ..)])"#), "{text}");
        let around = AnyError::from(error).context("failed to look");
        let text = chain(around.as_error());
        assert_eq!((text.matches("HTTP 403").count(), text.matches(".permits").count()), (1, 1), "{text}");
    }

    #[test]
    fn an_error_of_the_client_has_the_category_of_its_answer() {
        let api = |code: u16, reason: &str| {
            Error::from(kube::Error::Api(Box::new(Status::failure("no", reason).with_code(code))))
        };
        assert_eq!(api(409, "Conflict").category(), "Conflict");
        assert!(api(404, "NotFound").is_not_found() && api(409, "Conflict").is_conflict());
        assert!(api(503, "ServiceUnavailable").retryable());
        assert_eq!(Error::from(kube::Error::TlsRequired).category(), "RequestFailed");
    }
}
