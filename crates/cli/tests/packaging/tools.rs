//! The programs that judge, the command that is judged, and objects compared as sets.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// What tells objects apart.
pub(crate) type Key = (String, String, String);

/// A folder that is gone when this is dropped.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("windlass-packaging-").tempdir().unwrap())
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }
}

/// One of the programs, with nothing of the user's in its environment.
pub(crate) fn judge(name: &str) -> Command {
    let tools = std::env::var_os("WINDLASS_PACKAGING_TOOLS");
    let tools = tools.expect("the programs must be built: run `cargo xtask packaging test`");
    let mut command = Command::new(Path::new(&tools).join(name));
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaging-home");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.join(variable));
    }
    command.env_remove("KUBECONFIG");
    command
}

/// Runs to the end, and fails with all that was said.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub(crate) fn windlass() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env_remove("RUST_LOG");
    command
}

/// Every object of a stream. What is asked for once must be there once.
pub(crate) fn objects(text: &str) -> BTreeMap<Key, Value> {
    let mut found = BTreeMap::new();
    for object in serde_saphyr::from_multiple::<Value>(text).unwrap() {
        if object.is_null() {
            continue;
        }
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        assert!(found.insert(key.clone(), object).is_none(), "{key:?} is there twice");
    }
    found
}

/// Fails with the names of what differs.
pub(crate) fn assert_same(left: &BTreeMap<Key, Value>, right: &BTreeMap<Key, Value>, what: &str) {
    let keys = left.keys().chain(right.keys());
    let differ: std::collections::BTreeSet<&Key> =
        keys.filter(|key| left.get(key) != right.get(key)).collect();
    assert!(differ.is_empty(), "{what}: {differ:#?}");
    assert!(left.len() > 5, "{what}: only {} objects", left.len());
}

/// What kustomize makes of a `config/`: the CRDs, and everything else.
pub(crate) fn kustomized(config: &Path) -> BTreeMap<Key, Value> {
    let mut all = objects(&run(judge("kustomize").arg("build").arg(config.join("crd"))));
    all.extend(objects(&run(judge("kustomize").arg("build").arg(config.join("default")))));
    all
}

/// What Helm makes of a chart, without the annotation that keeps CRDs.
pub(crate) fn rendered(chart: &Path, namespace: &str, more: &[&str]) -> BTreeMap<Key, Value> {
    let mut helm = judge("helm");
    helm.args(["template", "release"]).arg(chart).args(["--namespace", namespace, "--skip-tests"]).args(more);
    let mut all = objects(&run(&mut helm));
    for ((kind, ..), object) in &mut all {
        if kind == "CustomResourceDefinition" {
            let metadata = object["metadata"].as_object_mut().unwrap();
            let annotations = metadata["annotations"].as_object_mut().unwrap();
            assert_eq!(annotations.remove("helm.sh/resource-policy"), Some("keep".into()));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    all
}

pub(crate) fn of_kind<'a>(all: &'a BTreeMap<Key, Value>, kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|((other, ..), _)| other == kind).map(|(_, object)| object).collect()
}
