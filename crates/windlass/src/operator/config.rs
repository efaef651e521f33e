//! The files of a `config/` directory, as kubebuilder lays it out, so that overlays made for that fit.
//!
//! Enters: what [`Operator::manifests`] makes, each object of which has its file. Leaves: paths and contents, and in
//! [`write`] what of a directory on disk differs from them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Operator, Placement};

mod samples;
mod write;
mod yaml;

pub use write::{ConfigChanges, ConfigError};

/// The image in `manager/manager.yaml`, which kustomize replaces: `kustomize edit set image controller=IMAGE`.
const IMAGE: &str = "controller";

/// Why `default` does not hold everything.
const NO_CRDS: &str = "\
# The CRDs are in ../crd and not here: to delete this must not delete every object of their kinds.
# What not every cluster has a use for is beside it, for an overlay or by itself: ../network-policy lets nobody else reach
# the operator, ../prometheus needs the Prometheus operator, ../grafana is a dashboard in a ConfigMap.\n";

/// Where the image comes from.
const SET_IMAGE: &str =
    "# The image is set by --image, or here by: kustomize edit set image controller=IMAGE\n";

/// The folders whose files are generated, and whose left-over generated files are removed.
const FOLDERS: [&str; 11] = [
    "certmanager",
    "crd",
    "crd/bases",
    "default",
    "grafana",
    "manager",
    "network-policy",
    "prometheus",
    "rbac",
    "samples",
    "webhook",
];

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it stands below `config/`, with `/` on every system.
    pub path: String,
    /// What stands in it.
    pub content: String,
}

/// The generated files of a `config/` directory.
///
/// ```no_run
/// # fn main() -> Result<(), windlass::ConfigError> {
/// use windlass::{Operator, Placement};
///
/// let operator = Operator::new("my-operator");
/// let tree = operator.config_tree(&Placement::new("my-operator-system", "my-operator:1.0.0"));
/// for path in tree.write("config".as_ref())?.written {
///     println!("wrote {path}");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ConfigTree {
    command: String,
    files: BTreeMap<String, Document>,
    keep_images: bool,
}

/// What stands in a file.
#[derive(Clone, Debug, Default)]
struct Document {
    comment: &'static str,
    objects: Vec<Value>,
}

impl Operator {
    /// The files of `config/` that run the operator: `kubectl apply -k config/crd`, then `config/default`.
    ///
    /// They hold what [`manifests`](Self::manifests) makes, in kubebuilder's folders.
    pub fn config_tree(&self, placement: &Placement) -> ConfigTree {
        let substituted = Placement { image: format!("{IMAGE}:latest"), ..placement.clone() };
        let mut tree = ConfigTree {
            command: format!("{} manifests --out", self.name()),
            files: BTreeMap::new(),
            keep_images: false,
        };
        let mut resources: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let beside = [self.network_policies(placement), self.monitoring_manifests(placement)].concat();
        for object in self.own_manifests(&substituted).into_iter().chain(beside) {
            let (folder, file) = self.place(&object);
            let listed = resources.entry(folder).or_default();
            if !listed.contains(&file) {
                listed.push(file.clone());
            }
            let named = self.named(vec![object], placement);
            tree.files.entry(format!("{folder}/{file}")).or_default().objects.extend(named);
        }
        let beside = resources.remove("default").unwrap_or_default();
        let parts = ["rbac", "manager", "webhook", "certmanager"].into_iter();
        let parts = parts.filter(|part| resources.contains_key(part)).map(|part| format!("../{part}"));
        let all: Vec<String> = parts.chain(beside).collect();
        tree.kustomize("default", NO_CRDS, json!({ "resources": all }));
        if let Some(resources) = resources.remove("manager") {
            let body = json!({ "resources": resources, "images": [substitution(&placement.image)] });
            tree.kustomize("manager", SET_IMAGE, body);
        }
        for (folder, resources) in resources {
            tree.kustomize(folder, "", json!({ "resources": resources }));
        }
        tree
    }

    /// The folder and the file of an object. Several of one file stand one below the other.
    fn place(&self, object: &Value) -> (&'static str, String) {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let part = text("/metadata/name").strip_prefix(self.name()).unwrap_or_default();
        match text("/kind") {
            "CustomResourceDefinition" => {
                ("crd", format!("bases/{}_{}.yaml", text("/spec/group"), text("/spec/names/plural")))
            }
            "Namespace" | "Deployment" => ("manager", "manager.yaml".into()),
            "ServiceAccount" => ("rbac", "service_account.yaml".into()),
            "Service" if part == "-webhook" => ("webhook", "service.yaml".into()),
            "Service" => ("default", "metrics_service.yaml".into()),
            "Issuer" => ("certmanager", "issuer.yaml".into()),
            "Certificate" => ("certmanager", "certificate-webhook.yaml".into()),
            kind if kind.ends_with("WebhookConfiguration") => ("webhook", "manifests.yaml".into()),
            "PodDisruptionBudget" => ("manager", "pod_disruption_budget.yaml".into()),
            "NetworkPolicy" => ("network-policy", format!("{}.yaml", part.trim_start_matches('-'))),
            "ServiceMonitor" => ("prometheus", "monitor.yaml".into()),
            "PrometheusRule" => ("prometheus", "rules.yaml".into()),
            "ConfigMap" => ("grafana", "dashboard.yaml".into()),
            _ => ("rbac", role_file(part)),
        }
    }
}

/// The file of a role or a binding: `-manager-role` is in `role.yaml`, as controller-gen has it.
fn role_file(part: &str) -> String {
    let (part, suffix) = match part.strip_suffix("-rolebinding") {
        Some(part) => (part, "role_binding"),
        None => (part.strip_suffix("-role").unwrap_or(part), "role"),
    };
    let name = part.strip_suffix("-manager").unwrap_or(part).trim_start_matches('-').replace('-', "_");
    if name.is_empty() { format!("{suffix}.yaml") } else { format!("{name}_{suffix}.yaml") }
}

impl ConfigTree {
    /// The command that writes the files, as their first line names it: `NAME manifests --out` unless set.
    pub fn written_by(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// Adds a generated file, for instance a sample: `samples/cache_v1_memcached.yaml`.
    pub fn file(mut self, path: impl Into<String>, object: Value) -> Self {
        self.files.insert(path.into(), Document { comment: "", objects: vec![object] });
        self
    }

    /// Leaves the image as it is where `manager/kustomization.yaml` is there already.
    pub(super) fn keep_images(mut self, keep: bool) -> Self {
        self.keep_images = keep;
        self
    }

    /// Every file, ordered by path.
    pub fn files(&self) -> Result<Vec<ConfigFile>, ConfigError> {
        self.with_samples(BTreeMap::new())?.rendered()
    }

    /// The same with a kustomization of the samples: those that are generated, and the given ones, by file name.
    fn with_samples(&self, others: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let mut tree = self.clone();
        let mut texts = others;
        for (path, document) in &self.files {
            if let Some(name) = path.strip_prefix("samples/") {
                texts.insert(name.to_owned(), yaml::render(path, &self.command, document)?);
            }
        }
        let listed = samples::listed(&texts);
        if !listed.is_empty() {
            tree.kustomize("samples", "", json!({ "resources": listed }));
        }
        Ok(tree)
    }

    fn rendered(&self) -> Result<Vec<ConfigFile>, ConfigError> {
        let render = |(path, document): (&String, &Document)| {
            Ok(ConfigFile { path: path.clone(), content: yaml::render(path, &self.command, document)? })
        };
        self.files.iter().map(render).collect()
    }

    fn kustomize(&mut self, folder: &str, comment: &'static str, mut body: Value) {
        body["apiVersion"] = "kustomize.config.k8s.io/v1beta1".into();
        body["kind"] = "Kustomization".into();
        let document = Document { comment, objects: vec![body] };
        self.files.insert(format!("{folder}/kustomization.yaml"), document);
    }
}

/// What makes kustomize put this image in.
fn substitution(image: &str) -> Value {
    if let Some((name, digest)) = image.split_once('@') {
        return json!({ "name": IMAGE, "newName": name, "digest": digest });
    }
    // A colon before a slash is that of a registry's port.
    match image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((name, tag)) => json!({ "name": IMAGE, "newName": name, "newTag": tag }),
        None => json!({ "name": IMAGE, "newName": image, "newTag": "latest" }),
    }
}

#[cfg(test)]
mod tests;
