//! Tables: objects as rows, the way `kubectl get` prints them.
//!
//! A kind that has columns of its own is in `builtin`; custom resources bring theirs in their
//! definition; everything else shows its name and its age.

mod builtin;
mod format;
mod jsonpath;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::read::partial;
use crate::registry::{Resource, crd};

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

/// The table of these objects.
pub(super) fn table(
    resource: &Resource,
    objects: &[Value],
    metadata: Value,
    include: RowObject,
    now: Timestamp,
) -> Value {
    let (columns, rows): (Vec<Column>, Vec<Vec<Value>>) = match resource.custom() {
        Some(served) => {
            (custom_columns(served), objects.iter().map(|object| custom_row(served, object, now)).collect())
        }
        None => {
            let printer = builtin::printer(&resource.group, &resource.plural);
            (printer.columns(), objects.iter().map(|object| printer.row(object, now)).collect())
        }
    };
    // The printer of kinds that show nothing of their own writes no list where there are no rows.
    let bare = resource.custom().is_none() && columns.iter().any(|column| column.name == "Created At");
    let rows: Vec<Value> = objects
        .iter()
        .zip(rows)
        .map(|(object, cells)| {
            let shown = match include {
                RowObject::Nothing => Value::Null,
                RowObject::Metadata => without_legacy(partial(object.clone())),
                RowObject::Whole => object.clone(),
            };
            let mut row = json!({"cells": cells, "object": shown});
            let printer =
                resource.custom().is_none().then(|| builtin::printer(&resource.group, &resource.plural));
            if let Some(conditions) = printer.and_then(|printer| printer.conditions(object)) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns.iter().map(Column::to_json).collect::<Vec<_>>(),
        "rows": if bare && rows.is_empty() { Value::Null } else { Value::Array(rows) },
    })
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
