//! The documents of the OCI image specification, as far as images of one program need them. JSON is written in one way:
//! fields in this order, maps sorted, nothing that is empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, Platform};

/// What documents and blobs are called.
pub mod media_type {
    /// An image of one platform, or what refers to one.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// Images of several platforms.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// How an image runs.
    pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// A layer.
    pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// What stands where a config must be and none is: `{}`.
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// An SBOM in SPDX's JSON.
    pub const SPDX: &str = "application/spdx+json";
    /// As docker calls a manifest.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// As docker calls an index.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
}

/// The annotation with the name of a file.
pub const TITLE: &str = "org.opencontainers.image.title";
/// The annotation of a layout's index with an image's tag.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation with an image's whole name, by which `ctr images import` goes.
pub(crate) const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Where some content is, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// Its name.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// Of a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Of a referrer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Small content itself, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

impl Descriptor {
    /// Describes some bytes.
    pub fn of(media_type: &str, content: &[u8]) -> Self {
        Self {
            media_type: media_type.into(),
            digest: Digest::of(content),
            size: content.len() as u64,
            platform: None,
            artifact_type: None,
            annotations: BTreeMap::new(),
            data: None,
        }
    }

    /// Whether it is a list of manifests.
    pub fn is_index(&self) -> bool {
        [media_type::INDEX, media_type::DOCKER_INDEX].contains(&self.media_type.as_str())
    }
}

/// An image of one platform, or something that refers to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// 2.
    pub schema_version: u32,
    /// What this is; manifests of others may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What a referrer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// How the image runs.
    pub config: Descriptor,
    /// The layers, lowest first.
    pub layers: Vec<Descriptor>,
    /// What a referrer refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Images of several platforms; also what is in a layout, and what refers to an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// 2.
    pub schema_version: u32,
    /// What this is; indexes of others may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What is in it.
    pub manifests: Vec<Descriptor>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::INDEX.into()),
            manifests: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }
}

/// An image's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Where it runs.
    #[serde(flatten)]
    pub platform: Platform,
    /// How it runs.
    #[serde(default)]
    pub config: RuntimeConfig,
    /// Its layers.
    pub rootfs: RootFs,
}

/// How a container of an image runs unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RuntimeConfig {
    /// A user and a group; root if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Ports, as `8080/tcp`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exposed_ports: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Variables, as `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Its arguments unless others are given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// Where it starts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// Facts about the image.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The layers of an image before they were compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The digests of the tar files.
    pub diff_ids: Vec<Digest>,
}

/// JSON of one of these documents.
pub(crate) fn encode(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("a document of strings and numbers must become JSON")
}
