//! Who issues the certificate of the webhooks: the operator, or cert-manager. The chart has a value for it.
//!
//! What cert-manager needs beyond the operator's own objects (an annotation, a mounted Secret, an argument) stands in the
//! same template, behind a condition.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{settings::Settings, template::Gaps};
use crate::{
    Error, Objects,
    objects::{kind, name, namespace},
    yaml,
};

/// The condition.
pub(super) const CHOSEN: &str = "$.Values.webhooks.certManager";

type Key = (String, Option<String>, String);

fn key(object: &Value) -> Key {
    (kind(object).to_owned(), namespace(object).map(ToOwned::to_owned), name(object).to_owned())
}

/// The objects as cert-manager needs them, and those that it does not need.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    with: BTreeMap<Key, Value>,
    without: BTreeMap<Key, Value>,
}

impl Certificates {
    /// Compares the two, and adds the value if there is a choice.
    pub(super) fn new(objects: &Objects, settings: &mut Settings) -> Self {
        let Some(managed) = objects.when_cert_managed() else { return Self::default() };
        let about = "Let cert-manager, which must be in the cluster, issue the certificate of the webhooks";
        settings.switch_to("webhooks.certManager", managed.usual, about);
        let keyed = |all: &[Value]| all.iter().map(|object| (key(object), object.clone())).collect();
        Self { with: keyed(&managed.all), without: keyed(objects.all()) }
    }

    /// On what condition an object is there at all.
    pub(super) fn condition(&self, object: &Value) -> Option<String> {
        let key = key(object);
        match (self.with.contains_key(&key), self.without.contains_key(&key)) {
            (true, false) => Some(CHOSEN.to_owned()),
            (false, true) if !self.with.is_empty() => Some(format!("not {CHOSEN}")),
            _ => None,
        }
    }

    /// What is there for cert-manager alone.
    pub(super) fn more(&self) -> impl Iterator<Item = &Value> {
        self.with.iter().filter(|(key, _)| !self.without.contains_key(key)).map(|(_, object)| object)
    }

    /// Adds to an object what cert-manager needs of it. `target` is that object, of which parts may be gaps by now.
    pub(super) fn open(
        &self,
        path: &str,
        object: &Value,
        target: &mut Value,
        gaps: &mut Gaps,
    ) -> Result<(), Error> {
        let key = key(object);
        match (self.without.get(&key), self.with.get(&key)) {
            (Some(without), Some(with)) if without != with => add(path, target, without, with, gaps),
            _ => Ok(()),
        }
    }
}

/// What one value has beyond another.
fn add(path: &str, target: &mut Value, without: &Value, with: &Value, gaps: &mut Gaps) -> Result<(), Error> {
    let lines = |value: &Value| -> Result<String, Error> {
        Ok(format!("{{{{- if {CHOSEN} }}}}\n{}{{{{- end }}}}", yaml::document(path, value)?))
    };
    match (without, with) {
        (Value::Object(old), Value::Object(new)) if old.keys().all(|key| new.contains_key(key)) => {
            for (key, value) in new {
                match old.get(key) {
                    Some(old) if old == value => {}
                    Some(old) => add(path, &mut target[key], old, value, gaps)?,
                    // The chart may have put something there by itself.
                    None if target[key].is_object() => add(path, &mut target[key], &json!({}), value, gaps)?,
                    None => {
                        let entry = Map::from_iter([(key.clone(), value.clone())]);
                        let lines = lines(&Value::Object(entry))?;
                        if let Some(target) = target.as_object_mut() {
                            target.remove(key);
                        }
                        gaps.entry(target, lines);
                    }
                }
            }
            Ok(())
        }
        (Value::Array(old), Value::Array(new)) if old.len() <= new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new) {
                add(path, &mut target[at], old, new, gaps)?;
            }
            if new.len() > old.len() {
                gaps.item(target, lines(&json!(new[old.len()..]))?);
            }
            Ok(())
        }
        _ => Err(Error::Content {
            path: path.into(),
            why: format!("with cert-manager {without} becomes {with}, which one template cannot say"),
        }),
    }
}
