//! ClusterRoles that are made of others. The real server has a controller for this; here it is part of the write.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{LabelSelector, Registry, Resource, catalog::table_of, decode};
use crate::{
    auth::rbac::GROUP,
    merge::{self, FieldSet, UpdateOptions, Versions},
    store::{Draft, Object},
};

/// Aggregated roles may be made of aggregated roles; more levels than this are a circle.
const ROUNDS: usize = 8;

impl Registry {
    /// Brings every aggregated role in step with what it is made of.
    pub(super) fn aggregate_roles(&self) {
        let Ok(resource) = self.resource(GROUP, "v1", "clusterroles") else { return };
        for _ in 0..ROUNDS {
            if !self.aggregate_once(&resource) {
                return;
            }
        }
    }

    fn aggregate_once(&self, resource: &Resource) -> bool {
        let table = table_of(GROUP, "clusterroles");
        let all = self.store().snapshot(&table, None).objects;
        let mut changed = false;
        // Every write of a role comes by here: the many that nobody is made of, and that are made of none, are not read.
        for object in all.iter().filter(|object| may_aggregate(object)) {
            let role = &decode::stored(object);
            if !role["aggregationRule"].is_object() {
                continue;
            }
            let rules = aggregated(role, &all);
            let current = role["rules"].as_array().cloned().unwrap_or_default();
            if rules == current {
                continue;
            }
            let mut new = role.clone();
            new["rules"] = json!(rules);
            let time = self.environment().now_text();
            let options = UpdateOptions {
                manager: "clusterrole-aggregation-controller",
                subresource: "",
                api_version: "rbac.authorization.k8s.io/v1",
                time: &time,
                reset: &FieldSet::default(),
                zero: Some(resource.schema().zero_ref()),
                versions: Versions::default(),
            };
            merge::track_update(resource.schema(), Some(role), &mut new, &options);
            let draft = Draft::encode(&new, resource.fields_of(&new));
            // A role that has moved on is looked at again by whoever moved it.
            changed |= self.store().update(&table, &object.key, object.revision, draft).is_ok();
        }
        changed
    }
}

/// Whether a role may be made of others: its text speaks of it.
fn may_aggregate(role: &Object) -> bool {
    std::str::from_utf8(&role.bytes).is_ok_and(|text| text.contains("\"aggregationRule\""))
}

/// The rules of all roles that one of the selectors matches, each rule once.
fn aggregated(role: &Value, all: &[Arc<Object>]) -> Vec<Value> {
    let selectors = &role["aggregationRule"]["clusterRoleSelectors"];
    let selectors: Vec<LabelSelector> = serde_json::from_value(selectors.clone()).unwrap_or_default();
    let mut rules: Vec<Value> = Vec::new();
    let mut known = BTreeSet::new();
    for selector in &selectors {
        for part in all {
            let label = |key: &str| {
                let found = part.labels.iter().find(|(known, _)| **known == *key);
                found.map(|(_, value)| &**value)
            };
            if role["metadata"]["name"] == *part.key.name || !selector.matches_by(&label) {
                continue;
            }
            for rule in decode::stored(part)["rules"].as_array().into_iter().flatten() {
                if known.insert(rule.to_string()) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
