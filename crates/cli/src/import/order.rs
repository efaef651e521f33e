//! Owners before what they own, definitions and namespaces before everything.

use std::collections::HashMap;

use serde_json::Value;

use windlass_ui::Kind;

use super::{left_out::name, text};

/// An object that comes along.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) object: Value,
}

impl Entry {
    fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    fn owners(&self) -> impl Iterator<Item = &str> {
        let owners = self.object["metadata"]["ownerReferences"].as_array();
        owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
    }

    /// What others need comes first, what limits others last.
    fn rank(&self) -> u8 {
        match (self.kind.group.as_str(), self.kind.plural.as_str()) {
            ("apiextensions.k8s.io", _) => 0,
            ("", "namespaces") => 1,
            ("", "serviceaccounts" | "configmaps" | "secrets") => 2,
            ("scheduling.k8s.io" | "storage.k8s.io" | "node.k8s.io", _) => 2,
            ("rbac.authorization.k8s.io", "clusterroles" | "roles") => 3,
            // Its claim is named in it by uid.
            ("", "persistentvolumes") => 6,
            ("", "resourcequotas" | "limitranges") => 7,
            ("admissionregistration.k8s.io", _) => 8,
            _ => 5,
        }
    }
}

/// The objects in an order in which each can be made. Where owners go in a circle, one of them comes before its owner.
pub(crate) fn ordered(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_cached_key(|entry| {
        let at = |pointer| text(&entry.object, pointer).to_owned();
        (entry.rank(), name(&entry.kind), at("/metadata/namespace"), at("/metadata/name"))
    });
    let places: HashMap<String, usize> =
        entries.iter().enumerate().map(|(place, entry)| (entry.uid().to_owned(), place)).collect();
    let mut state = vec![false; entries.len()];
    let mut order = Vec::with_capacity(entries.len());
    for start in 0..entries.len() {
        // Depth first without recursion: chains of owners may be long.
        let mut stack = vec![(start, false)];
        while let Some((place, done)) = stack.pop() {
            if done {
                order.push(place);
                continue;
            }
            if std::mem::replace(&mut state[place], true) {
                continue;
            }
            stack.push((place, true));
            let owners = entries[place].owners().filter_map(|uid| places.get(uid));
            stack.extend(owners.filter(|owner| !state[**owner]).map(|owner| (*owner, false)));
        }
    }
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| entries[place].take()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(group: &str, plural: &str, uid: &str, owners: &[&str]) -> Entry {
        let kind = super::super::kind(group, plural, plural, true);
        let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
        Entry { kind, object: json!({"metadata": {"uid": uid, "name": uid, "ownerReferences": owners}}) }
    }

    fn uids(entries: Vec<Entry>) -> Vec<String> {
        ordered(entries).iter().map(|entry| entry.uid().to_owned()).collect()
    }

    #[test]
    fn owners_come_before_what_they_own() {
        let entries = vec![
            entry("", "configmaps", "map", &["thing"]),
            entry("apps", "replicasets", "set", &["deployment"]),
            entry("example.com", "things", "thing", &["namespace"]),
            entry("apps", "deployments", "deployment", &[]),
            entry("", "namespaces", "namespace", &[]),
            entry("apiextensions.k8s.io", "customresourcedefinitions", "definition", &[]),
        ];
        assert_eq!(uids(entries), ["definition", "namespace", "thing", "map", "deployment", "set"]);
    }

    #[test]
    fn every_object_comes_once_whatever_owns_what() {
        // All graphs of owners on five objects that follow from a number.
        for seed in 0..4096_u32 {
            let uid = |number: u32| number.to_string();
            let entries: Vec<Entry> = (0..5)
                .map(|number| {
                    let owners: Vec<String> = (0..5)
                        .filter(|owner| {
                            seed.wrapping_mul(2_654_435_761).rotate_left(number * 5 + owner) % 4 == 0
                        })
                        .map(uid)
                        .collect();
                    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
                    entry("", "configmaps", &uid(number), &owners)
                })
                .collect();
            let mut found = uids(entries);
            found.sort();
            assert_eq!(found, ["0", "1", "2", "3", "4"], "{seed}");
        }
    }
}
