//! A kind as the templates see it: all its versions in one, with every name that code needs.

use serde::Serialize;

use super::is_hub;
use crate::{
    Project,
    project::{Ported, Resource},
};

/// A kind.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "templates write kind.kind, in Kubernetes' own words")]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) module: String,
    pub(crate) group: String,
    pub(crate) api_group: String,
    /// The version that is stored.
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) controller: bool,
    pub(crate) external: bool,
    pub(crate) core: bool,
    /// Whether an external kind has types.
    pub(crate) typed: bool,
    pub(crate) api_version: String,
    /// The type that a reconciler sees.
    pub(crate) type_name: String,
    /// The least spec that Kubernetes takes for a kind of its own.
    pub(crate) core_spec: Option<&'static str>,
    pub(crate) image: Option<String>,
    pub(crate) port: u16,
    pub(crate) run_as_user: Option<u32>,
    pub(crate) finalizer: bool,
    pub(crate) webhook: bool,
    pub(crate) defaulting: bool,
    pub(crate) validation: bool,
    pub(crate) conversion: bool,
    pub(crate) spokes: Vec<Spoke>,
    /// What it had in Go, where it comes from there.
    pub(crate) ported: Option<Go>,
    /// The kinds that its controller owns, as code names them.
    pub(crate) owned: Vec<String>,
    /// What must be imported for them, below the SDK.
    pub(crate) imports: Vec<String>,
    /// The file name of the sample.
    pub(crate) sample: String,
    pub(crate) reconciler: String,
    /// What it does, for the head of its module.
    pub(crate) summary: String,
    /// What it is, for `kubectl explain`.
    pub(crate) doc: String,
}

/// What a kind had in Go: like [`Ported`], with every field there, since templates may not name what is not.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Go {
    pub(crate) conditions: bool,
    pub(crate) observed_generation: bool,
    pub(crate) sample: Option<GoSample>,
}

/// The object in a sample.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GoSample {
    name: String,
    namespace: Option<String>,
}

impl From<&Ported> for Go {
    fn from(ported: &Ported) -> Self {
        let sample = ported.sample.clone();
        Self {
            conditions: ported.conditions,
            observed_generation: ported.observed_generation,
            sample: sample.map(|sample| GoSample { name: sample.name, namespace: sample.namespace }),
        }
    }
}

/// A version of a kind that is converted to and from the stored one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spoke {
    pub(crate) version: String,
    pub(crate) module: String,
    pub(crate) sample: String,
}

/// The least spec of kinds that have one that must be filled in.
fn core_spec(kind: &str) -> Option<&'static str> {
    const POD: &str = r#"{"containers": [{"name": "it", "image": "example.com/it:1"}]}"#;
    const WORKLOAD: &str = r#"{
            "selector": {"matchLabels": {"app": "it"}},
            "template": {
                "metadata": {"labels": {"app": "it"}},
                "spec": {"containers": [{"name": "it", "image": "example.com/it:1"}]},
            },
        }"#;
    const JOB: &str = r#"{
            "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "it", "image": "example.com/it:1"}],
            }},
        }"#;
    match kind {
        "Pod" => Some(POD),
        "Deployment" | "ReplicaSet" | "DaemonSet" => Some(WORKLOAD),
        "Job" => Some(JOB),
        "Service" => Some(r#"{"ports": [{"port": 80}]}"#),
        _ => None,
    }
}

/// The kinds that a controller owned in Go: how code names them, and what it must import for that. Names that mean
/// something else there are written in full.
fn owned(resource: &Resource) -> (Vec<String>, Vec<String>) {
    let paths = resource.ported.as_ref().map(|ported| ported.owns.clone()).unwrap_or_default();
    let name = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let (mut owned, mut imports) = (Vec::new(), Vec::new());
    for path in &paths {
        let taken = name(path) == resource.kind
            || paths.iter().any(|other| other != path && name(other) == name(path));
        match path.strip_prefix("crate::") {
            Some(_) => owned.push(path.clone()),
            None if taken => owned.push(format!("windlass::{path}")),
            None => {
                owned.push(name(path));
                imports.push(path.clone());
            }
        }
    }
    (owned, imports)
}

/// The file name of a version's sample.
pub(crate) fn sample(resource: &Resource) -> String {
    let kind = resource.kind.to_ascii_lowercase();
    let group = if resource.group.is_empty() { String::new() } else { format!("{}_", resource.group) };
    format!("{group}{}_{kind}.yaml", resource.version)
}

impl Kind {
    /// The kinds of a project, in the order in which they came.
    pub(crate) fn all(project: &Project) -> Vec<Self> {
        let hubs = project.resources.iter().filter(|resource| is_hub(project, resource));
        hubs.map(|hub| Self::new(project, hub)).collect()
    }

    fn new(project: &Project, hub: &Resource) -> Self {
        let spokes = project.resources.iter().filter(|other| other.is_same_kind(hub) && *other != hub);
        let spokes: Vec<Spoke> = spokes
            .map(|spoke| Spoke {
                version: spoke.version.clone(),
                module: spoke.version.clone(),
                sample: sample(spoke),
            })
            .collect();
        let (owned, imports) = owned(hub);
        let hooks = hub.webhooks.clone().unwrap_or_default();
        let what = match hub.image {
            Some(_) => "runs replicas of an image behind a Service of the same name.",
            None => "keeps a message in a ConfigMap of the same name.",
        };
        let summary = match hub.image {
            Some(_) => "replicas of an image behind a Service of the same name.",
            None => "a message that is kept in a ConfigMap of the same name.",
        };
        Self {
            module: hub.module(),
            group: hub.group.clone(),
            api_group: hub.api_group(),
            version: hub.version.clone(),
            plural: hub.plural.clone(),
            singular: hub.kind.to_ascii_lowercase(),
            namespaced: hub.api.as_ref().is_none_or(|api| api.namespaced),
            controller: hub.controller,
            external: hub.external,
            core: hub.core,
            typed: hub.from_crd,
            api_version: hub.api_version(),
            type_name: if hub.external && !hub.from_crd { "DynamicObject".into() } else { hub.kind.clone() },
            core_spec: hub.core.then(|| core_spec(&hub.kind)).flatten(),
            image: hub.image.clone(),
            port: hub.port.unwrap_or(80),
            run_as_user: hub.run_as_user,
            finalizer: hub.finalizer,
            webhook: hooks.defaulting || hooks.validation,
            defaulting: hooks.defaulting,
            validation: hooks.validation,
            conversion: !spokes.is_empty(),
            spokes,
            ported: hub.ported.as_ref().map(Go::from),
            owned,
            imports,
            sample: sample(hub),
            reconciler: format!("{}Reconciler", hub.kind),
            summary: summary.into(),
            doc: format!("{} {what}", hub.kind),
            kind: hub.kind.clone(),
        }
    }

    /// The modules of its tests on a cluster.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let mut modules = vec![self.module.clone()];
        modules.extend((self.webhook && self.ported.is_none()).then(|| format!("{}_webhook", self.module)));
        modules.extend(self.spokes.iter().map(|spoke| format!("{}_{}", self.module, spoke.module)));
        modules
    }

    /// Whether random objects go from version to version in its tests. What was written in Go has schemas that are too
    /// odd for that; there, the sample goes.
    pub(crate) fn has_property_tests(&self) -> bool {
        self.conversion && self.ported.is_none()
    }

    /// A path of a template for this kind.
    pub(crate) fn path(&self, template: &str) -> String {
        template.replace("SAMPLE", &self.sample).replace("KIND", &self.module)
    }
}
