//! The files of `config/`, generated from the types and controllers, so that they cannot differ from them.
//!
//! Leaves: paths below the repository's root, and what is to stand in them. `cargo test` compares; `cargo run -p
//! windlass-operators --example manifests` writes.

use k8s_openapi::{
    api::{
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;
use serde_json::{Value, json};
use serde_saphyr::SerializerOptions;

use windlass::Placement;

use crate::{Entry, catalogue, operator};

const HEADER: &str =
    "# Generated from operators/src. Write anew: cargo run -p windlass-operators --example manifests\n";
const NAMESPACE: &str = "windlass-system";
const ROLE: &str = "manager-role";
/// Who the operators run as, and the operator whose certificates and lease the roles name.
pub const ACCOUNT: &str = "controller-manager";

/// A file that cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object could not be turned into JSON.
    #[error("failed to encode {path}")]
    Encode {
        /// The file.
        path: String,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
    /// A document could not be turned into YAML.
    #[error("failed to write YAML for {path}")]
    Yaml {
        /// The file.
        path: String,
        /// The serializer's error.
        #[source]
        source: Box<serde_saphyr::ser_error::Error>,
    },
}

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Where it stands, from the repository's root.
    pub path: String,
    /// What stands in it.
    pub content: String,
}

/// Every generated file, ordered by path.
pub fn manifests() -> Result<Vec<Manifest>, Error> {
    let all = operator(ACCOUNT, catalogue());
    let image = concat!("windlass-operators:", env!("CARGO_PKG_VERSION"));
    let made = all.manifests(&Placement { replicas: 2, ..Placement::new(NAMESPACE, image) });
    let mut files = Vec::new();
    let mut bases = Vec::new();
    for crd in made.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let text = |path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let base = format!("bases/{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"));
        files.push(manifest(&format!("config/crd/{base}"), crd)?);
        bases.push(base);
    }
    files.push(kustomization("config/crd", &bases)?);
    files.extend(rbac(all.rbac())?);
    files.extend(manager(&made)?);
    let mut samples = Vec::new();
    for entry in catalogue() {
        let sample = sample_name(entry.name, entry.api_version);
        files.push(manifest_of(&format!("config/samples/{sample}"), entry.sample())?);
        samples.push(sample);
        // Not among the resources: they are the same objects in other words.
        for older in entry.older_samples() {
            files.push(older_sample(entry, older)?);
        }
    }
    files.push(kustomization("config/samples", &samples)?);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// `webserver_v1_webserver.yaml`: the first word of the group, the version, the kind.
fn sample_name(name: &str, api_version: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group = group.split('.').next().unwrap_or(group);
    format!("{group}_{version}_{name}.yaml")
}

fn older_sample(entry: &Entry, sample: serde_json::Result<Value>) -> Result<Manifest, Error> {
    let sample = sample.map_err(|source| Error::Encode { path: "config/samples".into(), source })?;
    let api_version = sample["apiVersion"].as_str().unwrap_or_default();
    let name = sample_name(entry.name, api_version);
    manifest(&format!("config/samples/{name}"), &sample)
}

/// Who the operators run as, and what they may do.
fn rbac(rules: Vec<k8s_openapi::api::rbac::v1::PolicyRule>) -> Result<Vec<Manifest>, Error> {
    let named = |name: &str, namespace: Option<&str>| ObjectMeta {
        name: Some(name.into()),
        namespace: namespace.map(Into::into),
        ..ObjectMeta::default()
    };
    let mut namespace = Namespace { metadata: named(NAMESPACE, None), ..Namespace::default() };
    let strict = ("pod-security.kubernetes.io/enforce".to_owned(), "restricted".to_owned());
    namespace.metadata.labels.get_or_insert_default().extend([strict]);
    let account = ServiceAccount { metadata: named(ACCOUNT, Some(NAMESPACE)), ..ServiceAccount::default() };
    let role = ClusterRole { metadata: named(ROLE, None), rules: Some(rules), aggregation_rule: None };
    let binding = ClusterRoleBinding {
        metadata: named("manager-rolebinding", None),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "ClusterRole".into(),
            name: ROLE.into(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: ACCOUNT.into(),
            namespace: Some(NAMESPACE.into()),
            api_group: None,
        }]),
    };
    let files = ["namespace.yaml", "service_account.yaml", "role.yaml", "role_binding.yaml"];
    Ok(vec![
        manifest("config/rbac/namespace.yaml", &namespace)?,
        manifest("config/rbac/service_account.yaml", &account)?,
        manifest("config/rbac/role.yaml", &role)?,
        manifest("config/rbac/role_binding.yaml", &binding)?,
        kustomization("config/rbac", &files)?,
    ])
}

/// The Deployment that runs the operators, what it needs to elect a leader, to show its metrics and to be asked as a
/// webhook, and all but the CRDs in one.
///
/// The CRDs are not in `config/default`: to delete that must not delete every object of their kinds.
fn manager(made: &[Value]) -> Result<Vec<Manifest>, Error> {
    let mut files = folder(
        made,
        "config/manager",
        &[
            ("Deployment", "", "manager.yaml"),
            ("Role", "-leader-election", "leader_election_role.yaml"),
            ("RoleBinding", "-leader-election", "leader_election_role_binding.yaml"),
        ],
    )?;
    files.extend(folder(
        made,
        "config/webhook",
        &[
            ("Service", "-webhook", "service.yaml"),
            ("ClusterRole", "-webhook-certificates", "cluster_role.yaml"),
            ("ClusterRoleBinding", "-webhook-certificates", "cluster_role_binding.yaml"),
            ("Role", "-webhook-certificates", "role.yaml"),
            ("RoleBinding", "-webhook-certificates", "role_binding.yaml"),
            ("MutatingWebhookConfiguration", "", "mutating.yaml"),
            ("ValidatingWebhookConfiguration", "", "validating.yaml"),
        ],
    )?);
    files.extend(folder(
        made,
        "config/metrics",
        &[
            ("Service", "-metrics", "service.yaml"),
            ("ClusterRole", "-metrics-auth", "auth_role.yaml"),
            ("ClusterRoleBinding", "-metrics-auth", "auth_role_binding.yaml"),
            ("ClusterRole", "-metrics-reader", "reader_role.yaml"),
        ],
    )?);
    let folders = ["../rbac", "../manager", "../metrics", "../webhook"];
    files.push(kustomization("config/default", &folders)?);
    Ok(files)
}

/// A folder of those objects that are there, found by kind and the end of their name.
fn folder(made: &[Value], path: &str, objects: &[(&str, &str, &str)]) -> Result<Vec<Manifest>, Error> {
    let (mut files, mut names) = (Vec::new(), Vec::new());
    for (kind, suffix, file) in objects {
        let name = format!("{ACCOUNT}{suffix}");
        let same = |object: &&Value| object["kind"] == *kind && object["metadata"]["name"] == name.as_str();
        if let Some(object) = made.iter().find(same) {
            files.push(manifest(&format!("{path}/{file}"), object)?);
            names.push(*file);
        }
    }
    files.push(kustomization(path, &names)?);
    Ok(files)
}

fn kustomization<S: Serialize>(folder: &str, resources: &[S]) -> Result<Manifest, Error> {
    let body = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    manifest(&format!("{folder}/kustomization.yaml"), &body)
}

fn manifest(path: &str, object: &impl Serialize) -> Result<Manifest, Error> {
    manifest_of(path, serde_json::to_value(object))
}

fn manifest_of(path: &str, object: serde_json::Result<Value>) -> Result<Manifest, Error> {
    let mut object = object.map_err(|source| Error::Encode { path: path.into(), source })?;
    tidy(&mut object);
    let yaml = serde_saphyr::to_string_with_options(&object, options())
        .map_err(|source| Error::Yaml { path: path.into(), source: Box::new(source) })?;
    Ok(Manifest { path: path.into(), content: format!("{HEADER}{yaml}") })
}

/// Removes what a person would not write: nulls, and the `.0` that the types give to whole numbers.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) if number.is_f64() => {
            // Up to 2^53 every whole number has an exact float.
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}

/// YAML as `kubectl` and controller-gen write it.
fn options() -> SerializerOptions {
    serde_saphyr::ser_options! { prefer_block_scalars: false }
}
