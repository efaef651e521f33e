//! The webhooks that are configured, read from the store and kept until their configurations change.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use super::rules::Match;
use crate::{
    schema::cel::{CelError, Expression},
    store::{Store, TableName},
    webhook::ClientConfig,
};

/// The group of everything that configures admission.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";
const TABLES: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// The configured webhooks.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    kept: Mutex<Option<Arc<Plan>>>,
}

/// The webhooks at one moment, in the order in which they are asked.
#[derive(Debug)]
pub(crate) struct Plan {
    revisions: [u64; 2],
    pub(crate) mutating: Vec<Hook>,
    pub(crate) validating: Vec<Hook>,
}

/// One webhook.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hook {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) client_config: ClientConfig,
    #[serde(flatten)]
    pub(crate) matches: Match,
    #[serde(default)]
    failure_policy: Option<String>,
    #[serde(default)]
    pub(crate) side_effects: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) admission_review_versions: Vec<String>,
    #[serde(default)]
    reinvocation_policy: Option<String>,
    #[serde(default)]
    pub(crate) match_conditions: Vec<Condition>,
}

/// A condition on the request, compiled when it is first needed.
#[derive(Debug, Deserialize)]
pub(crate) struct Condition {
    pub(crate) expression: String,
    #[serde(skip)]
    compiled: std::sync::OnceLock<Result<Expression, CelError>>,
}

impl Condition {
    pub(crate) fn compiled(&self) -> Result<&Expression, CelError> {
        self.compiled.get_or_init(|| Expression::compile(&self.expression)).as_ref().map_err(Clone::clone)
    }
}

impl Hook {
    /// Whether a webhook that cannot be asked is taken to agree.
    pub(crate) fn fails_open(&self) -> bool {
        self.failure_policy.as_deref() == Some("Ignore")
    }

    pub(crate) fn is_reinvoked(&self) -> bool {
        self.reinvocation_policy.as_deref() == Some("IfNeeded")
    }

    pub(crate) fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.timeout_seconds.unwrap_or(10).clamp(1, 30))
    }
}

impl Hooks {
    /// What is configured now.
    pub(crate) fn plan(&self, store: &Store) -> Arc<Plan> {
        let tables = TABLES.map(|plural| TableName { group: GROUP.into(), plural: plural.into() });
        let revisions = [store.table_revision(&tables[0]), store.table_revision(&tables[1])];
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(plan) if plan.revisions == revisions => Arc::clone(plan),
            _ => {
                let [mutating, validating] = tables.map(|table| read(store, &table));
                let plan = Arc::new(Plan { revisions, mutating, validating });
                *kept = Some(Arc::clone(&plan));
                plan
            }
        }
    }
}

fn read(store: &Store, table: &TableName) -> Vec<Hook> {
    let objects = store.snapshot(table, None).objects;
    objects
        .iter()
        .filter_map(|object| serde_json::from_slice::<Value>(&object.bytes).ok())
        .flat_map(|mut configuration| match configuration["webhooks"].take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        })
        .filter_map(|hook| match serde_json::from_value(hook) {
            Ok(hook) => Some(hook),
            Err(error) => {
                // Validation lets no such webhook in.
                tracing::warn!(%error, "failed to read a configured webhook");
                None
            }
        })
        .collect()
}
