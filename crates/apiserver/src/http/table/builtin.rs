//! The columns of the built-in kinds.

mod cells;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, format};

/// Makes the cells of a row after the first, which is always the name.
type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// How a kind is printed: columns as `Name:type:priority`, and the cells.
pub(super) struct Printer {
    columns: &'static str,
    row: Row,
    name_first: bool,
}

const PLAIN: Printer = Printer { columns: "Age:string:0", row: cells::plain, name_first: true };
const DATED: Printer = Printer { columns: "Created At:date:0", row: cells::dated, name_first: true };

/// The printer of a kind.
pub(super) fn printer(group: &str, plural: &str) -> Printer {
    let (columns, row): (&'static str, Row) = match (group, plural) {
        ("", "pods") => (
            "Ready:string:0|Status:string:0|Restarts:string:0|Age:string:0|IP:string:1|Node:string:1|\
             Nominated Node:string:1|Readiness Gates:string:1",
            cells::pod,
        ),
        ("apps", "deployments") => (
            "Ready:string:0|Up-to-date:string:0|Available:string:0|Age:string:0|Containers:string:1|Images:string:1|\
             Selector:string:1",
            cells::deployment,
        ),
        ("apps", "replicasets") => (
            "Desired:integer:0|Current:integer:0|Ready:integer:0|Age:string:0|Containers:string:1|Images:string:1|\
             Selector:string:1",
            cells::replica_set,
        ),
        ("apps", "statefulsets") => {
            ("Ready:string:0|Age:string:0|Containers:string:1|Images:string:1", cells::stateful_set)
        }
        ("", "services") => (
            "Type:string:0|Cluster-IP:string:0|External-IP:string:0|Port(s):string:0|Age:string:0|Selector:string:1",
            cells::service,
        ),
        ("", "nodes") => (
            "Status:string:0|Roles:string:0|Age:string:0|Version:string:0|Internal-IP:string:1|External-IP:string:1|\
             OS-Image:string:1|Kernel-Version:string:1|Container-Runtime:string:1",
            cells::node,
        ),
        ("", "namespaces") => ("Status:string:0|Age:string:0", cells::namespace),
        ("", "configmaps") => ("Data:string:0|Age:string:0", cells::config_map),
        ("", "secrets") => ("Type:string:0|Data:string:0|Age:string:0", cells::secret),
        ("coordination.k8s.io", "leases") => ("Holder:string:0|Age:string:0", cells::lease),
        ("apiextensions.k8s.io", "customresourcedefinitions") => (
            "Scope:string:0|Versions:string:0|Created At:date:0|Group:string:1|Kind:string:1|ShortNames:string:1|\
             Established:boolean:1",
            cells::definition,
        ),
        ("" | "events.k8s.io", "events") => {
            let columns = "Last Seen:string:0|Type:string:0|Reason:string:0|Object:string:0|Subobject:string:1|\
                           Source:string:1|Message:string:0|First Seen:string:1|Count:string:1|Name:string:1";
            return Printer { columns, row: cells::event, name_first: false };
        }
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => return DATED,
        _ => return PLAIN,
    };
    Printer { columns, row, name_first: true }
}

impl Printer {
    pub(super) fn columns(&self) -> Vec<Column> {
        let own = self.columns.split('|').map(|column| {
            let mut parts = column.rsplitn(3, ':');
            let priority = parts.next().and_then(|text| text.parse().ok()).unwrap_or(0);
            let kind = parts.next().unwrap_or("string").to_owned();
            let name = parts.next().unwrap_or_default().to_owned();
            let format = if name == "Name" { "name".to_owned() } else { String::new() };
            Column { name, kind, format, priority }
        });
        let name = self.name_first.then(Column::name_column);
        name.into_iter().chain(own).collect()
    }

    pub(super) fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| json!(""));
        let name = self.name_first.then_some(name);
        name.into_iter().chain((self.row)(object, now)).collect()
    }
}

/// The age of an object.
fn age(object: &Value, now: Timestamp) -> Value {
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str).unwrap_or_default();
    json!(format::age(created, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printer_has_as_many_cells_as_columns() {
        for (group, plural) in [
            ("", "pods"),
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
            ("", "services"),
            ("", "nodes"),
            ("", "namespaces"),
            ("", "configmaps"),
            ("", "secrets"),
            ("coordination.k8s.io", "leases"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("", "events"),
            ("rbac.authorization.k8s.io", "roles"),
            ("", "endpoints"),
        ] {
            let printer = printer(group, plural);
            let row = printer.row(&json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
            assert_eq!(row.len(), printer.columns().len(), "{group}/{plural}");
        }
    }
}
