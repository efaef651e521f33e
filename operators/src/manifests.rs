//! The files of `config/`, generated from the types and controllers, so that they cannot differ from them.
//!
//! Leaves: paths below the repository's root, and what is to stand in them. `cargo test` compares; `cargo run -p
//! windlass-operators --example manifests` writes.

use serde_json::Value;
use windlass::{ConfigError, ConfigTree, Placement};

use crate::{Entry, catalogue, operator};

const COMMAND: &str = "cargo run -p windlass-operators --example manifests";
const NAMESPACE: &str = "windlass-system";
/// The image of all operators.
pub const IMAGE: &str = concat!("windlass-operators:", env!("CARGO_PKG_VERSION"));
/// Who the operators run as, and the operator whose certificates and lease the roles name.
pub const ACCOUNT: &str = "controller-manager";

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
    let placement = Placement { replicas: 2, ..Placement::new(NAMESPACE, IMAGE) };
    let mut tree = operator(ACCOUNT, catalogue()).config_tree(&placement).written_by(COMMAND);
    for entry in catalogue() {
        for sample in std::iter::once(entry.sample()).chain(entry.older_samples()) {
            let sample = sample.map_err(|source| Error::Encode { kind: entry.kind, source })?;
            tree = tree.file(format!("samples/{}", sample_name(entry, &sample)), sample);
        }
    }
    Ok(tree)
}

/// `webserver_v1_webserver.yaml`: the first word of the group, the version, the kind.
fn sample_name(entry: &Entry, sample: &Value) -> String {
    let api_version = sample["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group = group.split('.').next().unwrap_or(group);
    format!("{group}_{version}_{}.yaml", entry.name)
}
