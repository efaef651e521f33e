//! What a request can fail with, in the words of the Kubernetes API and without any HTTP.
//!
//! Every layer below `http` returns [`Error`]; `http::status` turns it into a `Status` body in one place.
//! The texts are those of the real server, because clients match on them.

use serde_json::{Value, json};

use crate::schema::FieldError;

/// The outcome of an operation of the API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The machine-readable reason of a failure, as in `metav1.StatusReason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[expect(missing_docs, reason = "each variant is the reason of the same name")]
pub enum Reason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
}

impl Reason {
    /// The HTTP status code that the Kubernetes API pairs with this reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired | Self::Gone => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::ServerTimeout => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

/// One reason among several for a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable cause, such as `FieldValueInvalid`.
    pub reason: String,
    /// What a person reads.
    pub message: String,
    /// The field, if the cause is about one.
    pub field: String,
}

/// What the failure is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The kind, or the plural resource name where the real server says that.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The single causes.
    pub causes: Vec<Cause>,
    /// When a retry makes sense.
    pub retry_after_seconds: u32,
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The machine-readable reason; `None` for the few failures that have none.
    pub reason: Option<Reason>,
    /// The HTTP status code that goes with it.
    pub code: u16,
    /// What a person reads.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// A `Status` that somebody else made, and that the client gets as it is.
    pub status: Option<Box<Value>>,
}

/// A resource as messages name it: `deployments.apps` or `pods`.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The API group.
    pub group: &'a str,
    /// The plural resource name, or the kind.
    pub resource: &'a str,
}

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(formatter, ".{}", self.group) }
    }
}

/// Code 500 without a reason, which is what kube-apiserver makes of etcd's "database space exceeded". Not 429: with that,
/// clients would wait and try again by themselves, and nobody would hear of a full disk.
impl From<crate::store::DiskFailed> for Error {
    fn from(why: crate::store::DiskFailed) -> Self {
        Self::bare(why.to_string())
    }
}

impl Error {
    /// A failure with a reason and a message and no details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason: Some(reason), code: reason.code(), message, details: None, status: None }
    }

    /// A failure that somebody else has described, with its code and message.
    pub fn of_status(status: Value, code: u16, message: String) -> Self {
        Self { reason: None, code, message, details: None, status: Some(Box::new(status)) }
    }

    fn about(mut self, what: Named<'_>, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.into(),
            group: what.group.into(),
            kind: what.resource.into(),
            ..Details::default()
        }));
        self
    }

    /// The object is larger than what can be stored, in the words of the real server's store.
    pub fn too_large() -> Self {
        Self::bare("etcdserver: request is too large")
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// The server failed; the message says at what.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut error = Self::new(Reason::InternalError, format!("Internal error occurred: {message}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause { reason: String::new(), message: message.to_string(), field: String::new() }],
            ..Details::default()
        }));
        error
    }

    /// A failure that the real server did not foresee: a code, a message and no reason.
    pub fn bare(message: impl Into<String>) -> Self {
        Self { reason: None, code: 500, message: message.into(), details: None, status: None }
    }

    /// A patch that makes no object of the kind.
    pub fn bad_patch(patch: &str, why: impl std::fmt::Display) -> Self {
        let cause = Cause::invalid("patch", &json!(patch), why);
        Self::invalid(Named { group: "", resource: "" }, "", vec![cause])
    }

    /// There is no such object.
    pub fn not_found(what: Named<'_>, name: &str) -> Self {
        Self::new(Reason::NotFound, format!("{what} \"{name}\" not found")).about(what, name)
    }

    /// There is nothing at this path.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(Reason::NotFound, "the server could not find the requested resource");
        error.details = Some(Box::default());
        error
    }

    /// The name is taken.
    pub fn already_exists(what: Named<'_>, name: &str) -> Self {
        Self::new(Reason::AlreadyExists, format!("{what} \"{name}\" already exists")).about(what, name)
    }

    /// The write met another one.
    pub fn conflict(what: Named<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        Self::new(Reason::Conflict, format!("Operation cannot be fulfilled on {what} \"{name}\": {why}"))
            .about(what, name)
    }

    /// The write was based on an old version.
    pub fn stale(what: Named<'_>, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(what, name, why)
    }

    /// Somebody may not do this.
    pub fn forbidden(what: Named<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        let subject = if name.is_empty() { what.to_string() } else { format!("{what} \"{name}\"") };
        let message = if what.resource.is_empty() {
            format!("forbidden: {why}")
        } else {
            format!("{subject} is forbidden: {why}")
        };
        Self::new(Reason::Forbidden, message).about(what, name)
    }

    /// The verb does not exist on this resource.
    pub fn method_not_allowed(what: Named<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{what}\"");
        Self::new(Reason::MethodNotAllowed, message).about(what, "")
    }

    /// The object breaks rules of its kind. `what` names the kind, not the resource.
    pub fn invalid(what: Named<'_>, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(Cause::to_string).collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut error =
            Self::new(Reason::Invalid, format!("{what} \"{name}\" is invalid: {list}")).about(what, name);
        if let Some(details) = &mut error.details {
            details.causes = causes;
        }
        error
    }

    /// The revision is no longer in the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// The body is of a type that this request does not take.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(Reason::UnsupportedMediaType, message)
    }

    /// The `Status` object that a client gets.
    pub fn to_status(&self) -> Value {
        if let Some(given) = &self.status {
            let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
            for field in ["status", "message", "reason", "details", "code"] {
                if let Some(value) = given.get(field).filter(|value| !value.is_null()) {
                    status[field] = value.clone();
                }
            }
            return status;
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Some(reason) = self.reason {
            status["reason"] = json!(reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "{}: {}", self.field, self.message)
        }
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                out.insert(key.into(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            out.insert("causes".into(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_seconds > 0 {
            out.insert("retryAfterSeconds".into(), json!(self.retry_after_seconds));
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                out.insert(key.into(), json!(value));
            }
        }
        Value::Object(out)
    }
}

/// Shorthand for the causes that strategies report.
impl Cause {
    /// A value that breaks a rule.
    pub fn invalid(field: impl Into<String>, value: &Value, why: impl std::fmt::Display) -> Self {
        Self {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {value}: {why}"),
            field: field.into(),
        }
    }

    /// A value that is too long.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self {
            reason: "FieldValueTooLong".into(),
            message: format!("Too long: may not be more than {limit} bytes"),
            field: field.into(),
        }
    }

    /// A value that is not there.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired".into(), message, field: field.into() }
    }

    /// A value that is none of the allowed ones.
    pub fn not_supported(field: impl Into<String>, value: &str, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("\"{value}\"")).collect();
        Self {
            reason: "FieldValueNotSupported".into(),
            message: format!("Unsupported value: \"{value}\": supported values: {}", allowed.join(", ")),
            field: field.into(),
        }
    }

    /// The same for a value that is no text.
    pub fn unsupported_value(field: impl Into<String>, value: &Value, allowed: &[&str]) -> Self {
        let mut cause = Self::not_supported(field, "", allowed);
        cause.message = cause.message.replacen("\"\"", &value.to_string(), 1);
        cause
    }

    /// A value that may not be there or may not change.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self {
            reason: "FieldValueForbidden".into(),
            message: format!("Forbidden: {why}"),
            field: field.into(),
        }
    }
}

impl From<FieldError> for Cause {
    fn from(error: FieldError) -> Self {
        Self { reason: error.reason.to_string(), message: error.message, field: error.field }
    }
}
