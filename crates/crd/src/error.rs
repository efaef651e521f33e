//! What can be wrong with what was given.

/// Why a definition could not be read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no YAML.
    #[error("failed to read the YAML: {0}")]
    Yaml(String),
    /// A document says that it is a CustomResourceDefinition, and is not shaped like one.
    #[error("failed to read the CustomResourceDefinition {name:?}")]
    Definition {
        /// Its `metadata.name`.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A CustomResourceDefinition of another API version.
    #[error(
        "failed to use the CustomResourceDefinition {name:?}: its apiVersion is {api_version:?}, not \"apiextensions.k8s.io/v1\""
    )]
    ApiVersion {
        /// Its `metadata.name`.
        name: String,
        /// Its `apiVersion`.
        api_version: String,
    },
    /// There is no such version.
    #[error("failed to find the version {version:?} of {name:?}: there are {}", versions.join(", "))]
    NoVersion {
        /// The definition's name.
        name: String,
        /// What was asked for.
        version: String,
        /// What is there.
        versions: Vec<String>,
    },
    /// The version has no schema.
    #[error("failed to make types of {name:?}: the version {version:?} has no schema")]
    NoSchema {
        /// The definition's name.
        name: String,
        /// The version.
        version: String,
    },
    /// The kind cannot be the name of a struct.
    #[error("failed to make types of {name:?}: {kind:?} cannot be the name of a Rust type")]
    Kind {
        /// The definition's name.
        name: String,
        /// The kind.
        kind: String,
    },
}

impl Error {
    /// What the parser says, in one line: without the picture of the text.
    pub(crate) fn yaml(error: &serde_saphyr::Error) -> Self {
        let text = error.without_snippet().to_string();
        let line = text.lines().next().unwrap_or_default();
        Self::Yaml(line.trim_start_matches("error: ").to_owned())
    }
}
