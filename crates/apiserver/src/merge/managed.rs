//! `metadata.managedFields`: who owns which fields, since when.
//!
//! Entries are read into [`Managed`], keyed by who the manager is, and written back in the order
//! of the real server.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{field_set::FieldSet, fields_v1::FieldsError};
use crate::schema::json::at;

/// So many managers of updates are kept apart; the oldest beyond it share one entry.
const MAX_UPDATE_MANAGERS: usize = 10;
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Why `metadata.managedFields` could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ManagedFieldsError {
    /// An entry is neither an apply's nor an update's.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry does not say which version its fields are in.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry does not say how its fields are written.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// An entry's fields are written in an unknown way.
    #[error("invalid fieldsType {found:?} in managed fields entry {index}")]
    FieldsType {
        /// What the entry says.
        found: String,
        /// Which entry.
        index: usize,
    },
    /// An entry's fields do not parse.
    #[error("error decoding set: {0}")]
    Fields(#[source] FieldsError),
}

/// What a manager did to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who a manager is. An applier is the same whatever version it applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Manager {
    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            operation: Operation::Apply,
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    pub(crate) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            operation: Operation::Update,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which the real server sorts managers.
    pub(crate) fn identifier(&self) -> String {
        let field = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(",\"{name}\":{}", json!(value)),
        };
        format!(
            "{{\"manager\":{},\"operation\":\"{}\"{}{}}}",
            json!(self.name),
            self.operation.as_str(),
            field("apiVersion", &self.api_version),
            field("subresource", &self.subresource)
        )
    }
}

fn named(name: &str) -> String {
    if name.is_empty() { "unknown" } else { name }.to_owned()
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) fields: FieldSet,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) entries: BTreeMap<Manager, Owned>,
}

impl Managed {
    /// Reads the entries of an object; an object without any has no managers.
    pub(crate) fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        let mut managed = Self::default();
        for (index, entry) in entries_of(object).iter().enumerate() {
            let (manager, owned) = decode(index, entry)?;
            managed.entries.insert(manager, owned);
        }
        Ok(managed)
    }

    /// Writes the entries into `object`, replacing what it had.
    pub(crate) fn write(self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        metadata.remove("managedFields");
        if !self.entries.is_empty() {
            metadata.insert("managedFields".to_owned(), self.encode());
        }
    }

    fn encode(self) -> Value {
        let mut entries: Vec<(Manager, Owned)> = self.entries.into_iter().collect();
        entries.sort_by(|(m, o), (n, p)| {
            (m.operation, &o.time, &m.name, &o.api_version, &m.subresource).cmp(&(
                n.operation,
                &p.time,
                &n.name,
                &p.api_version,
                &n.subresource,
            ))
        });
        let entries = entries.into_iter().map(|(manager, owned)| {
            let mut entry = Map::new();
            entry.insert("manager".to_owned(), json!(manager.name));
            entry.insert("operation".to_owned(), json!(manager.operation.as_str()));
            entry.insert("apiVersion".to_owned(), json!(owned.api_version));
            if let Some(time) = owned.time {
                entry.insert("time".to_owned(), json!(time));
            }
            entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
            entry.insert("fieldsV1".to_owned(), owned.fields.to_json());
            if !manager.subresource.is_empty() {
                entry.insert("subresource".to_owned(), json!(manager.subresource));
            }
            Value::Object(entry)
        });
        Value::Array(entries.collect())
    }

    pub(crate) fn drop_empty(&mut self) {
        self.entries.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Lets the oldest managers of updates share an entry for each version, so that an object
    /// written by ever new clients does not grow without end.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<Manager> =
            self.entries.keys().filter(|manager| manager.operation == Operation::Update).cloned().collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort_by_key(|manager| {
            let time = self.entries[manager].time.clone();
            (time, manager.identifier())
        });
        let mut first_of_version: BTreeMap<String, Manager> = BTreeMap::new();
        for manager in updaters {
            if count <= MAX_UPDATE_MANAGERS {
                break;
            }
            let version = self.entries[&manager].api_version.clone();
            match first_of_version.get(&version) {
                None => {
                    first_of_version.insert(version, manager);
                }
                Some(first) => {
                    self.share(first, &manager, &version);
                    count -= 1;
                }
            }
        }
    }

    /// Moves what `manager` owns to the shared entry, which `first` becomes when there is none.
    fn share(&mut self, first: &Manager, manager: &Manager, version: &str) {
        let bucket = Manager::updater(ANCIENT_CHANGES, version, "");
        if !self.entries.contains_key(&bucket)
            && let Some(owned) = self.entries.remove(first)
        {
            self.entries.insert(bucket.clone(), owned);
        }
        let Some(owned) = self.entries.remove(manager) else {
            return;
        };
        if let Some(shared) = self.entries.get_mut(&bucket) {
            shared.fields = shared.fields.union(&owned.fields);
            shared.time = owned.time;
        }
    }
}

/// The raw entries of an object.
fn entries_of(object: &Value) -> &[Value] {
    at(object, "/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether `object` asks to forget all managers: an empty list, or a list of one empty entry.
pub(crate) fn asks_for_reset(object: &Value) -> bool {
    let Some(Value::Array(entries)) = at(object, "/metadata/managedFields") else {
        return false;
    };
    match entries.as_slice() {
        [] => true,
        [Value::Object(entry)] => entry.is_empty(),
        _ => false,
    }
}

/// Takes the entries out of an object, so that they are not taken for something to own.
pub(crate) fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn decode(index: usize, entry: &Value) -> Result<(Manager, Owned), ManagedFieldsError> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedFieldsError::Operation),
    };
    let api_version = text("apiVersion").to_owned();
    if api_version.is_empty() {
        return Err(ManagedFieldsError::ApiVersion);
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError::NoFieldsType(index)),
        other => {
            return Err(ManagedFieldsError::FieldsType { found: other.to_owned(), index });
        }
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::new(),
        Some(fields) => FieldSet::from_json(fields).map_err(ManagedFieldsError::Fields)?,
    };
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.clone(),
        },
        subresource: text("subresource").to_owned(),
    };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    let owned = Owned { fields, api_version, time };
    Ok((manager, owned))
}
