//! What sets one kind apart: defaults, generations, status, validation and the manner of its deletion.
//!
//! Everything here is pure: an object and its old version in, a changed object or causes out.

pub(super) mod certificates;
mod check;
mod cluster;
mod config;
mod namespace;
mod network;
mod pod;
mod policy;
mod service;
mod storage;
mod warnings;
mod workload;

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

pub(super) use self::warnings::warnings;
use super::{
    crd,
    metadata::{self, NameRule, has_finalizers, meta},
    resource::{Resource, text},
};
use crate::{
    admission::configuration,
    environment::Environment,
    error::{Cause, Error, Result},
};

/// Built-in resources whose objects count the changes of their spec.
const WITH_GENERATION: [(&str, &str); 25] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "priorityclasses"),
];

/// Whether the resource is the built-in one of this group and name.
fn is(resource: &Resource, group: &str, plural: &str) -> bool {
    &*resource.group == group && &*resource.plural == plural && resource.custom().is_none()
}

pub(super) fn is_service(resource: &Resource) -> bool {
    is(resource, "", "services")
}

fn has_generation(resource: &Resource) -> bool {
    resource.custom().is_some() || WITH_GENERATION.contains(&(&*resource.group, &*resource.plural))
}

/// Makes a decoded body into a new object of its kind.
pub(super) fn prepare_create(resource: &Resource, object: &mut Value, environment: &Environment) {
    if has_generation(resource) {
        metadata::metadata(object).insert("generation".into(), json!(1));
    }
    if resource.has("status")
        && let Some(map) = object.as_object_mut()
    {
        // The status belongs to whoever observes, not to whoever creates.
        map.remove("status");
    }
    apply_defaults(resource, object, environment);
    if is(resource, "", "namespaces") {
        namespace::prepare_create(object);
    }
}

/// Adds to a new object what the server decides and nobody owns.
pub(super) fn complete_new(resource: &Resource, object: &mut Value, environment: &Environment) {
    if resource.custom().is_none() {
        workload::complete_new(resource, object);
        storage::complete_new(resource, object, environment);
        if is_service(resource) {
            service::complete(object);
        }
    }
}

/// Whether a selector matches labels.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    check::selects(selector, labels)
}

/// Makes a decoded body into a new version of `old`.
pub(super) fn prepare_update(
    resource: &Resource,
    subresource: &str,
    new: &mut Value,
    old: &Value,
    environment: &Environment,
) {
    if resource.custom().is_some() {
        // The real server does it before anybody asks which part of the object is meant.
        apply_defaults(resource, new, environment);
    }
    match subresource {
        "status" => {
            keep_all_but_status(resource, new, old);
            certificates::keep_verdict(resource, new, old, environment);
            if resource.custom().is_none() {
                apply_defaults(resource, new, environment);
            }
        }
        "approval" => certificates::approve(new, old, environment),
        "finalize" => namespace::keep_all_but_finalizers(new, old),
        // The scheduler's word changes nothing that its author wrote.
        "binding" => return,
        _ => {
            if resource.has("status") {
                copy_top(old, new, "status");
            }
            service::keep_addresses(resource, new, old);
            if is(resource, "", "namespaces") {
                namespace::keep_finalizers(new, old);
            }
            if is(resource, "", "pods") {
                pod::update::keep_priority(new, old);
            }
            certificates::keep_request(resource, new, old);
            if resource.custom().is_none() {
                apply_defaults(resource, new, environment);
                workload::complete_changed(resource, new, old);
                if is_service(resource) {
                    service::complete(new);
                }
            }
        }
    }
    count_generation(resource, subresource, new, old);
}

fn copy_top(from: &Value, to: &mut Value, field: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => drop(map.insert(field.into(), value.clone())),
        None => drop(map.remove(field)),
    }
}

fn keep_all_but_status(resource: &Resource, new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    copy_top(new, &mut kept, "status");
    metadata::copy_meta(new, &mut kept, "managedFields");
    if resource.custom().is_none() {
        // Kubelets and controllers annotate what they report on in the same write.
        metadata::copy_meta(new, &mut kept, "annotations");
        metadata::copy_meta(new, &mut kept, "finalizers");
        if is(resource, "", "pods") || is(resource, "", "nodes") {
            metadata::copy_meta(new, &mut kept, "labels");
        }
    }
    if let Some(revision) = new.pointer("/metadata/resourceVersion").cloned() {
        metadata::metadata(&mut kept).insert("resourceVersion".into(), revision);
    }
    *new = kept;
}

fn count_generation(resource: &Resource, subresource: &str, new: &mut Value, old: &Value) {
    // A priority class starts at one and stays there.
    if !has_generation(resource) || is(resource, "scheduling.k8s.io", "priorityclasses") {
        return;
    }
    let status_counts = resource.custom().is_some() && !resource.has("status");
    let counted = |object: &Value| -> BTreeMap<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(key, _)| key.as_str() != "metadata" && (status_counts || key.as_str() != "status"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let before = meta(old, "generation").as_i64().unwrap_or(0);
    // Its controller copies the annotations of a Deployment to its ReplicaSets, so they are a part of what is wished for.
    let annotated = is(resource, "apps", "deployments") && subresource.is_empty();
    let changed = counted(new) != counted(old) || annotated && annotations(new).ne(annotations(old));
    metadata::metadata(new).insert("generation".into(), json!(before + i64::from(changed)));
}

/// The annotations of a Deployment but for those that its controller writes with the status.
fn annotations(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = meta(object, "annotations").as_object().into_iter().flatten();
    all.filter(|(key, _)| !key.starts_with("deployment.kubernetes.io/"))
}

/// Fills in what a body leaves out.
pub(super) fn apply_defaults(resource: &Resource, object: &mut Value, environment: &Environment) {
    if resource.custom().is_some() {
        resource.schema().fill_defaults(object);
        return;
    }
    resource.schema().normalize(object);
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => pod::default_pod(object, environment),
        ("", "services") => service::defaults(object),
        ("", "namespaces") => namespace::defaults(object),
        ("", "persistentvolumes" | "persistentvolumeclaims") | ("storage.k8s.io", _) => {
            storage::defaults(resource, object);
        }
        ("", "secrets") | ("rbac.authorization.k8s.io", _) => config::defaults(resource, object),
        ("", "nodes" | "limitranges" | "endpoints") | ("scheduling.k8s.io", _) => {
            cluster::defaults(resource, object);
        }
        ("networking.k8s.io" | "discovery.k8s.io", _) => network::defaults(resource, object),
        ("autoscaling" | "policy", _) => policy::defaults(resource, object),
        ("apps" | "batch" | "", _) => workload::defaults(resource, object),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::defaults(object),
        (configuration::GROUP, plural) => configuration::defaults(plural, object),
        _ => {}
    }
}

/// Sets a field that nobody has set.
fn default(object: &mut Value, field: &str, value: impl FnOnce() -> Value) {
    let Some(map) = object.as_object_mut() else { return };
    if map.get(field).is_none_or(Value::is_null) {
        map.insert(field.to_owned(), value());
    }
}

/// What is wrong with the object, if anything.
pub(super) fn validate(
    resource: &Resource,
    subresource: &str,
    new: &Value,
    old: Option<&Value>,
) -> Vec<Cause> {
    let mut causes = metadata::validate(new, name_rule(resource));
    if resource.custom().is_some() {
        let found = resource.schema().validate(new, old).into_iter().map(Cause::from);
        causes.extend(found.map(|cause| if subresource == "status" { within_status(cause) } else { cause }));
        return causes;
    }
    if subresource == "status" {
        if is(resource, "", "namespaces") {
            causes.extend(namespace::validate_status(new));
        }
        causes.extend(workload::validate::status(resource, new));
        return causes;
    }
    causes.extend(match (&*resource.group, &*resource.plural) {
        ("", "pods") => validate_pod(subresource, new, old),
        ("", "configmaps" | "secrets") | ("rbac.authorization.k8s.io", _) => {
            config::validate(resource, new, old)
        }
        ("", "nodes" | "events" | "endpoints" | "resourcequotas" | "limitranges")
        | ("coordination.k8s.io" | "events.k8s.io" | "scheduling.k8s.io", _) => {
            cluster::validate(resource, new, old)
        }
        ("", "services") => service::validate(new, old),
        ("", "persistentvolumes" | "persistentvolumeclaims") | ("storage.k8s.io", _) => {
            storage::validate(resource, new, old)
        }
        ("networking.k8s.io" | "discovery.k8s.io", _) => network::validate(resource, new, old),
        ("autoscaling" | "policy", _) => policy::validate(resource, new),
        ("apps" | "batch", _) | ("", "replicationcontrollers" | "podtemplates") => {
            workload::validate::workload(resource, new, old)
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::validate(new, old),
        (certificates::GROUP, _) => certificates::validate(resource, new, old),
        (configuration::GROUP, plural) => configuration::validate(plural, new, old),
        _ => Vec::new(),
    });
    causes
}

/// The real server checks a written status by itself, and its messages begin inside of it.
fn within_status(mut cause: Cause) -> Cause {
    if let Some(inside) = cause.field.strip_prefix("status.") {
        cause.message =
            cause.message.replace(&format!("{} in body", cause.field), &format!("{inside} in body"));
    }
    cause
}

fn validate_pod(subresource: &str, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (subresource, old) {
        ("binding", _) => {}
        ("ephemeralcontainers", Some(old)) => pod::update::debug(&mut causes, new, old),
        ("resize", Some(old)) => pod::update::resize(&mut causes, new, old),
        (_, old) => {
            pod::validate::spec(&mut causes, &new["spec"], "spec");
            if let Some(old) = old {
                pod::update::update(&mut causes, new, old);
            }
        }
    }
    causes
}

fn name_rule(resource: &Resource) -> NameRule {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => NameRule::Label,
        ("", "services") => NameRule::Label,
        // A bundle's name is checked together with its signer's.
        ("rbac.authorization.k8s.io", _) | (certificates::GROUP, "clustertrustbundles") => {
            NameRule::PathSegment
        }
        _ => NameRule::Subdomain,
    }
}

/// How long the object may take to end.
pub(super) fn grace_period(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if is(resource, "", "pods") { pod::grace_period(object, asked) } else { 0 }
}

/// Whether deletion of the kind is a matter of seconds at all; a namespace takes what it takes.
pub(super) fn has_grace(resource: &Resource) -> bool {
    !is(resource, "", "namespaces")
}

/// Whether a deleted object can go: nothing and nobody waits for it.
pub(super) fn may_vanish(resource: &Resource, object: &Value) -> bool {
    if has_finalizers(object) {
        return false;
    }
    if is(resource, "", "namespaces") {
        return object.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty);
    }
    !is(resource, "", "pods") || meta(object, "deletionGracePeriodSeconds").as_i64().unwrap_or(0) == 0
}

/// What an object looks like once its deletion has begun.
pub(super) fn begin_deletion(resource: &Resource, object: &mut Value) {
    if is(resource, "", "namespaces") {
        object["status"] = json!({"phase": "Terminating"});
    }
}

/// Whether a PUT of what is not there creates it.
pub(super) fn creates_on_update(resource: &Resource) -> bool {
    matches!(
        (&*resource.group, &*resource.plural),
        ("", "events" | "services" | "endpoints" | "limitranges")
            | ("events.k8s.io", "events")
            | ("node.k8s.io", "runtimeclasses")
            | ("coordination.k8s.io", "leases")
            | ("rbac.authorization.k8s.io", _)
    ) && resource.custom().is_none()
}

/// Whether dependents stay when nobody says what becomes of them, as the first versions of these kinds did it.
pub(super) fn orphans_by_default(resource: &Resource) -> bool {
    is(resource, "batch", "jobs") || is(resource, "", "replicationcontrollers")
}

/// Some objects the cluster cannot do without.
pub(super) fn allow_delete(resource: &Resource, name: &str) -> Result<()> {
    let needed = ["default", "kube-public", "kube-system"].contains(&name);
    if needed && is(resource, "", "namespaces") {
        return Err(Error::forbidden(resource.named(), name, "this namespace may not be deleted"));
    }
    if is(resource, "scheduling.k8s.io", "priorityclasses") && cluster::SYSTEM_CLASSES.contains(&name) {
        let why = "this is a system priority class and cannot be deleted";
        return Err(Error::forbidden(resource.named(), name, why));
    }
    Ok(())
}

/// The fields that selectors of a built-in kind may name.
pub(super) fn selectable(group: &str, plural: &str) -> &'static [String] {
    type Table = BTreeMap<(&'static str, &'static str), Vec<String>>;
    static FIELDS: LazyLock<Table> = LazyLock::new(|| {
        const EVENT: &str = "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,\
            involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,\
            reportingComponent,source,type";
        const ROWS: [(&str, &str, &str); 9] = [
            (
                "",
                "pods",
                "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,spec.hostNetwork,\
                 status.phase,status.podIP,status.nominatedNodeName",
            ),
            ("", "nodes", "spec.unschedulable"),
            ("", "events", EVENT),
            ("", "secrets", "type"),
            ("", "namespaces", "status.phase"),
            ("", "services", "spec.clusterIP,spec.type"),
            ("", "replicationcontrollers", "status.replicas"),
            ("batch", "jobs", "status.successful"),
            ("certificates.k8s.io", "certificatesigningrequests", "spec.signerName"),
        ];
        ROWS.iter()
            .map(|(group, plural, fields)| {
                ((*group, *plural), fields.split(',').map(str::to_owned).collect())
            })
            .collect()
    });
    let group = if group == "events.k8s.io" { "" } else { group };
    let row = FIELDS.iter().find(|((own_group, own_plural), _)| *own_group == group && *own_plural == plural);
    row.map_or(&[], |(_, fields)| fields.as_slice())
}

/// The value of a selectable field as text.
pub(super) fn field_value(object: &Value, field: &str) -> String {
    let pointer = match field {
        // Events of the newer kind name their source elsewhere.
        "source" if text(object, "/source/component").is_empty() => "/reportingComponent".to_owned(),
        "source" => "/source/component".to_owned(),
        "status.successful" => "/status/succeeded".to_owned(),
        _ => format!("/{}", field.trim_start_matches('.').replace('.', "/")),
    };
    match object.pointer(&pointer) {
        Some(Value::String(value)) => value.clone(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(value)) => value.to_string(),
        _ if matches!(field, "spec.unschedulable" | "spec.hostNetwork") => "false".into(),
        _ if matches!(field, "status.replicas" | "status.successful") => "0".into(),
        _ => String::new(),
    }
}
