//! Problems that need a person.

use kube::ResourceExt;

use super::{is_dns_label, reasons};

/// Something that a person has to put right. Displays as its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// A constant in PascalCase: the reason of the conditions.
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// A spec that asks for something impossible. The schema refuses it, but the object may be older than the rule.
    pub(crate) fn spec(message: impl Into<String>) -> Self {
        Self::new(reasons::INVALID_SPEC, message)
    }

    /// The problem behind a failed write, if a person can do something about it.
    pub(crate) fn of(error: &windlass::Error) -> Option<Self> {
        error.problem().map(|problem| Self::new(problem.reason, problem.message))
    }

    /// Refuses a name that a Service cannot have.
    pub(crate) fn check_service_name<K: ResourceExt>(object: &K) -> Result<(), Self> {
        let name = object.name_any();
        if is_dns_label(&name) {
            return Ok(());
        }
        Err(Self::new(
            reasons::INVALID_NAME,
            format!(
                "the name {name:?} cannot be a Service's name, which has at most 63 lower-case letters, digits and \
                 '-', starts with a letter and ends with a letter or digit; create the object under another name"
            ),
        ))
    }

    /// Refuses a name that a label cannot hold.
    pub(crate) fn check_label_name<K: ResourceExt>(object: &K) -> Result<(), Self> {
        let name = object.name_any();
        if name.len() <= 63 {
            return Ok(());
        }
        let message = format!(
            "the name {name:?} is {} characters long, and the Pods' labels hold 63; create the object under a \
             shorter name",
            name.len()
        );
        Err(Self::new(reasons::INVALID_NAME, message))
    }

    /// Refuses a number of Pods that no schema would let in.
    pub(crate) fn check_range(field: &str, number: i32, least: i32, most: i32) -> Result<(), Self> {
        if (least..=most).contains(&number) {
            return Ok(());
        }
        Err(Self::spec(format!("{field} is {number}; write a number from {least} to {most}")))
    }
}
