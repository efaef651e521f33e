//! The answer of a validation: allowed or not, which fields are at fault, and what the user should be warned of.

use std::fmt;

use kube::core::response::{Status, StatusCause, StatusDetails, StatusSummary};
use serde::Serialize;

use crate::object::Kind;

/// The path of a field, as Kubernetes writes it: `spec.containers[0].env[key].name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// A path that begins here, such as `spec` or `spec.replicas`.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// A field below this one.
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// An element of this list.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Path {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<String> for Path {
    fn from(path: String) -> Self {
        Self::new(path)
    }
}

impl From<&Path> for Path {
    fn from(path: &Path) -> Self {
        path.clone()
    }
}

/// One field that is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The field.
    pub path: Path,
    /// The reason that programs read, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// What a webhook decides about a request. It is allowed until something is found that forbids it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    warnings: Vec<String>,
    causes: Vec<Cause>,
    denial: Option<String>,
}

impl Verdict {
    /// The request is fine.
    pub fn allow() -> Self {
        Self::default()
    }

    /// The request is refused as a whole, for a reason that no single field is at fault for.
    pub fn deny(message: impl Into<String>) -> Self {
        Self { denial: Some(message.into()), ..Self::default() }
    }

    /// Tells the user something, whatever the decision is. Best kept under 120 characters.
    pub fn warn(&mut self, warning: impl Into<String>) -> &mut Self {
        self.warnings.push(warning.into());
        self
    }

    /// A field has a value that it cannot have.
    pub fn invalid(
        &mut self,
        path: impl Into<Path>,
        value: impl Serialize,
        detail: impl fmt::Display,
    ) -> &mut Self {
        self.cause(path, "FieldValueInvalid", format!("Invalid value: {}: {detail}", shown(&value)))
    }

    /// A field must be set.
    pub fn required(&mut self, path: impl Into<Path>, detail: impl fmt::Display) -> &mut Self {
        self.cause(path, "FieldValueRequired", format!("Required value: {detail}"))
    }

    /// A field must not be set, or not be changed.
    pub fn forbidden(&mut self, path: impl Into<Path>, detail: impl fmt::Display) -> &mut Self {
        self.cause(path, "FieldValueForbidden", format!("Forbidden: {detail}"))
    }

    /// A value stands twice where it may stand once.
    pub fn duplicate(&mut self, path: impl Into<Path>, value: impl Serialize) -> &mut Self {
        self.cause(path, "FieldValueDuplicate", format!("Duplicate value: {}", shown(&value)))
    }

    /// A field has none of the values that it can have.
    pub fn unsupported(
        &mut self,
        path: impl Into<Path>,
        value: impl Serialize,
        supported: &[&str],
    ) -> &mut Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(&value), supported.join(", "));
        self.cause(path, "FieldValueNotSupported", message)
    }

    fn cause(&mut self, path: impl Into<Path>, reason: &'static str, message: String) -> &mut Self {
        self.causes.push(Cause { path: path.into(), reason, message });
        self
    }

    /// Whether nothing was found that forbids the request.
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none() && self.causes.is_empty()
    }

    /// The warnings, in the order in which they were given.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The fields at fault, in the order in which they were found.
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Why the request as a whole is refused.
    pub fn denial(&self) -> Option<&str> {
        self.denial.as_deref()
    }

    pub(super) fn into_warnings(self) -> Option<Vec<String>> {
        (!self.warnings.is_empty()).then_some(self.warnings)
    }

    /// The status that the API server hands to the user; `None` if the request is allowed.
    pub(super) fn status(&self, kind: &Kind, name: &str) -> Option<Box<Status>> {
        if let Some(message) = &self.denial {
            return Some(failure(403, "Forbidden", message.clone()));
        }
        if self.causes.is_empty() {
            return None;
        }
        let lines: Vec<String> =
            self.causes.iter().map(|cause| format!("{}: {}", cause.path, cause.message)).collect();
        let lines = if lines.len() == 1 { lines.concat() } else { format!("[{}]", lines.join(", ")) };
        let mut status = failure(422, "Invalid", format!("{kind} {name:?} is invalid: {lines}"));
        let cause = |cause: &Cause| StatusCause {
            reason: cause.reason.to_owned(),
            message: cause.message.clone(),
            field: cause.path.to_string(),
        };
        status.details = Some(StatusDetails {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            uid: String::new(),
            causes: self.causes.iter().map(cause).collect(),
            retry_after_seconds: 0,
        });
        Some(status)
    }
}

/// A failure as the API server understands it.
pub(super) fn failure(code: u16, reason: &str, message: String) -> Box<Status> {
    let status = Status {
        status: Some(StatusSummary::Failure),
        code,
        message,
        metadata: None,
        reason: reason.to_owned(),
        details: None,
    };
    status.boxed()
}

/// A value as Kubernetes shows it in messages.
fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("<{error}>"))
}
