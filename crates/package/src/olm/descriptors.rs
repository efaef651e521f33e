//! What a console shows of a kind: its fields, from the schema of its CRD, with a hint how each is edited.

use serde_json::{Value, json};

use crate::{
    facts::words,
    objects::{items, name, text},
};

const SPEC: &str = "urn:alm:descriptor:com.tectonic.ui:";
const STATUS: &str = "urn:alm:descriptor:io.kubernetes.";

/// How deep fields of fields are described: what lies below is a form of its own.
const DEEPEST: usize = 2;

/// Kinds that operators make, and how people call them: (group, plural, version, kind).
const CHILDREN: [(&str, &str, &str, &str); 16] = [
    ("", "configmaps", "v1", "ConfigMap"),
    ("", "persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    ("", "pods", "v1", "Pod"),
    ("", "secrets", "v1", "Secret"),
    ("", "serviceaccounts", "v1", "ServiceAccount"),
    ("", "services", "v1", "Service"),
    ("apps", "daemonsets", "v1", "DaemonSet"),
    ("apps", "deployments", "v1", "Deployment"),
    ("apps", "statefulsets", "v1", "StatefulSet"),
    ("autoscaling", "horizontalpodautoscalers", "v2", "HorizontalPodAutoscaler"),
    ("batch", "cronjobs", "v1", "CronJob"),
    ("batch", "jobs", "v1", "Job"),
    ("discovery.k8s.io", "endpointslices", "v1", "EndpointSlice"),
    // Also for the Operator Framework: it takes a rule about a kind that is not listed for one about an old version of it.
    ("events.k8s.io", "events", "v1", "Event"),
    ("networking.k8s.io", "ingresses", "v1", "Ingress"),
    ("policy", "poddisruptionbudgets", "v1", "PodDisruptionBudget"),
];

/// The versions of a CRD that are served, as a bundle says that it owns them.
pub(super) fn owned(crd: &Value, rules: &[Value]) -> Vec<Value> {
    let kind = text(crd, "/spec/names/kind");
    let children = children(rules);
    let served = items(&crd["spec"]["versions"]).filter(|version| version["served"] == true);
    let describe = |version: &Value| {
        let schema = &version["schema"]["openAPIV3Schema"];
        let description = [text(schema, "/description"), text(schema, "/properties/spec/description")]
            .into_iter()
            .find(|description| !description.is_empty() && !description.starts_with("Auto-generated"))
            .map_or_else(|| format!("{} of this operator", words(kind)), ToOwned::to_owned);
        let mut owned = json!({
            "name": name(crd),
            "kind": kind,
            "version": version["name"],
            "displayName": words(kind),
            "description": description,
        });
        let mut spec = Vec::new();
        fields(&schema["properties"]["spec"], "", 1, &mut |path, field| spec.push(spec_field(path, field)));
        let mut status = Vec::new();
        let top = schema.pointer("/properties/status/properties").and_then(Value::as_object);
        for (path, field) in top.into_iter().flatten() {
            status.push(status_field(path, field));
        }
        for (key, list) in
            [("specDescriptors", spec), ("statusDescriptors", status), ("resources", children.clone())]
        {
            if !list.is_empty() {
                owned[key] = json!(list);
            }
        }
        owned
    };
    served.map(describe).collect()
}

/// What the operator makes, as far as its rules and the list above tell.
fn children(rules: &[Value]) -> Vec<Value> {
    let makes = |rule: &Value| items(&rule["verbs"]).any(|verb| verb == "create" || verb == "*");
    let named = |group: &str, plural: &str| {
        rules.iter().filter(|rule| makes(rule) && rule["resourceNames"].is_null()).any(|rule| {
            items(&rule["apiGroups"]).any(|other| other == group)
                && items(&rule["resources"]).any(|other| other == plural)
        })
    };
    let made = CHILDREN.iter().filter(|(group, plural, ..)| named(group, plural));
    made.map(|(group, plural, version, kind)| {
        // The name tells kinds of one name apart; the core group has no other way to be written.
        let name = if group.is_empty() { String::new() } else { format!("{plural}.{group}") };
        json!({ "kind": kind, "name": name, "version": version })
    })
    .collect()
}

/// Calls for every field that holds a value, with its path.
fn fields(schema: &Value, path: &str, depth: usize, call: &mut impl FnMut(&str, &Value)) {
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let nested = field["properties"].is_object() && key != "resources";
        if nested && depth < DEEPEST {
            fields(field, &path, depth + 1, call);
        } else {
            call(&path, field);
        }
    }
}

fn described(path: &str, field: &Value, descriptors: Vec<String>) -> Value {
    let last = path.rsplit('.').next().unwrap_or(path);
    let mut descriptor = json!({ "path": path, "displayName": words(last) });
    let description = text(field, "/description");
    if !description.is_empty() {
        descriptor["description"] = json!(description);
    }
    if !descriptors.is_empty() {
        descriptor["x-descriptors"] = json!(descriptors);
    }
    descriptor
}

fn spec_field(path: &str, field: &Value) -> Value {
    let last = path.rsplit('.').next().unwrap_or(path);
    let choices: Vec<&str> = items(&field["enum"]).filter_map(Value::as_str).collect();
    let ui = |word: &str| vec![format!("{SPEC}{word}")];
    let lower = last.to_lowercase();
    let descriptors = match text(field, "/type") {
        "integer" if matches!(last, "replicas" | "size") => ui("podCount"),
        "integer" | "number" => ui("number"),
        "boolean" => ui("booleanSwitch"),
        "string" if !choices.is_empty() => {
            choices.iter().map(|choice| format!("{SPEC}select:{choice}")).collect()
        }
        "string" if lower.ends_with("secretname") => {
            vec![format!("{}Secret", STATUS.replace("kubernetes.", "kubernetes:"))]
        }
        "string" if lower.ends_with("password") => ui("password"),
        "string" => ui("text"),
        "object" if last == "resources" => ui("resourceRequirements"),
        _ => Vec::new(),
    };
    described(path, field, descriptors)
}

fn status_field(path: &str, field: &Value) -> Value {
    let descriptors = match path {
        "conditions" => vec![format!("{STATUS}conditions")],
        "phase" => vec![format!("{STATUS}phase")],
        _ if text(field, "/type") == "string" => vec![format!("{SPEC}text")],
        _ => Vec::new(),
    };
    described(path, field, descriptors)
}

/// Images that the fields of the kinds have by default: what must be mirrored where there is no network.
pub(super) fn default_images(crd: &Value) -> Vec<String> {
    let mut images = Vec::new();
    for version in items(&crd["spec"]["versions"]) {
        walk(&version["schema"]["openAPIV3Schema"], &mut images);
    }
    images
}

fn walk(schema: &Value, images: &mut Vec<String>) {
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        if let (true, Some(image)) = (key == "image", field["default"].as_str()) {
            images.push(image.to_owned());
        }
        walk(field, images);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], images);
    }
}
