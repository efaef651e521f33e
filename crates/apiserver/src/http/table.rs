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
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i32,
}

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
    let rows: Vec<Value> = objects
        .iter()
        .zip(rows)
        .map(|(object, cells)| match include {
            RowObject::Nothing => json!({"cells": cells, "object": null}),
            RowObject::Metadata => json!({"cells": cells, "object": partial(object.clone())}),
            RowObject::Whole => json!({"cells": cells, "object": object}),
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns.iter().map(Column::to_json).collect::<Vec<_>>(), "rows": rows,
    })
}

impl Column {
    fn name_column() -> Self {
        Self { name: "Name".into(), kind: "string".into(), format: "name".into(), priority: 0 }
    }

    fn to_json(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": "",
            "priority": self.priority})
    }
}

fn custom_columns(served: &crd::Served) -> Vec<Column> {
    let own = served.columns.iter().map(|column| Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
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
