//! Kubernetes' own types inside of custom ones: recognised by their properties, all the way down, so that nothing that an
//! object may hold is without a field in the type of k8s-openapi.

use std::sync::OnceLock;

use k8s_openapi::{
    api::{batch::v1 as batch, core::v1 as core},
    apimachinery::pkg::apis::meta::v1 as meta,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::schema::{Schema, child, is_int_or_string, normal, preserves, properties, strings, text};

/// A type of k8s-openapi.
pub(super) struct Known {
    /// Its path, from `k8s_openapi` on.
    pub(super) path: &'static str,
    /// The properties without which it is not recognised. All of its own where this is empty.
    marks: &'static [&'static str],
    generate: fn() -> Schema,
    schema: OnceLock<Schema>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Known {
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }

    /// A Condition has a time, and there is none that goes without saying.
    pub(super) fn has_default(&self) -> bool {
        self.name() != "Condition"
    }

    /// What kube's derive makes of it, in normal form.
    pub(super) fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| {
            let mut schema = (self.generate)();
            missing_is_null(&mut schema);
            normal(&schema)
        })
    }

    const fn new(path: &'static str, marks: &'static [&'static str], generate: fn() -> Schema) -> Self {
        Self { path, marks, generate, schema: OnceLock::new() }
    }

    fn is(&self, node: &Schema) -> bool {
        let own = properties(self.schema());
        let given = properties(node);
        let has = |name: &str| given.iter().any(|(given, _)| *given == name);
        let recognised = if self.marks.is_empty() {
            own.len() == given.len() && own.iter().all(|(name, _)| has(name))
        } else {
            self.marks.iter().all(|name| has(name))
        };
        recognised && fits(node, self.schema())
    }
}

fn generate<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.as_object().cloned().unwrap_or_default()
}

/// kube's derive takes every int-or-string that may be missing for one that may be null.
fn missing_is_null(schema: &mut Schema) {
    let required: Vec<String> = strings(schema, "required").into_iter().map(str::to_owned).collect();
    for keyword in ["items", "additionalProperties"] {
        if let Some(Value::Object(below)) = schema.get_mut(keyword) {
            missing_is_null(below);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            let Value::Object(property) = property else { continue };
            missing_is_null(property);
            if is_int_or_string(property) && !required.contains(name) {
                property.insert("nullable".to_owned(), Value::Bool(true));
            }
        }
    }
}

static KNOWN: [Known; 26] = [
    Known::new("k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition", &[], generate::<meta::Condition>),
    Known::new(
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector",
        &[],
        generate::<meta::LabelSelector>,
    ),
    Known::new("k8s_openapi::api::batch::v1::JobTemplateSpec", &[], generate::<batch::JobTemplateSpec>),
    Known::new(
        "k8s_openapi::api::batch::v1::JobSpec",
        &["backoffLimit", "template", "completions"],
        generate::<batch::JobSpec>,
    ),
    Known::new("k8s_openapi::api::core::v1::PodTemplateSpec", &[], generate::<core::PodTemplateSpec>),
    Known::new(
        "k8s_openapi::api::core::v1::PodSpec",
        &["containers", "volumes", "restartPolicy", "nodeSelector"],
        generate::<core::PodSpec>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::Container",
        &["name", "image", "env", "volumeMounts", "livenessProbe"],
        generate::<core::Container>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::Volume",
        &["name", "emptyDir", "configMap", "secret"],
        generate::<core::Volume>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::VolumeMount",
        &["mountPath", "name", "readOnly", "subPath"],
        generate::<core::VolumeMount>,
    ),
    Known::new("k8s_openapi::api::core::v1::EnvVar", &[], generate::<core::EnvVar>),
    Known::new(
        "k8s_openapi::api::core::v1::EnvVarSource",
        &["configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"],
        generate::<core::EnvVarSource>,
    ),
    Known::new("k8s_openapi::api::core::v1::EnvFromSource", &[], generate::<core::EnvFromSource>),
    Known::new(
        "k8s_openapi::api::core::v1::Probe",
        &["exec", "httpGet", "tcpSocket", "periodSeconds"],
        generate::<core::Probe>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::ResourceRequirements",
        &["limits", "requests"],
        generate::<core::ResourceRequirements>,
    ),
    Known::new("k8s_openapi::api::core::v1::Affinity", &[], generate::<core::Affinity>),
    Known::new("k8s_openapi::api::core::v1::Toleration", &[], generate::<core::Toleration>),
    Known::new(
        "k8s_openapi::api::core::v1::TopologySpreadConstraint",
        &["maxSkew", "topologyKey", "whenUnsatisfiable"],
        generate::<core::TopologySpreadConstraint>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::SecurityContext",
        &["capabilities", "privileged", "runAsUser"],
        generate::<core::SecurityContext>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::PodSecurityContext",
        &["fsGroup", "runAsUser", "supplementalGroups"],
        generate::<core::PodSecurityContext>,
    ),
    Known::new(
        "k8s_openapi::api::core::v1::PersistentVolumeClaimSpec",
        &["accessModes", "resources", "storageClassName"],
        generate::<core::PersistentVolumeClaimSpec>,
    ),
    Known::new("k8s_openapi::api::core::v1::ServicePort", &[], generate::<core::ServicePort>),
    Known::new("k8s_openapi::api::core::v1::ObjectReference", &[], generate::<core::ObjectReference>),
    Known::new("k8s_openapi::api::core::v1::SecretKeySelector", &[], generate::<core::SecretKeySelector>),
    Known::new(
        "k8s_openapi::api::core::v1::Lifecycle",
        &["postStart", "preStop"],
        generate::<core::Lifecycle>,
    ),
    Known::new("k8s_openapi::api::core::v1::HostAlias", &[], generate::<core::HostAlias>),
    Known::new(
        "k8s_openapi::api::core::v1::LocalObjectReference",
        &[],
        generate::<core::LocalObjectReference>,
    ),
];

/// The type of k8s-openapi that holds all that an object of this schema may hold, if there is one.
pub(super) fn find(node: &Schema) -> Option<&'static Known> {
    if text(node, "type") != "object" || preserves(node) || child(node, "properties").is_none() {
        return None;
    }
    // A `name` alone is many things; a reference of Kubernetes' own is atomic.
    let reference = text(node, "x-kubernetes-map-type") == "atomic";
    KNOWN.iter().find(|known| (known.name() != "LocalObjectReference" || reference) && known.is(node))
}

/// Whether all that `node` lets through has a place in a type that schemars calls `own`.
fn fits(node: &Schema, own: &Schema) -> bool {
    if is_int_or_string(node) || is_int_or_string(own) {
        return is_int_or_string(node) && is_int_or_string(own);
    }
    let kind = text(node, "type");
    if kind != text(own, "type") || (preserves(node) && !own.is_empty()) {
        return false;
    }
    let narrow = |schema: &Schema| text(schema, "format") == "int32";
    if kind == "integer" && narrow(own) && !narrow(node) {
        return false;
    }
    let times = ["date-time", "byte"];
    if kind == "string" && times.contains(&text(own, "format")) && text(own, "format") != text(node, "format")
    {
        return false;
    }
    let all = properties(node).into_iter().all(|(name, property)| {
        let own = child(own, "properties").and_then(|own| own.get(name)).and_then(Value::as_object);
        own.is_some_and(|own| fits(property, own))
    });
    let below = |keyword: &str| match (child(node, keyword), child(own, keyword)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(node), Some(own)) => fits(node, own),
    };
    all && below("items") && below("additionalProperties")
}

/// What they are called, so that nothing of a module is called the same.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(Known::name)
}
