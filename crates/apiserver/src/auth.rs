//! Who asks, and what they may do.

pub(crate) mod escalation;
pub mod oidc;
pub mod rbac;
pub mod token;
pub(crate) mod user_access;
pub(crate) mod verified;

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// An authenticated user. It travels in the extensions of a request, put there by whoever has
/// authenticated it: the listener from a certificate, an in-process client from its maker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// The groups that it belongs to.
    pub groups: Vec<String>,
    /// Its uid, where it has one.
    pub uid: String,
    /// What else is known of it.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user with these groups; `system:authenticated` is added.
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        groups.push("system:authenticated".into());
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// The administrator of a cluster that was just made.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", [MASTERS.to_owned()])
    }

    /// The server itself, where it writes on its own account.
    pub fn api_server() -> Self {
        Self::new("system:apiserver", [MASTERS.to_owned()])
    }

    /// What runs in a Pod with this service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self::new(format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    /// The anonymous user.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".into()];
        Self { name: "system:anonymous".into(), groups, ..Self::default() }
    }

    /// The user as reviews show it.
    pub fn to_json(&self) -> Value {
        let mut info = json!({"username": self.name});
        if !self.uid.is_empty() {
            info["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}
