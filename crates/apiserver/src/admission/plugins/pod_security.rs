//! Pod security: a namespace's labels say what its Pods may not do.
//!
//! `enforce` refuses Pods, `warn` tells who writes a Pod or something that makes Pods. `audit` writes
//! the same into the audit log, if there is one.

mod baseline;
mod policy;
mod restricted;

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use self::policy::{Bound, Level, Policy};
use super::is_any;
use crate::{
    admission::{Attributes, Operation},
    error::{Error, Result},
    registry::Registry,
    store::{Key, TableName},
};

/// What makes Pods, and where it keeps their template.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("", "replicationcontrollers", "/spec/template"),
    ("", "podtemplates", "/template"),
    ("apps", "replicasets", "/spec/template"),
    ("apps", "deployments", "/spec/template"),
    ("apps", "statefulsets", "/spec/template"),
    ("apps", "daemonsets", "/spec/template"),
    ("batch", "jobs", "/spec/template"),
    ("batch", "cronjobs", "/spec/jobTemplate/spec/template"),
];

/// Subresources of Pods that change nothing of what is looked at here.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// How many Pods are looked at when a namespace becomes stricter.
const PODS: usize = 3000;

/// One thing that a Pod may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Violation {
    reason: String,
    detail: String,
}

impl Violation {
    fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }

    fn told(&self) -> String {
        if self.detail.is_empty() {
            self.reason.clone()
        } else {
            format!("{} ({})", self.reason, self.detail)
        }
    }
}

fn template_of(request: &Attributes<'_>) -> Option<&'static str> {
    let resource = request.target.resource;
    let known = TEMPLATES
        .iter()
        .find(|(group, plural, _)| &*resource.group == *group && &*resource.plural == *plural);
    known.filter(|_| request.target.subresource.is_empty()).map(|(.., place)| *place)
}

fn namespace_policy(registry: &Registry, request: &Attributes<'_>) -> Policy {
    static NAMESPACES: LazyLock<TableName> =
        LazyLock::new(|| TableName { group: "".into(), plural: "namespaces".into() });
    let found = registry.store().get(&NAMESPACES, &Key::new("", request.target.namespace));
    found.map_or_else(Policy::default, |namespace| {
        let labels = namespace.labels.iter().map(|(key, value)| (&**key, &**value));
        Policy::read(labels).0
    })
}

/// Whether there is anything to check.
pub(super) fn concerns(registry: &Registry, request: &Attributes<'_>) -> bool {
    if request.operation == Operation::Delete {
        return false;
    }
    if request.is_namespace() {
        return request.target.subresource.is_empty();
    }
    let pods = is_any(request, "", "pods") && !IGNORED.contains(&request.target.subresource);
    if !pods && template_of(request).is_none() {
        return false;
    }
    let policy = namespace_policy(registry, request);
    if pods && request.operation == Operation::Create {
        tell_enforced(request, policy.enforce);
    }
    !policy.is_privileged()
}

/// The audit log is told by what a Pod was measured, also where that allows everything.
fn tell_enforced(request: &Attributes<'_>, bound: Bound) {
    let key = "pod-security.kubernetes.io/enforce-policy";
    request.warnings.audit().annotate(key, || bound.to_string());
}

/// Checks Pods, what makes Pods, and namespaces.
pub(super) fn check(
    registry: &Registry,
    request: &Attributes<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<()> {
    if request.operation == Operation::Delete || !concerns(registry, request) {
        return Ok(());
    }
    if request.is_namespace() {
        return check_namespace(registry, request, object, old);
    }
    let policy = namespace_policy(registry, request);
    if let Some(place) = template_of(request) {
        let template = object.pointer(place).filter(|template| template["spec"].is_object());
        if let Some(template) = template {
            tell_audit(request, policy.audit, template);
            warn(request, policy.warn, template);
        }
        return Ok(());
    }
    if old.is_some_and(|old| !is_significant(object, old)) {
        return Ok(());
    }
    tell_enforced(request, policy.enforce);
    let found = violations(policy.enforce, object);
    if !found.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, told(&found));
        return Err(Error::forbidden(request.target.resource.named(), &request.name, why));
    }
    tell_audit(request, policy.audit, object);
    warn(request, policy.warn, object);
    Ok(())
}

/// What the audit log is told of a Pod that is let in.
fn tell_audit(request: &Attributes<'_>, bound: Bound, pod: &Value) {
    if bound.level == Level::Privileged {
        return;
    }
    request.warnings.audit().annotate("pod-security.kubernetes.io/audit-violations", || {
        let found = violations(bound, pod);
        format!("would violate PodSecurity \"{bound}\": {}", told(&found))
    });
}

fn warn(request: &Attributes<'_>, bound: Bound, pod: &Value) {
    let found = violations(bound, pod);
    if !found.is_empty() {
        request.warnings.add(&format!("would violate PodSecurity \"{bound}\": {}", told(&found)));
    }
}

fn told(found: &[Violation]) -> String {
    found.iter().map(Violation::told).collect::<Vec<_>>().join(", ")
}

/// What a Pod, or a template of one, does that the bound does not allow.
fn violations(bound: Bound, pod: &Value) -> Vec<Violation> {
    match bound.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline::violations(bound, pod),
        Level::Restricted => {
            let mut found = baseline::violations(bound, pod);
            found.extend(restricted::violations(bound, pod));
            found
        }
    }
}

/// Only new images and new containers make a Pod another one.
fn is_significant(new: &Value, old: &Value) -> bool {
    let list = |pod: &Value, field: &str| pod["spec"][field].as_array().cloned().unwrap_or_default();
    let differs = |field: &str| {
        let (now, before) = (list(new, field), list(old, field));
        now.len() != before.len()
            || now.iter().zip(&before).any(|(now, before)| now["image"] != before["image"])
    };
    let before = list(old, "ephemeralContainers");
    let image = |one: &'_ Value| (one["name"].as_str().unwrap_or_default().to_owned(), one["image"].clone());
    let images: BTreeMap<String, Value> = before.iter().rev().map(image).collect();
    differs("containers")
        || differs("initContainers")
        || list(new, "ephemeralContainers").iter().any(|now| {
            let same = images.get(now["name"].as_str().unwrap_or_default());
            same.is_none_or(|image| *image != now["image"])
        })
}

fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// Labels must make sense, and whoever makes a namespace stricter is told which Pods would not be let in now.
fn check_namespace(
    registry: &Registry,
    request: &Attributes<'_>,
    namespace: &Value,
    old: Option<&Value>,
) -> Result<()> {
    let (policy, wrong) = Policy::read(labels(namespace));
    let (before, wrong_before) = old.map_or_else(Default::default, |old| Policy::read(labels(old)));
    if !wrong.is_empty() && wrong != wrong_before {
        return Err(Error::invalid(request.target.resource.named_kind(), &request.name, wrong));
    }
    let (now, then) = (policy.enforce, before.enforce);
    let relaxed = now.version == then.version && now.level <= then.level;
    if old.is_none() || now == then || now.level == Level::Privileged || relaxed {
        return Ok(());
    }
    for warning in existing(registry, request.namespace(), now) {
        request.warnings.add(&warning);
    }
    Ok(())
}

/// What the Pods of a namespace do that is not allowed any more, those that do the same in one line.
fn existing(registry: &Registry, namespace: &str, bound: Bound) -> Vec<String> {
    let pods = registry.look_through("", "pods", Some(namespace));
    let (total, mut found) = (pods.len(), BTreeMap::<String, (String, usize)>::new());
    for pod in pods.iter().take(PODS) {
        let wrong = violations(bound, pod);
        if !wrong.is_empty() {
            let reasons: Vec<&str> = wrong.iter().map(|one| one.reason.as_str()).collect();
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            found.entry(reasons.join(", ")).or_insert((name, 0)).1 += 1;
        }
    }
    let mut warnings = Vec::new();
    if total > PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{bound}\""
        ));
    }
    let mut told: Vec<String> = found
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            more => format!("{name} (and {} other pods): {reasons}", more - 1),
        })
        .collect();
    told.sort();
    warnings.extend(told);
    warnings
}

/// What the checks see of a Pod, or of a template of one.
struct PodView<'a> {
    pod: &'a Value,
}

impl<'a> PodView<'a> {
    fn spec(&self) -> &'a Value {
        &self.pod["spec"]
    }

    fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let map = self.pod.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec();
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|list| spec[list].as_array().into_iter().flatten())
    }

    /// The names of containers that something is true of.
    fn named(&self, mut is_bad: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        let bad = self.containers().filter(|container| is_bad(container));
        bad.map(|container| container["name"].as_str().unwrap_or_default()).collect()
    }

    fn is_windows(&self) -> bool {
        self.spec()["os"]["name"] == "windows"
    }

    /// Root in a user namespace of its own is nobody outside.
    fn has_own_users(&self) -> bool {
        self.spec()["hostUsers"] == false
    }
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

fn plural<'a>(one: &'a str, several: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { several }
}

/// `container "a"`, or `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// `pod and container "a"`, whichever of the two there are.
fn setters(pod: bool, names: &[&str]) -> Option<String> {
    match (pod, names.is_empty()) {
        (false, true) => None,
        (true, true) => Some("pod".into()),
        (false, false) => Some(containers(names)),
        (true, false) => Some(format!("pod and {}", containers(names))),
    }
}
