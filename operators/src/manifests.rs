//! The files of `config/`, generated from the types and controllers, so that they cannot differ from them.
//!
//! Leaves: paths below the repository's root, and what is to stand in them. `cargo test` compares; `cargo run -p
//! windlass-operators --example manifests` writes.

use serde_json::Value;
use windlass::{ConfigError, ConfigTree, Operator, Placement};

use crate::{Entry, catalogue, operator};

const COMMAND: &str = "cargo run -p windlass-operators --example manifests";
const NAMESPACE: &str = "windlass-system";
/// The image of all operators.
pub const IMAGE: &str = concat!("windlass-operators:", env!("CARGO_PKG_VERSION"));
/// Who the operators run as, and the operator whose certificates and lease the roles name.
pub const ACCOUNT: &str = "windlass";

/// A file that cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A sample could not be turned into JSON.
    #[error("failed to encode the sample of {kind}")]
    Encode {
        /// The kind of the sample.
        kind: &'static str,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
    /// The files could not be made of it.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    let files = tree()?.files()?;
    let below = |path: String| format!("config/{path}");
    Ok(files.into_iter().map(|file| Manifest { path: below(file.path), content: file.content }).collect())
}

/// What `config/` holds: everything of the operators, and a sample of each kind in each of its versions.
pub fn tree() -> Result<ConfigTree, Error> {
    let mut tree = shipped(&[]).config_tree(&placement(NAMESPACE, IMAGE)).written_by(COMMAND);
    for entry in catalogue() {
        for sample in std::iter::once(entry.sample()).chain(entry.older_samples()) {
            let sample = sample.map_err(|source| Error::Encode { kind: entry.kind, source })?;
            tree = tree.file(format!("samples/{}", sample_name(entry, &sample)), sample);
        }
    }
    Ok(tree)
}

/// How the operators run: two replicas, so that one is there while the other is replaced.
pub fn placement(namespace: &str, image: &str) -> Placement {
    Placement { replicas: 2, ..Placement::new(namespace, image) }
}

/// The operator of these kinds as the image runs it, with `--only`; of all without any.
pub fn shipped(only: &[String]) -> Operator {
    let names = brought(only);
    let entries = catalogue().iter().filter(|entry| names.is_empty() || names.contains(&entry.operator));
    let operator = operator(&account(only), entries);
    if names.is_empty() { operator } else { operator.argument(format!("--only={}", names.join(","))) }
}

/// Who the operator of these kinds runs as: it may run beside one of other kinds.
pub fn account(only: &[String]) -> String {
    let names = brought(only);
    if names.is_empty() { ACCOUNT.to_owned() } else { format!("{}-operator", names.join("-")) }
}

/// Where it runs.
pub fn namespace(only: &[String]) -> String {
    if only.is_empty() { NAMESPACE.to_owned() } else { format!("{}-system", account(only)) }
}

/// The operators that bring these kinds, each once.
fn brought(only: &[String]) -> Vec<&'static str> {
    let wanted = catalogue().iter().filter(|entry| only.iter().any(|name| name == entry.name));
    let mut names: Vec<&'static str> = wanted.map(|entry| entry.operator).collect();
    names.dedup();
    names
}

/// `webserver_v1_webserver.yaml`: the first word of the group, the version, the kind.
fn sample_name(entry: &Entry, sample: &Value) -> String {
    let api_version = sample["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group = group.split('.').next().unwrap_or(group);
    format!("{group}_{version}_{}.yaml", entry.name)
}
