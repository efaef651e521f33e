//! Query parameters.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::{Map, json};

use crate::{
    error::{Cause, Error, Named, Result},
    registry::{FieldValidation, ListOptions, Match, Resource, Selector, WriteOptions},
};

/// The parameters of a URL; the first of several wins, as in the real server.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The one name that the field selector lets through; empty if it may let through others.
    pub(super) fn selected_name(&self) -> &str {
        let mut names = self.get("fieldSelector").split(',').filter_map(|term| {
            let value = term.strip_prefix("metadata.name=")?;
            Some(value.strip_prefix('=').unwrap_or(value))
        });
        let could_be_a_path = |name: &&str| !matches!(*name, "." | "..") && !name.contains(['/', '%', '\\']);
        names.find(could_be_a_path).unwrap_or_default()
    }

    /// Every value of a parameter that may be given more than once.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// A yes or no; a parameter without a value means yes.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name), "false" | "0" | "False" | "FALSE" | "F" | "f")
    }

    /// A whole number, in the range that Kubernetes' own has.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>> {
        let text = self.get(name);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Error::bad_request(format!("strconv.ParseInt: parsing \"{text}\": {why}"))
        })
    }

    pub(super) fn dry_run(&self, kind: &str) -> Result<bool> {
        match self.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let mut cause = Cause::not_supported("dryRun", other, &["All"]);
                cause.message = format!("Unsupported value: [{}]: supported values: \"All\"", json!(other));
                Err(Error::invalid(Named { group: "meta.k8s.io", resource: kind }, "", vec![cause]))
            }
        }
    }

    /// Whether a list says of which revision it is to be in a way that can be meant. Comes before its selectors are read.
    pub(super) fn check_match(&self) -> Result<()> {
        let version_match = match self.get("resourceVersionMatch") {
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        };
        ListOptions {
            continue_token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
            version_match,
            ..ListOptions::default()
        }
        .check_match()
    }

    /// The options of a list or a watch.
    pub(super) fn list(&self, resource: &Resource, namespace: Option<&str>) -> Result<ListOptions> {
        let version_match = match self.get("resourceVersionMatch") {
            "" => None,
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            other => {
                let allowed = ["Exact", "NotOlderThan", ""];
                return Err(invalid_option("ListOptions", "resourceVersionMatch", other, &allowed));
            }
        };
        // A list takes the time that it takes, but what is said about it must be a number.
        self.number("timeoutSeconds")?;
        Ok(ListOptions {
            namespace: namespace.map(str::to_owned),
            selector: Selector::parse(resource, self.get("labelSelector"), self.get("fieldSelector"))?,
            // What is negative limits nothing, like zero.
            limit: usize::try_from(self.number("limit")?.unwrap_or(0).max(0)).unwrap_or(usize::MAX),
            continue_token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
            version_match,
        })
    }

    /// The options of a write. A writer that does not name itself is named by its user agent.
    pub(super) fn write(&self, user_agent: &str, kind: &str) -> Result<WriteOptions> {
        let validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                return Err(invalid_option(kind, "fieldValidation", other, &allowed));
            }
        };
        if let Some((position, odd)) =
            self.get("fieldManager").char_indices().find(|(_, one)| one.is_control())
        {
            let why = format!("invalid character U+{:04X} (at position {position})", u32::from(odd));
            let cause = Cause::invalid("fieldManager", &json!(self.get("fieldManager")), why);
            return Err(Error::invalid(Named { group: "meta.k8s.io", resource: kind }, "", vec![cause]));
        }
        let manager = match self.get("fieldManager") {
            "" => user_agent.split('/').next().unwrap_or_default().to_owned(),
            manager => manager.to_owned(),
        };
        let dry_run = self.dry_run(kind)?;
        let mut stated = Map::new();
        if dry_run {
            stated.insert("dryRun".into(), json!(["All"]));
        }
        for name in ["fieldManager", "fieldValidation"] {
            if !self.get(name).is_empty() {
                stated.insert(name.into(), json!(self.get(name)));
            }
        }
        if self.has("force") {
            stated.insert("force".into(), json!(self.flag("force")));
        }
        Ok(WriteOptions { manager, dry_run, validation, stated, ..WriteOptions::default() })
    }
}

fn invalid_option(kind: &str, field: &str, value: &str, allowed: &[&str]) -> Error {
    let what = Named { group: "meta.k8s.io", resource: kind };
    Error::invalid(what, "", vec![Cause::not_supported(field, value, allowed)])
}
