//! The columns and cells of the built-in kinds.
//!
//! Columns are data, recorded from a real server; cells are code, one function per kind.

mod cells;
mod cluster;
mod network;
mod pod;
mod scaling;
mod storage;
mod workload;

use std::{collections::BTreeMap, sync::LazyLock};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, format};

/// Makes the cells of a row.
type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// What `kubectl get` shows of each kind: descriptions (`= text`), then a line per resource, written by
/// `xtask generate`.
const COLUMNS: &str = include_str!("columns.txt");

/// How a kind is printed.
pub(super) struct Printer {
    columns: &'static [Column],
    row: Option<Row>,
    pods: bool,
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

fn row(group: &str, plural: &str) -> Option<Row> {
    Some(match (group, plural) {
        ("", "pods") => pod::pod,
        ("apps", "deployments") => workload::deployment,
        ("apps", "replicasets") => workload::replica_set,
        ("", "replicationcontrollers") => workload::replication_controller,
        ("apps", "statefulsets") => workload::stateful_set,
        ("apps", "daemonsets") => workload::daemon_set,
        ("apps", "controllerrevisions") => workload::controller_revision,
        ("", "podtemplates") => workload::pod_template,
        ("batch", "jobs") => workload::job,
        ("batch", "cronjobs") => workload::cron_job,
        ("", "services") => network::service,
        ("", "endpoints") => network::endpoints,
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice,
        ("networking.k8s.io", "ingresses") => network::ingress,
        ("networking.k8s.io", "ingressclasses") => network::ingress_class,
        ("networking.k8s.io", "networkpolicies") => network::network_policy,
        ("", "persistentvolumes") => storage::volume,
        ("", "persistentvolumeclaims") => storage::claim,
        ("storage.k8s.io", "storageclasses") => storage::class,
        ("storage.k8s.io", "csinodes") => storage::csi_node,
        ("storage.k8s.io", "csidrivers") => storage::csi_driver,
        ("storage.k8s.io", "volumeattachments") => storage::attachment,
        ("policy", "poddisruptionbudgets") => scaling::budget,
        ("autoscaling", "horizontalpodautoscalers") => scaling::autoscaler,
        ("", "resourcequotas") => scaling::quota,
        ("scheduling.k8s.io", "priorityclasses") => scaling::priority_class,
        ("", "nodes") => cluster::node,
        ("", "namespaces") => cluster::namespace,
        ("", "configmaps") => cluster::config_map,
        ("", "secrets") => cluster::secret,
        ("coordination.k8s.io", "leases") => cluster::lease,
        ("apiextensions.k8s.io", "customresourcedefinitions") => cluster::definition,
        ("apiregistration.k8s.io", "apiservices") => cluster::api_service,
        ("" | "events.k8s.io", "events") => cluster::event,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => cluster::role_binding,
        ("admissionregistration.k8s.io", plural) if plural.ends_with("webhookconfigurations") => {
            cluster::webhooks
        }
        ("admissionregistration.k8s.io", plural) if plural.ends_with("policybindings") => {
            cluster::policy_binding
        }
        ("admissionregistration.k8s.io", plural) if plural.ends_with("policies") => cluster::admission_policy,
        ("certificates.k8s.io", "certificatesigningrequests") => cluster::signing_request,
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => scaling::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => scaling::priority_level,
        _ => return None,
    })
}

/// The printer of a kind.
pub(super) fn printer(group: &str, plural: &str) -> Printer {
    let pods = group.is_empty() && plural == "pods";
    Printer { columns: columns(group, plural), row: row(group, plural), pods }
}

impl Printer {
    pub(super) fn columns(&self) -> Vec<Column> {
        self.columns.to_vec()
    }

    pub(super) fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        if let Some(row) = self.row {
            return row(object, now);
        }
        // A kind that shows nothing of its own: its name, when it was made, and what has the column's name.
        self.columns
            .iter()
            .map(|column| match column.name.as_str() {
                "Name" => cells::name(object),
                "Age" => age(object, now),
                "Created At" => json!(cells::text(object, "/metadata/creationTimestamp")),
                _ => json!("<none>"),
            })
            .collect()
    }

    /// What is worth knowing about a row besides its cells: whether a Pod has ended.
    pub(super) fn conditions(&self, object: &Value) -> Option<Value> {
        let phase = cells::text(object, "/status/phase");
        let message = match phase {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return None,
        };
        self.pods
            .then(|| json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
    }
}

/// The age of an object.
fn age(object: &Value, now: Timestamp) -> Value {
    json!(format::age(cells::text(object, "/metadata/creationTimestamp"), now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printer_has_as_many_cells_as_columns() {
        let resources = COLUMNS.lines().filter(|line| !line.starts_with("= "));
        for line in resources {
            let (group, plural) = line.split(' ').next().unwrap().split_once('/').unwrap();
            let printer = printer(group, plural);
            let row = printer.row(&json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
            assert_eq!(row.len(), printer.columns().len(), "{group}/{plural}");
        }
    }

    #[test]
    fn a_kind_without_a_line_shows_name_and_creation() {
        let names: Vec<String> = columns("x", "y").iter().map(|column| column.name.clone()).collect();
        assert_eq!(names, ["Name", "Created At"]);
    }
}
