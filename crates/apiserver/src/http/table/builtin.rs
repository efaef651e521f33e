//! The columns of the built-in kinds, which are data recorded from a real server. Their cells are made by each kind.

use std::{collections::BTreeMap, sync::LazyLock};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Column;
use crate::registry::{Resource, kinds::cells, resource::text, strategy::Strategy};

/// What `kubectl get` shows of each kind: descriptions (`= text`), then a line per resource, written by
/// `xtask generate`.
const COLUMNS: &str = include_str!("columns.txt");

/// How a kind is printed.
pub(super) struct Printer {
    columns: &'static [Column],
    strategy: &'static Strategy,
}

fn columns(group: &str, plural: &str) -> &'static [Column] {
    static TABLE: LazyLock<BTreeMap<String, Vec<Column>>> = LazyLock::new(|| {
        let descriptions: Vec<&str> = COLUMNS.lines().filter_map(|line| line.strip_prefix("= ")).collect();
        let resources = COLUMNS.lines().filter(|line| !line.starts_with("= "));
        resources
            .filter_map(|line| line.split_once(' '))
            .map(|(name, columns)| {
                (name.to_owned(), columns.split('|').filter_map(|text| column(text, &descriptions)).collect())
            })
            .collect()
    });
    static PLAIN: LazyLock<Vec<Column>> = LazyLock::new(|| {
        let created = Column { name: "Created At".into(), kind: "date".into(), ..Column::default() };
        vec![Column::name_column(), created]
    });
    TABLE.get(&format!("{group}/{plural}")).unwrap_or(&PLAIN)
}

/// Reads `Name:type:format:priority:description`.
fn column(text: &str, descriptions: &[&str]) -> Option<Column> {
    let mut parts = text.rsplitn(5, ':');
    let description: usize = parts.next()?.parse().ok()?;
    let priority = parts.next()?.parse().ok()?;
    let (format, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: descriptions.get(description)?.replace("\\n", "\n"),
        priority,
    })
}

/// The printer of a built-in kind.
pub(super) fn printer(resource: &Resource) -> Printer {
    Printer { columns: columns(&resource.group, &resource.plural), strategy: resource.strategy }
}

impl Printer {
    pub(super) fn columns(&self) -> Vec<Column> {
        self.columns.to_vec()
    }

    pub(super) fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        if let Some(row) = self.strategy.row {
            return row(object, now);
        }
        // A kind that shows nothing of its own: its name, when it was made, and what has the column's name.
        self.columns
            .iter()
            .map(|column| match column.name.as_str() {
                "Name" => cells::name(object),
                "Age" => cells::age(object, now),
                "Created At" => json!(text(object, "/metadata/creationTimestamp")),
                _ => json!("<none>"),
            })
            .collect()
    }

    /// What is worth knowing about a row besides its cells.
    pub(super) fn conditions(&self, object: &Value) -> Option<Value> {
        (self.strategy.row_conditions)(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Catalog;

    #[test]
    fn every_printer_has_as_many_cells_as_columns() {
        for resource in Catalog::built_in().resources() {
            let printer = printer(resource);
            let row = printer.row(&json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
            assert_eq!(row.len(), printer.columns().len(), "{}/{}", resource.group, resource.plural);
        }
    }

    #[test]
    fn a_kind_without_a_line_shows_name_and_creation() {
        let names: Vec<String> = columns("x", "y").iter().map(|column| column.name.clone()).collect();
        assert_eq!(names, ["Name", "Created At"]);
    }
}
