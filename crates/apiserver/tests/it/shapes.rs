//! Objects of every built-in kind, made from the recorded schema: with one list or map as long as one likes, or one
//! number as large.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_apiserver::schema::KUBERNETES;

use crate::server::Server;

/// A kind: where its objects are made, what they look like.
pub(crate) struct Shape {
    pub(crate) kind: String,
    pub(crate) path: String,
    /// An object that is accepted, as far as that can be had.
    pub(crate) specimen: Value,
    definition: String,
}

/// A list or a map inside of a kind: the way to it, and what it holds.
pub(crate) struct Field {
    way: Vec<Step>,
    is_map: bool,
    items: Value,
}

#[derive(Clone)]
enum Step {
    Key(String, Value),
    Item,
}

/// What the entries of a grown list look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Variant {
    /// Each is different, with what must be there and no more.
    Different,
    /// All are the same.
    Same,
    /// Each is different and has a value in every simple field.
    Full,
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Different, Self::Same, Self::Full];
}

type Definitions = BTreeMap<&'static str, Value>;

fn definitions() -> &'static Definitions {
    static KNOWN: std::sync::LazyLock<Definitions> = std::sync::LazyLock::new(|| {
        let line = |line: &'static str| {
            let (name, schema) = line.split_once(' ').unwrap();
            (name, serde_json::from_str(schema).unwrap())
        };
        KUBERNETES.lines().map(line).collect()
    });
    &KNOWN
}

/// A schema with its references followed, and the name that it was reached by.
fn resolved(schema: &Value) -> (&Value, Option<&str>) {
    let reference = schema.get("$ref").or_else(|| schema["allOf"].get(0).and_then(|inner| inner.get("$ref")));
    match reference.and_then(Value::as_str).and_then(|text| text.rsplit('/').next()) {
        Some(name) => (&definitions()[name], Some(name)),
        None => (schema, None),
    }
}

/// All kinds that can be created.
pub(crate) async fn built_in(server: &Server) -> Vec<Shape> {
    let mut versions = vec![("/api/v1".to_owned(), String::new(), "v1".to_owned())];
    for group in server.get("/apis").await.expect_success()["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let place = version["groupVersion"].as_str().unwrap();
            let (group, version) = place.split_once('/').unwrap();
            versions.push((format!("/apis/{place}"), group.to_owned(), version.to_owned()));
        }
    }
    let mut shapes = Vec::new();
    for (root, group, version) in versions {
        for resource in server.get(&root).await.expect_success()["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let creates = resource["verbs"].as_array().unwrap().contains(&json!("create"));
            let kind = resource["kind"].as_str().unwrap();
            if !creates || name.contains('/') || kind == "Binding" {
                continue;
            }
            let id = json!({"group": group, "kind": kind, "version": version});
            let found = definitions().iter().find(|(_, schema)| {
                schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|ids| ids.contains(&id))
            });
            let Some((definition, _)) = found else { continue };
            let namespaced = resource["namespaced"] == true;
            let inside = if namespaced { "/namespaces/default" } else { "" };
            shapes.push(Shape {
                kind: kind.to_owned(),
                path: format!("{root}{inside}/{name}"),
                specimen: specimen(kind, &group, &version),
                definition: (*definition).to_owned(),
            });
        }
    }
    shapes
}

impl Field {
    pub(crate) fn path(&self) -> String {
        path_of(&self.way)
    }
}

impl NumberField {
    pub(crate) fn path(&self) -> String {
        path_of(&self.way)
    }
}

fn path_of(way: &[Step]) -> String {
    way.iter().fold(String::new(), |path, step| match step {
        Step::Key(key, _) => format!("{path}.{key}"),
        Step::Item => format!("{path}[0]"),
    })
}

impl Shape {
    /// Every list and map of the kind.
    pub(crate) fn collections(&self) -> Vec<Field> {
        let mut found = Vec::new();
        let schema = &definitions()[self.definition.as_str()];
        walk(schema, &mut Vec::new(), &mut vec![self.definition.clone()], &mut found);
        found
    }

    /// The specimen with `length` entries in this field.
    pub(crate) fn with(&self, field: &Field, variant: Variant, length: usize) -> Value {
        let mut object = self.specimen.clone();
        let place = place_of(&mut object, &field.way);
        let entry = |number: usize| match variant {
            Variant::Different => value(&field.items, number, true, 0),
            Variant::Same => value(&field.items, 0, true, 0),
            Variant::Full => value(&field.items, number, false, 0),
        };
        *place = if field.is_map {
            Value::Object((0..length).map(|number| (format!("k{number}"), entry(number))).collect())
        } else {
            Value::Array((0..length).map(entry).collect())
        };
        object
    }
}

/// The place at the end of a way, which is made where it is not there.
fn place_of<'a>(object: &'a mut Value, way: &[Step]) -> &'a mut Value {
    let mut place = object;
    for step in way {
        place = match step {
            Step::Key(key, schema) => {
                if !place.is_object() {
                    *place = json!({});
                }
                let fields = place.as_object_mut().unwrap();
                fields.entry(key.clone()).or_insert_with(|| value(schema, 0, true, 0))
            }
            Step::Item => {
                if place.as_array().is_none_or(Vec::is_empty) {
                    *place = json!([{}]);
                }
                &mut place[0]
            }
        };
    }
    place
}

fn walk(schema: &Value, way: &mut Vec<Step>, names: &mut Vec<String>, found: &mut Vec<Field>) {
    let (schema, _) = resolved(schema);
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        if way.is_empty() && matches!(key.as_str(), "apiVersion" | "kind") || key == "managedFields" {
            continue;
        }
        let (inner, name) = resolved(field);
        // A type inside of itself is as its outer one.
        if name.is_some_and(|name| names.iter().any(|known| known == name)) {
            continue;
        }
        names.extend(name.map(str::to_owned));
        way.push(Step::Key(key.clone(), field.clone()));
        if let Some(items) = inner.get("items") {
            found.push(Field { way: way.clone(), is_map: false, items: items.clone() });
            let known = resolved(items).1.map(str::to_owned);
            if !known.as_ref().is_some_and(|name| names.contains(name)) {
                let depth = names.len();
                names.extend(known);
                way.push(Step::Item);
                walk(items, way, names, found);
                way.pop();
                names.truncate(depth);
            }
        } else if let Some(items) = inner.get("additionalProperties").filter(|items| items.is_object()) {
            found.push(Field { way: way.clone(), is_map: true, items: items.clone() });
        } else {
            walk(inner, way, names, found);
        }
        way.pop();
        if name.is_some() {
            names.pop();
        }
    }
}

/// A value of a type: with what is required, or with all of its simple fields.
fn value(schema: &Value, number: usize, lean: bool, depth: usize) -> Value {
    let (schema, name) = resolved(schema);
    let name = name.unwrap_or_default();
    if name.ends_with("Quantity") {
        return json!(format!("{}", number + 1));
    }
    if name.ends_with("IntOrString") {
        return json!(number % 60_000 + 1);
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("date-time")) => json!("2026-01-01T00:00:00Z"),
        (Some("string"), Some("byte")) => json!("YQ=="),
        (Some("string"), _) => json!(format!("v{number}")),
        (Some("integer" | "number"), _) => json!(number % 60_000 + 1),
        (Some("boolean"), _) => json!(true),
        (Some("array"), _) if depth < 3 && !lean => json!([value(&schema["items"], number, true, depth + 1)]),
        (Some("array"), _) => json!([]),
        _ => object(schema, number, lean, depth),
    }
}

fn object(schema: &Value, number: usize, lean: bool, depth: usize) -> Value {
    /// Fields by which entries of a list are told apart.
    const KEYS: [&str; 12] = [
        "name",
        "key",
        "port",
        "containerPort",
        "ip",
        "path",
        "type",
        "uid",
        "mountPath",
        "devicePath",
        "topologyKey",
        "value",
    ];
    let mut fields = Map::new();
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
        let simple = resolved(field).0.get("properties").is_none();
        let wanted = required || (simple && (KEYS.contains(&key.as_str()) || !lean));
        if wanted && depth < 6 {
            fields.insert(key.clone(), value(field, number, lean, depth + 1));
        }
    }
    Value::Object(fields)
}

fn pod() -> Value {
    json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": pod()})
}

/// An object of the kind that is accepted.
fn specimen(kind: &str, group: &str, version: &str) -> Value {
    let selector = json!({"matchLabels": {"app": "x"}});
    let mut object = match kind {
        "Pod" => json!({"spec": pod()}),
        "PodTemplate" => json!({"template": template()}),
        "ReplicationController" => json!({"spec": {"selector": {"app": "x"}, "template": template()}}),
        "Deployment" | "ReplicaSet" | "DaemonSet" => {
            json!({"spec": {"selector": selector, "template": template()}})
        }
        "StatefulSet" => json!({"spec": {"serviceName": "s", "selector": selector, "template": template()}}),
        "Job" | "CronJob" => {
            let mut template = template();
            template["spec"]["restartPolicy"] = json!("Never");
            let job = json!({"template": template});
            match kind {
                "Job" => json!({"spec": job}),
                _ => json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
            }
        }
        "Service" => json!({"spec": {"ports": [{"port": 80}]}}),
        "Event" => json!({
            "metadata": {"namespace": "default"}, "involvedObject": {"namespace": "default"},
            "regarding": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "a",
            "reason": "r", "type": "Normal", "reportingController": "a.b/c", "reportingComponent": "a.b/c",
            "reportingInstance": "i",
        }),
        "PersistentVolumeClaim" => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}),
        "PersistentVolume" => json!({"spec": {
            "capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}),
        "HorizontalPodAutoscaler" => json!({"spec": {
            "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}}),
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": 1, "selector": selector}}),
        "Ingress" => json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}),
        "IngressClass" => json!({"spec": {"controller": "a.b/c"}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
        "StorageClass" => json!({"provisioner": "a.b/c"}),
        "PriorityClass" => json!({"value": 1}),
        "RuntimeClass" => json!({"handler": "a"}),
        "CSIDriver" => json!({"spec": {}}),
        "CSINode" => json!({"spec": {"drivers": []}}),
        "VolumeAttachment" => json!({"spec": {
            "attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
        "APIService" => json!({"spec": {
            "group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}}),
        "CertificateSigningRequest" => json!({"spec": {
            "request": "eA==", "usages": ["client auth"], "signerName": "a.b/c"}}),
        "PodCertificateRequest" => json!({"spec": {
            "signerName": "a.b/c", "podName": "p", "podUID": "u", "serviceAccountName": "a",
            "serviceAccountUID": "u", "nodeName": "n", "nodeUID": "u", "stubPKCS10Request": "eA=="}}),
        "DeviceTaintRule" => json!({"spec": {"taint": {"key": "a", "effect": "NoSchedule"}}}),
        "CSIStorageCapacity" => json!({"storageClassName": "a"}),
        "VolumeAttributesClass" => json!({"driverName": "a", "parameters": {"a": "b"}}),
        "ServiceCIDR" => json!({"spec": {"cidrs": ["192.168.0.0/24"]}}),
        "ResourceSlice" => json!({"spec": {
            "driver": "a", "nodeName": "b", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}),
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "a"}}}),
        "PriorityLevelConfiguration" => json!({"spec": {
            "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
        "StorageVersionMigration" => {
            json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}}})
        }
        "Lease" => json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 1}}),
        "CustomResourceDefinition" => {
            return json!({
                "metadata": {"name": "things.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object"}}}],
                },
            });
        }
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => json!({"spec": {
            "user": "a", "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}}),
        _ => json!({}),
    };
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    let name = if kind == "APIService" { format!("{version}.{group}") } else { "x".to_owned() };
    object["metadata"]["name"] = json!(name);
    object
}

/// A field that holds a number: the way to it, and the numbers at the ends of what can be written there.
pub(crate) struct NumberField {
    way: Vec<Step>,
    pub(crate) extremes: Vec<Value>,
}

impl Shape {
    /// Every field of the kind that holds a number, in the body or in what lies below it.
    pub(crate) fn numbers(&self) -> Vec<NumberField> {
        let mut found = Vec::new();
        let schema = &definitions()[self.definition.as_str()];
        find_numbers(schema, &mut Vec::new(), &mut vec![self.definition.clone()], &mut found);
        found
    }

    /// The specimen with this number in the field.
    pub(crate) fn with_number(&self, field: &NumberField, number: &Value) -> Value {
        let mut object = self.specimen.clone();
        *place_of(&mut object, &field.way) = number.clone();
        object
    }
}

fn extremes(schema: &Value, name: &str) -> Option<Vec<Value>> {
    let whole =
        [0, -1, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN].map(|number| json!(number));
    let amounts = ["0", "-1", "9223372036854775807", "1e300", "-1e300", "1n"].map(|amount| json!(amount));
    match (name.ends_with("Quantity"), schema["type"].as_str()) {
        (true, _) => Some(amounts.into()),
        (false, Some("integer")) => Some(whole.into()),
        (false, Some("number")) => Some(whole.into_iter().chain([json!(1e300), json!(-1e300)]).collect()),
        _ if name.ends_with("IntOrString") => {
            let percent = ["-1%", "0%", "100%", "9223372036854775807%"].map(|text| json!(text));
            Some(whole.into_iter().chain(percent).collect())
        }
        _ => None,
    }
}

fn find_numbers(schema: &Value, way: &mut Vec<Step>, names: &mut Vec<String>, found: &mut Vec<NumberField>) {
    let (schema, name) = resolved(schema);
    if let Some(extremes) = extremes(schema, name.unwrap_or_default()) {
        found.push(NumberField { way: way.clone(), extremes });
        return;
    }
    let depth = names.len();
    if let Some(name) = name.filter(|_| !way.is_empty()) {
        // A type inside of itself is as its outer one, and the template of Pods the same in all kinds that have one.
        let elsewhere = name.ends_with(".PodTemplateSpec") && !names[0].ends_with(".PodTemplate");
        if elsewhere || names.iter().any(|known| known == name) {
            return;
        }
        names.push(name.to_owned());
    }
    if let Some(items) = schema.get("items") {
        way.push(Step::Item);
        find_numbers(items, way, names, found);
        way.pop();
    } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        way.push(Step::Key("memory".into(), values.clone()));
        find_numbers(values, way, names, found);
        way.pop();
    }
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        if key != "managedFields" {
            way.push(Step::Key(key.clone(), field.clone()));
            find_numbers(field, way, names, found);
            way.pop();
        }
    }
    names.truncate(depth);
}
