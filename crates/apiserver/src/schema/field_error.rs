//! What is wrong with a field, in the words that clients match on.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::json::quoted;

/// Why a field was refused; printed as the `reason` of a cause in a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldReason {
    /// Malformed or out of bounds.
    Invalid,
    /// Of another type than the schema says.
    TypeInvalid,
    /// Missing.
    Required,
    /// Not one of the values that are possible.
    NotSupported,
    /// There twice.
    Duplicate,
    /// Not allowed here or now.
    Forbidden,
    /// A string that is too long.
    TooLong,
    /// A list or map with too many entries.
    TooMany,
    /// The check itself failed.
    Internal,
}

impl FieldReason {
    /// The reason as it stands in a cause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

impl fmt::Display for FieldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, such as `spec.parts[0].name`.
    pub field: String,
    /// What kind of problem it is.
    pub reason: FieldReason,
    /// The problem without the path, such as `Required value`.
    pub message: String,
}

impl FieldError {
    fn new(field: &str, reason: FieldReason, value: Option<&Value>, detail: &str) -> Self {
        let mut message = reason.words().to_owned();
        if let Some(value) = value {
            message.push_str(": ");
            message.push_str(&quoted(value));
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        // The real server prints the path of the whole object so.
        let field = if field.is_empty() { "<nil>" } else { field };
        Self { field: field.to_owned(), reason, message }
    }

    /// A malformed value.
    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new(field, FieldReason::Invalid, Some(value), detail)
    }

    /// A malformed value that has been written out as the real server writes it.
    pub(crate) fn invalid_shown(field: &str, shown: &str, detail: &str) -> Self {
        Self::new(field, FieldReason::Invalid, None, &format!("{shown}: {detail}"))
    }

    /// A malformed value, which is named only when it is short.
    pub(crate) fn invalid_or_omitted(field: &str, value: Option<&Value>, detail: &str) -> Self {
        Self::new(field, FieldReason::Invalid, value, detail)
    }

    /// A value that is there twice, which is named only when it is short.
    pub(crate) fn duplicate_or_omitted(field: &str, value: Option<&Value>) -> Self {
        Self::new(field, FieldReason::Duplicate, value, "")
    }

    /// A value of the wrong type.
    pub fn type_invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new(field, FieldReason::TypeInvalid, Some(value), detail)
    }

    /// A value that is missing.
    pub fn required(field: &str, detail: &str) -> Self {
        Self::new(field, FieldReason::Required, None, detail)
    }

    /// A value which is not one of those that are possible.
    pub fn not_supported(field: &str, value: &Value, supported: &[String]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = if supported.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", supported.join(", "))
        };
        Self::new(field, FieldReason::NotSupported, Some(value), &detail)
    }

    /// A value that must be unique and is not.
    pub fn duplicate(field: &str, value: &Value) -> Self {
        Self::new(field, FieldReason::Duplicate, Some(value), "")
    }

    /// A value that may not be set, or not be changed.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self::new(field, FieldReason::Forbidden, None, detail)
    }

    /// A string that is too long.
    pub fn too_long(field: &str, limit: u64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {limit} {unit}");
        Self::new(field, FieldReason::TooLong, None, &detail)
    }

    /// A list or map that has too many entries.
    pub fn too_many(field: &str, actual: usize, limit: u64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {unit}");
        Self::new(field, FieldReason::TooMany, Some(&actual.into()), &detail)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// All errors in one text: the only one as it is, several in brackets, none twice.
pub fn render(errors: &[FieldError]) -> String {
    let mut seen = BTreeSet::new();
    let texts: Vec<String> =
        errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_read_as_the_server_writes_them() {
        let error = FieldError::not_supported("spec.mode", &json!("x"), &["a".to_owned(), "b".to_owned()]);
        assert_eq!(error.to_string(), r#"spec.mode: Unsupported value: "x": supported values: "a", "b""#);
        assert_eq!(FieldError::required("spec.a", "").to_string(), "spec.a: Required value");
        assert_eq!(
            FieldError::too_many("spec.l", 3, 2).to_string(),
            "spec.l: Too many: 3: must have at most 2 items"
        );
        assert_eq!(FieldError::invalid("", &json!(""), "no").to_string(), "<nil>: Invalid value: \"\": no");
    }

    #[test]
    fn several_errors_are_listed_once_each() {
        let (a, b) = (FieldError::required("a", ""), FieldError::required("b", ""));
        assert_eq!(render(&[a.clone(), b, a.clone()]), "[a: Required value, b: Required value]");
        assert_eq!(render(std::slice::from_ref(&a)), "a: Required value");
    }
}
