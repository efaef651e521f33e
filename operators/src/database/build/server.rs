//! The StatefulSet, and what all Pods of a Database have in common.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PodTemplateSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{PORT, USER, options};
use crate::{database::api::Database, workload::digest};

/// The annotation of Pods that changes with what the spec asks of the server: only that restarts it. What else there is in
/// a template, such as the scripts of another operator, holds from the next start on, whenever that is.
pub(crate) const SERVER_HASH: &str = "database.example.com/server-hash";
/// The volume of the data.
const DATA: &str = "/var/lib/postgresql/data";
/// Where the data is, below the volume's own directory, in which some filesystems keep their own.
pub(super) const PGDATA: &str = "/var/lib/postgresql/data/pgdata";

/// Where the Secret is, for what follows it.
const CREDENTIALS: &str = "/etc/windlass-credentials";

/// The server. `size` is that of the claim's template, which cannot be changed on a StatefulSet that is there.
pub(crate) fn stateful_set(db: &Database, size: &str) -> StatefulSet {
    let spec = json!({
        "replicas": 1,
        "serviceName": db.name_any(),
        "selector": {"matchLabels": super::selector_labels(db)},
        // The operator knows when a server may be stopped; the StatefulSet does not.
        "updateStrategy": {"type": "OnDelete"},
        "podManagementPolicy": "OrderedReady",
        "template": template(db),
        "volumeClaimTemplates": [{
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "labels": super::lasting_labels(db)},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": db.spec.storage.storage_class_name,
                "resources": {"requests": {"storage": size}},
                "volumeMode": "Filesystem",
            },
        }],
    });
    StatefulSet {
        metadata: super::metadata(db, db.name_any()),
        spec: windlass::from_value(&without_nulls(spec)).expect("a StatefulSet must fit its type"),
        status: None,
    }
}

/// What the spec asks of the server's process.
fn server_hash(db: &Database) -> String {
    digest::of(&(super::image(db), &db.spec.version, &db.spec.parameters, &db.spec.pod))
}

fn template(db: &Database) -> PodTemplateSpec {
    let template = json!({
        "metadata": {
            "labels": super::labels(db),
            "annotations": {SERVER_HASH: server_hash(db)},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": pod_security(),
            "terminationGracePeriodSeconds": 120,
            "initContainers": [container(db, "prepare", "prepare.sh", &["data"])],
            "containers": [server(db), passwords(db)],
            "volumes": [config_volume(db), temporary(), credentials_volume(db), shared_memory()],
        },
    });
    let template = windlass::from_value(&template).expect("a template must fit its type");
    options::of_server(db, template)
}

fn server(db: &Database) -> Value {
    let mut server = container(db, "postgresql", "run.sh", &["data"]);
    let ready = json!({"exec": {"command": ["sh", "/etc/windlass/ready.sh"]}});
    let mut probe = |name: &str, period: u32, failures: u32| {
        server[name] = ready.clone();
        server[name]["periodSeconds"] = period.into();
        server[name]["failureThreshold"] = failures.into();
        server[name]["timeoutSeconds"] = 5.into();
    };
    // Recovery after a crash may take long; only then does a server that does not answer count as dead.
    probe("startupProbe", 2, 1800);
    probe("readinessProbe", 5, 3);
    probe("livenessProbe", 10, 6);
    // Of what a runtime gives, 64 MB, a few workers of one query have enough.
    let mounts = server["volumeMounts"].as_array_mut().expect("a container must have its volumes");
    mounts.push(json!({"name": "shm", "mountPath": "/dev/shm"}));
    server["ports"] = json!([{"name": "postgresql", "containerPort": PORT, "protocol": "TCP"}]);
    server["lifecycle"] = json!({"preStop": {"exec": {"command": ["sh", "/etc/windlass/stop.sh"]}}});
    server
}

/// What keeps the roles' passwords as the Secret says, beside the server, whose socket it shares.
fn passwords(db: &Database) -> Value {
    let mut container = container(db, "credentials", "passwords.sh", &[]);
    let mount = json!({"name": "credentials", "mountPath": CREDENTIALS, "readOnly": true});
    container["volumeMounts"].as_array_mut().expect("a container must have its volumes").push(mount);
    // The values of variables are those of the start; the files are those of now.
    container["env"] = json!([
        {"name": "PGMAJOR", "value": db.spec.version},
        {"name": "CREDENTIALS", "value": CREDENTIALS},
    ]);
    container
}

/// A container that runs a script of ours in the server's image.
pub(super) fn container(db: &Database, name: &str, script: &str, volumes: &[&str]) -> Value {
    let mut mounts = vec![
        json!({"name": "config", "mountPath": "/etc/windlass", "readOnly": true}),
        json!({"name": "tmp", "mountPath": "/tmp"}),
    ];
    for volume in volumes {
        let path = if *volume == "data" { DATA } else { "/backups" };
        mounts.push(json!({"name": volume, "mountPath": path}));
    }
    let bootstrap = super::bootstrap(db);
    json!({
        "name": name,
        "image": super::image(db),
        "command": ["sh", format!("/etc/windlass/{script}")],
        "env": [
            {"name": "PGMAJOR", "value": db.spec.version},
            {"name": "PGDATA", "value": PGDATA},
            {"name": "PGPASSWORD", "valueFrom": secret_key(db, "superuser-password")},
            {"name": "APP_DATABASE", "value": bootstrap.database},
            {"name": "APP_OWNER", "value": bootstrap.owner},
            {"name": "APP_PASSWORD", "valueFrom": secret_key(db, "password")},
        ],
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

pub(super) fn secret_key(db: &Database, key: &str) -> Value {
    json!({"secretKeyRef": {"name": super::secret_name(db), "key": key}})
}

pub(super) fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

pub(super) fn config_volume(db: &Database) -> Value {
    json!({"name": "config", "configMap": {"name": super::config_name(db)}})
}

fn credentials_volume(db: &Database) -> Value {
    json!({"name": "credentials", "secret": {"secretName": super::secret_name(db), "defaultMode": 0o440}})
}

/// Where the processes of one query meet. It counts as the server's memory.
fn shared_memory() -> Value {
    json!({"name": "shm", "emptyDir": {"medium": "Memory"}})
}

pub(super) fn temporary() -> Value {
    json!({"name": "tmp", "emptyDir": {}})
}

/// What is not set is not sent: a null would be a wish.
pub(super) fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            for field in fields.values_mut() {
                *field = without_nulls(field.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = without_nulls(item.take());
            }
        }
        _ => {}
    }
    value
}
