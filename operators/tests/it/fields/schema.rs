//! The fields of a kind's spec, from its schema, and a value for each.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use windlass_operators::Entry;

/// An optional field and a value that it is set to.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The path below `spec`, with dots.
    pub(super) path: String,
    /// Where the value is put: the field itself, or the object around it that is not there yet.
    place: String,
    value: Value,
    /// Whether this is an object in which nothing optional is set: a rule may ask for more.
    pub(super) bare: bool,
}

impl Case {
    pub(super) fn set_in(&self, spec: &mut Value) {
        put(spec, &self.place, self.value.clone());
        for (path, value) in companions(&self.path) {
            put(spec, path, value);
        }
    }
}

/// A number and its bounds.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) path: String,
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    /// What its parents have to have beside it.
    around: Value,
}

impl Number {
    pub(super) fn set_in(&self, spec: &mut Value, value: i64) {
        if let Some((parent, _)) =
            self.path.rsplit_once('.').filter(|(parent, _)| get(spec, parent).is_null())
        {
            put(spec, parent, self.around.clone());
        }
        put(spec, &self.path, value.into());
        // A rule between two fields is not what is tested here.
        if self.path == "autoscaling.min" {
            put(spec, "autoscaling.max", value.clamp(1, 10_000).into());
        }
        if self.path == "minReadySeconds" {
            put(spec, "progressDeadlineSeconds", 604_800.into());
        }
    }
}

/// Fields that can be set once: a rule of the schema says so.
const IMMUTABLE: &[&str] =
    &["database.storage.storageClassName", "database.bootstrap", "database.backup.target"];

/// What a field needs beside it.
fn companions(path: &str) -> Vec<(&'static str, Value)> {
    match path {
        "volumeMounts" => vec![("volumes", json!([{"name": "data", "emptyDir": {}}]))],
        _ => Vec::new(),
    }
}

/// A value for a field whose type says too little; `None` for one that can be made from its schema.
fn known(path: &str) -> Option<Value> {
    let probe = json!({"httpGet": {"path": "/", "port": 80}});
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
    let name = path.rsplit('.').next().unwrap();
    Some(match name {
        "image" => json!("example/other:1"),
        "imagePullSecrets" => json!([{"name": "registry"}]),
        "resources" => json!({"requests": {"cpu": "10m"}}),
        "nodeSelector" => json!({"kubernetes.io/os": "linux"}),
        "tolerations" => json!([{"key": "k", "operator": "Exists"}]),
        "serviceAccountName" => json!("default"),
        "securityContext" | "containerSecurityContext" | "podSecurityContext" => json!({"runAsUser": 1000}),
        "annotations" | "podAnnotations" => json!({"example.com/note": "x"}),
        "affinity" => json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": term},
        ]}}),
        "topologySpreadConstraints" => json!([{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }]),
        "env" => json!([{"name": "A", "value": "b"}]),
        "envFrom" => json!([{"configMapRef": {"name": "absent", "optional": true}}]),
        "command" | "args" => json!(["sh"]),
        "readiness" | "liveness" | "startup" => probe,
        "strategy" => json!({"type": "Recreate"}),
        "behavior" => json!({"scaleDown": {"stabilizationWindowSeconds": 60}}),
        "minAvailable" | "maxUnavailable" => json!("50%"),
        "volumes" => json!([{"name": "data", "emptyDir": {}}]),
        "volumeMounts" => json!([{"name": "data", "mountPath": "/data"}]),
        "ports" => json!([{"name": "admin", "port": 8081}]),
        "domain" => json!("other.example.com"),
        "domains" => json!(["more.example.com"]),
        "path" => json!("/shop"),
        "parentRefs" => json!([{"name": "edge"}]),
        "content" => json!({"index.html": "hello"}),
        "maxItemSize" => json!("2m"),
        "schedule" => json!("0 3 * * *"),
        "timeZone" => json!("Europe/Rome"),
        "parameters" => json!({"work_mem": "8MB"}),
        "port" | "targetPort" => json!(8081),
        _ => return None,
    })
}

/// A value for a field, from its schema.
pub(super) fn example(path: &str, schema: &Value) -> Value {
    if let Some(value) = known(path) {
        return value;
    }
    if let Some(words) = schema["enum"].as_array() {
        // The first is the default, more often than not.
        return words.last().unwrap().clone();
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(schema["default"] != true),
        Some("integer") => json!(schema["minimum"].as_f64().map_or(1, |least| least as i64).max(3)),
        Some("string") if schema["pattern"].is_null() => json!("other"),
        Some("object") if schema["properties"].is_object() => required(path, schema),
        other => panic!("{path} is of type {other:?}: say in `known` what it may be"),
    }
}

/// An object with the fields that it must have.
fn required(path: &str, schema: &Value) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = names
        .iter()
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), example(&join(path, name), &schema["properties"][name])));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// The optional fields of a kind, those of its own types one by one.
pub(super) fn cases(crds: &[CustomResourceDefinition], entry: &Entry) -> Vec<Case> {
    let mut found = Vec::new();
    walk("", &spec_of(crds, entry), &mut |path, schema, optional| {
        let own = schema["properties"].is_object() && known(path).is_none();
        if IMMUTABLE.iter().any(|fixed| format!("{}.{path}", entry.name).starts_with(fixed)) {
            return;
        }
        if optional {
            let (path, place) = (path.to_owned(), path.to_owned());
            let value = example(&path, schema);
            found.push(Case { path, place, value, bare: own });
        }
    });
    // A field of an object that is not there comes with what that object must have, and so on up to the spec.
    let plain = found.clone();
    for case in &mut found {
        while let Some((parent, name)) = case.place.clone().rsplit_once('.') {
            let Some(around) = plain.iter().find(|other| other.path == parent) else { break };
            let mut whole = around.value.clone();
            whole[name] = case.value.take();
            (case.value, case.place) = (whole, parent.to_owned());
        }
    }
    found
}

/// The numbers of a kind, of its own types.
pub(super) fn numbers(crds: &[CustomResourceDefinition], entry: &Entry) -> Vec<Number> {
    let spec = spec_of(crds, entry);
    let mut found = Vec::new();
    walk("", &spec, &mut |path, schema, _| {
        if schema["type"] != "integer" {
            return;
        }
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let mut around = &spec;
        for part in parent.split('.').filter(|part| !part.is_empty()) {
            around = &around["properties"][part];
        }
        let around = if parent.is_empty() { json!({}) } else { required(parent, around) };
        let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        let whole = |bound: f64| bound as i64;
        found.push(Number { path: path.to_owned(), least: least.map(whole), most: most.map(whole), around });
    });
    found
}

/// Calls `visit` with every field of the kind's own types: its path, its schema, and whether it may be left out.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value, bool)) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = join(path, name);
        visit(&path, below, !required.contains(&json!(name)));
        // What is Kubernetes' own type has a value in `known`.
        if known(&path).is_none() {
            walk(&path, below, visit);
        }
    }
}

fn spec_of(crds: &[CustomResourceDefinition], entry: &Entry) -> Value {
    let (group, version) = entry.api_version.split_once('/').unwrap();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == entry.kind && crd.spec.group == group).unwrap();
    let version = crd.spec.versions.iter().find(|it| it.name == version).unwrap();
    let schema = serde_json::to_value(version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap());
    schema.unwrap()["properties"]["spec"].clone()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn get<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, part| &value[part])
}

fn put(value: &mut Value, path: &str, new: Value) {
    let mut place = value;
    for part in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = new;
}
