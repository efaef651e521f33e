//! Tables: objects as rows, the way `kubectl get` prints them.
//!
//! A kind that has columns of its own is in `builtin`; custom resources bring theirs in their
//! definition; everything else shows its name and its age.

mod builtin;
mod jsonpath;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::read::partial;
use crate::registry::{Resource, crd, kinds::format};

/// A column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i32,
}

/// What the first column says about itself.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
    may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for \
    creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What a row holds besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowObject {
    /// Nothing.
    Nothing,
    /// The metadata.
    Metadata,
    /// The whole object.
    Whole,
}

/// Makes rows of the objects of one resource.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) resource: Arc<Resource>,
    pub(super) include: RowObject,
    pub(super) now: Timestamp,
    /// Whether the client asks for the version before; the two differ in name alone.
    pub(super) beta: bool,
}

impl Rows {
    fn columns(&self) -> Vec<Column> {
        match self.resource.custom() {
            Some(served) => custom_columns(served),
            None => builtin::printer(&self.resource).columns(),
        }
    }

    fn api_version(&self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }

    /// A table up to its first row, and what comes after the last. Without rows there may be no list to hold them.
    pub(super) fn frame(&self, metadata: &Value, is_empty: bool) -> (String, &'static str) {
        let columns = self.columns();
        // The printer of kinds that show nothing of their own writes no list where there are no rows.
        let bare =
            self.resource.custom().is_none() && columns.iter().any(|column| column.name == "Created At");
        let columns = Value::Array(columns.iter().map(Column::to_json).collect());
        let version = self.api_version();
        let (open, close) = if bare && is_empty { ("null", "}") } else { ("[", "]}") };
        let head = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"columnDefinitions\":{columns},\
             \"rows\":{open}"
        );
        (head, close)
    }

    /// The row of an object.
    pub(super) fn row(&self, object: Value) -> Value {
        let printer = match self.resource.custom() {
            Some(_) => None,
            None => Some(builtin::printer(&self.resource)),
        };
        let cells = match (&printer, self.resource.custom()) {
            (Some(printer), _) => printer.row(&object, self.now),
            (None, Some(served)) => custom_row(served, &object, self.now),
            (None, None) => Vec::new(),
        };
        let conditions = printer.and_then(|printer| printer.conditions(&object));
        let mut shown = match self.include {
            RowObject::Nothing => Value::Null,
            RowObject::Metadata => without_legacy(partial(object)),
            RowObject::Whole => object,
        };
        if self.beta && shown["apiVersion"] == json!("meta.k8s.io/v1") {
            shown["apiVersion"] = json!(self.api_version());
        }
        let mut row = json!({"cells": cells, "object": shown});
        if let Some(conditions) = conditions {
            row["conditions"] = conditions;
        }
        row
    }

    /// The table of one object.
    pub(super) fn table(&self, object: Value, metadata: Value) -> Value {
        json!({
            "kind": "Table", "apiVersion": self.api_version(), "metadata": metadata,
            "columnDefinitions": self.columns().iter().map(Column::to_json).collect::<Vec<_>>(),
            "rows": [self.row(object)],
        })
    }
}

/// Metadata without the annotations that carry fields of other versions: rows show the object before it is
/// made into one.
fn without_legacy(mut object: Value) -> Value {
    const LEGACY: [&str; 2] =
        ["deprecated.daemonset.template.generation", "autoscaling.alpha.kubernetes.io/"];
    let Some(metadata) = object["metadata"].as_object_mut() else { return object };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !LEGACY.iter().any(|legacy| key.starts_with(legacy)));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

impl Column {
    fn name_column() -> Self {
        Self {
            name: "Name".into(),
            kind: "string".into(),
            format: "name".into(),
            description: NAME.into(),
            priority: 0,
        }
    }

    fn to_json(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority})
    }
}

fn custom_columns(served: &crd::Served) -> Vec<Column> {
    let own = served.columns.iter().map(|column| Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description: if column.description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
        } else {
            column.description.clone()
        },
        priority: column.priority,
    });
    std::iter::once(Column::name_column()).chain(own).collect()
}

fn custom_row(served: &crd::Served, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| json!(""));
    let cells = served.columns.iter().map(|column| {
        let found = jsonpath::find(&column.json_path, object);
        format::cell(&column.kind, &found, now)
    });
    std::iter::once(name).chain(cells).collect()
}
