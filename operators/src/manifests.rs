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
/// Who all operators together run as, and the operator whose certificates and lease the roles name.
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
    tree_of(&[], &placement(NAMESPACE, IMAGE))
}

/// The same for the chosen kinds alone, by their names in the catalogue; for all without any.
pub fn tree_of(only: &[String], placement: &Placement) -> Result<ConfigTree, Error> {
    let mut tree = shipped(only).config_tree(placement).written_by(COMMAND);
    for (path, sample) in samples(only)? {
        tree = tree.file(format!("samples/{path}"), sample);
    }
    Ok(tree)
}

/// How the operators are run: two replicas, so that one is there while the other is replaced.
pub fn placement(namespace: &str, image: &str) -> Placement {
    Placement { replicas: 2, ..Placement::new(namespace, image) }
}

/// The operator of the chosen kinds, as the image runs it with `--only`; of all without any.
pub fn shipped(only: &[String]) -> Operator {
    let operator = operator(&account(only), chosen(only));
    if only.is_empty() { operator } else { operator.argument(format!("--only={}", words(only).join(","))) }
}

/// Who the operators of the chosen kinds run as. Beside all of them there may be one for a kind of its own.
pub fn account(only: &[String]) -> String {
    if only.is_empty() { ACCOUNT.to_owned() } else { format!("{}-operator", words(only).join("-")) }
}

/// The namespace that they are meant for.
pub fn namespace(only: &[String]) -> String {
    if only.is_empty() { NAMESPACE.to_owned() } else { format!("{}-system", account(only)) }
}

/// A sample of each chosen kind in each of its versions, by the name of its file.
pub fn samples(only: &[String]) -> Result<Vec<(String, Value)>, Error> {
    let mut samples = Vec::new();
    for entry in chosen(only) {
        for sample in std::iter::once(entry.sample()).chain(entry.older_samples()) {
            let sample = sample.map_err(|source| Error::Encode { kind: entry.kind, source })?;
            samples.push((sample_name(entry, &sample), sample));
        }
    }
    Ok(samples)
}

/// The kinds of the catalogue that the chosen ones bring: an operator may bring several.
fn chosen(only: &[String]) -> impl Iterator<Item = &'static Entry> {
    let words = words(only);
    catalogue().iter().filter(move |entry| words.is_empty() || words.contains(&entry.operator))
}

/// The operators of the chosen kinds, each once, in the order of the catalogue.
fn words(only: &[String]) -> Vec<&'static str> {
    let named = catalogue().iter().filter(|entry| only.iter().any(|name| name == entry.name));
    let mut words: Vec<&'static str> = named.map(|entry| entry.operator).collect();
    words.dedup();
    words
}

/// `webserver_v1_webserver.yaml`: the first word of the group, the version, the kind.
fn sample_name(entry: &Entry, sample: &Value) -> String {
    let api_version = sample["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group = group.split('.').next().unwrap_or(group);
    format!("{group}_{version}_{}.yaml", entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn one_operator_alone_is_granted_nothing_for_secrets() {
        let objects = shipped(&only(&["memcached"])).manifests(&placement("x", IMAGE));
        let text = serde_json::to_string(&objects).unwrap();
        assert!(!text.contains("secrets"), "{text}");
        assert!(text.contains("--only=memcached") && text.contains("memcached-operator"), "{text}");
        let all = serde_json::to_string(&shipped(&[]).manifests(&placement("x", IMAGE))).unwrap();
        assert!(all.contains("secrets") && !all.contains("--only"), "{all}");
    }

    #[test]
    fn kinds_of_one_operator_come_together() {
        let files = samples(&only(&["databasebackup"])).unwrap();
        assert_eq!(account(&only(&["databasebackup", "database"])), "database-operator");
        assert!(files.iter().any(|(path, _)| path == "database_v1_database.yaml"), "{files:?}");
        assert_eq!(account(&only(&["webserver", "podmanager"])), "podmanager-webserver-operator");
    }
}
