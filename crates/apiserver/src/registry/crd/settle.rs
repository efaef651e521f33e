//! Bringing definitions to rest: their conditions, the catalogue, and the end of deleted ones.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, PoisonError, TryLockError, atomic::Ordering},
};

use serde_json::{Value, json};

use super::{
    super::{
        Catalog, Registry, Resource, catalog, decode,
        metadata::{self, is_deleting, meta},
        resource::text,
    },
    CLEANUP, names,
};
use crate::{
    merge::{self, FieldSet, UpdateOptions, Versions},
    store::{Draft, Object, TableName},
};

/// What the registry remembers of each definition: its uid, its generation, and the revision at which
/// that generation was first seen.
pub(in super::super) type Known = BTreeMap<String, (String, i64, u64)>;

/// Where the definitions are.
static DEFINITIONS: LazyLock<TableName> =
    LazyLock::new(|| catalog::table_of("apiextensions.k8s.io", "customresourcedefinitions"));

impl Registry {
    /// Looks at all definitions and does what they ask for, until nothing is left to do.
    ///
    /// The work itself writes definitions and removes objects, which calls this again; whoever finds the
    /// lock taken leaves a note, and the holder goes round once more.
    pub(in super::super) fn settle_definitions(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
        while self.unsettled.load(Ordering::SeqCst) {
            let _settling = match self.settling.try_lock() {
                Ok(settling) => settling,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            while self.unsettled.swap(false, Ordering::SeqCst) {
                self.settle_names();
                self.current_catalog();
                self.drain_deleted();
            }
        }
    }

    /// What the definitions in the store ask to be served.
    ///
    /// Watchers hear of a change as soon as it is committed, and may act on it before its writer has come to settle
    /// it. Who asks for the catalogue first therefore makes it: an object that is sent after the change was seen is
    /// never read by the rules from before it.
    pub(in super::super) fn current_catalog(&self) -> Arc<Catalog> {
        let made = Arc::clone(&self.catalog.borrow());
        if made.definitions == self.store().table_revision(&DEFINITIONS) {
            return made;
        }
        let mut known = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let made = Arc::clone(&self.catalog.borrow());
        // Read before the definitions are: what comes in between is found again by the next who asks.
        let revision = self.store().table_revision(&DEFINITIONS);
        if made.definitions == revision {
            return made;
        }
        let catalog = Arc::new(Catalog::with_custom(self.custom_resources(&mut known), revision));
        self.catalog.send_replace(Arc::clone(&catalog));
        catalog
    }

    fn all_definitions(&self) -> Vec<(Arc<Object>, Value)> {
        let objects = self.store().snapshot(&DEFINITIONS, None).objects;
        objects.into_iter().map(|object| (Arc::clone(&object), decode::stored(&object))).collect()
    }

    fn custom_resources(&self, known: &mut Known) -> Vec<Resource> {
        let definitions = self.all_definitions();
        let mut custom = Vec::new();
        for (object, definition) in &definitions {
            let name = text(definition, "/metadata/name").to_owned();
            let uid = text(definition, "/metadata/uid").to_owned();
            let generation = meta(definition, "generation").as_i64().unwrap_or(0);
            let seen = known.entry(name).or_default();
            if seen.0 != uid || seen.1 != generation {
                *seen = (uid, generation, object.revision);
            }
            if condition(definition, "Established") == "True" {
                custom.extend(super::resources(definition, seen.2));
            }
        }
        custom
    }

    /// Accepts the names of new definitions, oldest first, and establishes them.
    fn settle_names(&self) {
        let mut definitions = self.all_definitions();
        definitions.sort_by_key(|(_, definition)| text(definition, "/metadata/creationTimestamp").to_owned());
        let group = |definition: &Value| text(definition, "/spec/group").to_owned();
        for index in 0..definitions.len() {
            let (object, definition) = &definitions[index];
            if is_deleting(definition) {
                continue;
            }
            let others: Vec<&Value> = definitions
                .iter()
                .enumerate()
                .filter(|(other, (_, value))| *other != index && group(value) == group(definition))
                .map(|(_, (_, value))| value)
                .collect();
            let mut new = definition.clone();
            match names::conflict(definition, &others) {
                None => {
                    new["status"]["acceptedNames"] = new["spec"]["names"].clone();
                    self.set_condition(
                        &mut new,
                        "NamesAccepted",
                        "True",
                        "NoConflicts",
                        "no conflicts found",
                    );
                    let message = "the initial names have been accepted";
                    self.set_condition(&mut new, "Established", "True", "InitialNamesAccepted", message);
                }
                Some((reason, message)) => {
                    self.set_condition(&mut new, "NamesAccepted", "False", reason, &message);
                    if condition(definition, "Established").is_empty() {
                        let message = "not all names are accepted";
                        self.set_condition(&mut new, "Established", "False", "NotAccepted", message);
                    }
                }
            }
            if new != *definition {
                let committed = self.commit_definition(object, definition, new);
                definitions[index] = committed.unwrap_or_else(|| definitions[index].clone());
            }
        }
    }

    /// Writes a status that the server itself decided. A definition that has moved on is seen again,
    /// because whoever moved it calls for another round.
    fn commit_definition(&self, read: &Object, old: &Value, mut new: Value) -> Option<(Arc<Object>, Value)> {
        let resource = self.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").ok()?;
        let time = self.environment().now_text();
        let options = UpdateOptions {
            manager: "kube-apiserver",
            subresource: "status",
            api_version: "apiextensions.k8s.io/v1",
            time: &time,
            reset: &FieldSet::of_paths(["spec", "metadata"]),
            zero: Some(resource.schema().zero_ref()),
            versions: Versions::default(),
        };
        merge::track_update(resource.schema(), Some(old), &mut new, &options);
        let draft = Draft::encode(&new, resource.fields_of(&new));
        let committed = self.store().update(&resource.table, &read.key, read.revision, draft).ok()?;
        let value = decode::stored(&committed);
        Some((committed, value))
    }

    /// Removes the objects of deleted definitions, and the definitions once nothing is left.
    fn drain_deleted(&self) {
        for (object, definition) in self.all_definitions() {
            let waits =
                meta(&definition, "finalizers").as_array().is_some_and(|list| list.contains(&json!(CLEANUP)));
            if !is_deleting(&definition) || !waits {
                continue;
            }
            for resource in super::resources(&definition, 0).iter().take(1) {
                if let Err(error) = self.drain(resource) {
                    tracing::warn!(%error, resource = %resource.named(), "failed to remove the objects of a definition");
                }
            }
            let (group, plural) = (text(&definition, "/spec/group"), text(&definition, "/spec/names/plural"));
            if self.store().count(&catalog::table_of(group, plural)) > 0 {
                continue;
            }
            let mut last = definition.clone();
            if let Some(list) =
                metadata::metadata(&mut last).get_mut("finalizers").and_then(Value::as_array_mut)
            {
                list.retain(|one| one != CLEANUP);
            }
            let Ok(resource) = self.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
            else {
                continue;
            };
            // A definition that was changed in between is tried again by the round that change asked for.
            let _ = self.commit_change(&resource, &object, &last);
        }
    }

    fn set_condition(&self, definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
        let now = self.environment().now_text();
        let conditions = &mut definition["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let list = conditions.as_array_mut().expect("conditions must be a list by now");
        let condition = json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason,
            "message": message});
        match list.iter_mut().find(|one| text(one, "/type") == kind) {
            Some(one) if text(one, "/status") == status && text(one, "/reason") == reason => {}
            Some(one) => *one = condition,
            None => list.push(condition),
        }
    }
}

/// The status of a condition, or empty.
fn condition<'a>(definition: &'a Value, kind: &str) -> &'a str {
    definition
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().find(|one| text(one, "/type") == kind))
        .map_or("", |one| text(one, "/status"))
}

/// What a definition looks like when its deletion begins: it waits for its objects.
pub(in super::super) fn begin_deletion(definition: &mut Value, now: &str) {
    let metadata = metadata::metadata(definition);
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.contains(&json!(CLEANUP))
    {
        list.push(json!(CLEANUP));
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    let terminating = json!({"type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending", "message": message});
    if condition(definition, "Terminating").is_empty() {
        match definition["status"]["conditions"].as_array_mut() {
            Some(list) => list.push(terminating),
            None => definition["status"]["conditions"] = json!([terminating]),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        environment::{Environment, TokioClock},
        store::{Fields, Key, Store},
    };

    /// A definition as it is in the store once it was settled.
    fn established(conversion: Value) -> Draft {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.com", "uid": "1", "generation": 1},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "conversion": conversion,
                "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        Draft::encode(&definition, Fields::default())
    }

    #[test]
    fn a_change_that_watchers_can_see_is_served_before_its_writer_settles_it() {
        let store = Arc::new(Store::default());
        let registry = Registry::new(
            Arc::clone(&store),
            Environment::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH), 1),
        )
        .unwrap();
        let boats = || registry.resource("example.com", "v1", "boats");
        assert!(boats().is_err());
        let key = Key::new("", "boats.example.com");
        let written =
            store.create(&DEFINITIONS, key.clone(), established(json!({"strategy": "None"}))).unwrap();
        assert!(boats().unwrap().custom().unwrap().webhook.is_none());
        let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://127.0.0.1"},
            "conversionReviewVersions": ["v1"]}});
        let written = store.update(&DEFINITIONS, &key, written.revision, established(webhook)).unwrap();
        assert!(boats().unwrap().custom().unwrap().webhook.is_some());
        store.delete(&DEFINITIONS, &key, written.revision, established(Value::Null)).unwrap();
        assert!(boats().is_err());
    }
}
