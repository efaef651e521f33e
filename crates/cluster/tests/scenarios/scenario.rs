//! A scenario as it is written: a name, the nodes, and the steps. YAML enters, values leave.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// What is played on both sides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// What it is about, where the name does not say it.
    #[serde(default)]
    pub(crate) about: String,
    /// How many nodes there are, all alike: `windlass-1` and so on.
    #[serde(default = "one")]
    pub(crate) nodes: usize,
    /// Whether it changes nodes, so that nothing else may be played beside it.
    #[serde(default)]
    pub(crate) alone: bool,
    /// Whether it is compared where Pods are: the scheduler must have no choice then.
    #[serde(default)]
    pub(crate) placement: bool,
    /// Kinds to look at, beside those of the steps and what follows from them.
    #[serde(default)]
    pub(crate) watch: Vec<String>,
    /// Objects outside of the namespace to look at in the end: `Node/windlass-1`.
    #[serde(default)]
    pub(crate) show: Vec<String>,
    /// Lines that may differ, by how they begin, and why.
    #[serde(default)]
    pub(crate) explained: BTreeMap<String, String>,
    pub(crate) steps: Vec<Step>,
}

/// One step. An object is `Kind/name`, or `Kind/?label=value` for the first of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    pub(crate) create: Option<String>,
    pub(crate) patch: Option<String>,
    pub(crate) delete: Option<String>,
    pub(crate) evict: Option<String>,
    pub(crate) scale: Option<String>,
    pub(crate) wait: Option<String>,
    /// A new tag for the image of a workload.
    pub(crate) image: Option<String>,
    /// Seconds.
    pub(crate) sleep: Option<u64>,

    /// What is created or patched, merged over what its kind begins with.
    pub(crate) with: Option<Value>,
    /// The same for its spec, its labels and its annotations.
    pub(crate) spec: Option<Value>,
    pub(crate) labels: Option<Value>,
    pub(crate) annotations: Option<Value>,
    /// The subresource to patch.
    pub(crate) subresource: Option<String>,
    pub(crate) replicas: Option<i64>,
    pub(crate) tag: Option<String>,
    pub(crate) propagation: Option<String>,
    pub(crate) grace: Option<u32>,

    /// What is waited for: values by their paths, `condition.Ready` for a condition's status.
    #[serde(rename = "for")]
    pub(crate) until: BTreeMap<String, Value>,
    /// How many objects must be so.
    pub(crate) count: Option<usize>,
    /// Whether the object must be gone.
    pub(crate) gone: bool,
    /// For how many seconds is waited at most.
    pub(crate) within: Option<u64>,
}

fn one() -> usize {
    1
}

pub(crate) fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "scenarios"].iter().collect()
}

/// The names of all files of scenarios.
pub(crate) fn files() -> Vec<String> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut names: Vec<String> =
        scenarios.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The scenarios of a file.
pub(crate) fn read(file: &str) -> Vec<Scenario> {
    let text = std::fs::read_to_string(directory().join(format!("{file}.yaml"))).unwrap();
    let scenarios: Vec<Scenario> =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}.yaml: {error}"));
    scenarios
        .into_iter()
        .map(|mut scenario| {
            scenario.alone |= scenario.nodes > 1;
            scenario
        })
        .collect()
}

/// All of them.
pub(crate) fn all() -> Vec<Scenario> {
    files().iter().flat_map(|file| read(file)).collect()
}
