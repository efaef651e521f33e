//! A CustomResourceDefinition, as far as types and comparisons need it. YAML enters, [`Definition`]s leave; what is no
//! CustomResourceDefinition is passed over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Error;

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its `metadata.name`: the plural and the group.
    pub name: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The API group.
    pub group: String,
    /// What the kind is called.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The versions, in the order of the definition.
    pub versions: Vec<Version>,
    /// How objects are converted between versions: `None` or `Webhook`.
    pub conversion: String,
    /// Whether unknown fields of all versions are kept: a leftover of `v1beta1`.
    pub preserve_unknown_fields: bool,
}

/// What a kind is called.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    /// `CronJob`.
    pub kind: String,
    /// `CronJobList`, unless it says otherwise.
    #[serde(default)]
    pub list_kind: String,
    /// `cronjobs`.
    pub plural: String,
    /// `cronjob`, unless it says otherwise.
    #[serde(default)]
    pub singular: String,
    /// `cj`.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// `all`.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// Where objects live.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}

/// One version of a kind.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `v1`.
    pub name: String,
    /// Whether the API server answers requests for it.
    #[serde(default)]
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(default)]
    pub storage: bool,
    /// Whether clients are warned that use it.
    #[serde(default)]
    pub deprecated: bool,
    /// In these words.
    #[serde(default)]
    pub deprecation_warning: Option<String>,
    #[serde(default)]
    schema: Validation,
    #[serde(default)]
    subresources: Subresources,
    /// What `kubectl get` shows.
    #[serde(default, rename = "additionalPrinterColumns")]
    pub printer_columns: Vec<PrinterColumn>,
    #[serde(default)]
    selectable_fields: Vec<SelectableField>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    open_api_v3_schema: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct Subresources {
    status: Option<Map<String, Value>>,
    scale: Option<Scale>,
}

/// The paths that `kubectl scale` and autoscalers go by.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// Where the wanted replicas are.
    pub spec_replicas_path: String,
    /// Where the replicas are that exist.
    pub status_replicas_path: String,
    /// Where the selector of the Pods is.
    #[serde(default)]
    pub label_selector_path: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// Its title.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Where its value is.
    pub json_path: String,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
    /// `int32`, `date-time` and the like.
    #[serde(default)]
    pub format: Option<String>,
    /// Above 0 it is shown with `-o wide` only.
    #[serde(default)]
    pub priority: Option<i32>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

impl Version {
    /// The `openAPIV3Schema`, if there is one.
    pub fn schema(&self) -> Option<&Map<String, Value>> {
        self.schema.open_api_v3_schema.as_ref()
    }

    /// Whether the status is a subresource.
    pub fn has_status(&self) -> bool {
        self.subresources.status.is_some()
    }

    /// The scale subresource, if there is one.
    pub fn scale(&self) -> Option<&Scale> {
        self.subresources.scale.as_ref()
    }

    /// The paths that field selectors may name.
    pub fn selectable_fields(&self) -> impl Iterator<Item = &str> {
        self.selectable_fields.iter().map(|field| field.json_path.as_str())
    }
}

#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    group: String,
    names: Names,
    scope: Scope,
    versions: Vec<Version>,
    #[serde(default)]
    conversion: Conversion,
    #[serde(default)]
    preserve_unknown_fields: bool,
}

#[derive(Default, Deserialize)]
struct Conversion {
    #[serde(default)]
    strategy: String,
}

impl Definition {
    /// The CustomResourceDefinitions of a YAML text of one or several documents, lists taken apart, in their order.
    /// Everything else in it is passed over.
    pub fn parse(yaml: &str) -> Result<Vec<Self>, Error> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(|error| Error::yaml(&error))?;
        let mut definitions = Vec::new();
        for document in documents {
            Self::collect(document, &mut definitions)?;
        }
        Ok(definitions)
    }

    fn collect(document: Value, definitions: &mut Vec<Self>) -> Result<(), Error> {
        match document.get("kind").and_then(Value::as_str) {
            Some("CustomResourceDefinition") => definitions.push(Self::from_value(document)?),
            Some("List" | "CustomResourceDefinitionList") => {
                for item in document.get("items").and_then(Value::as_array).cloned().unwrap_or_default() {
                    Self::collect(item, definitions)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The definition in a JSON object, such as a `CustomResourceDefinition` of k8s-openapi makes.
    pub fn from_value(document: Value) -> Result<Self, Error> {
        let name = document
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("(without a name)")
            .to_owned();
        let api_version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if api_version != API_VERSION {
            return Err(Error::ApiVersion { name, api_version: api_version.to_owned() });
        }
        let Document { metadata, mut spec } =
            serde_json::from_value(document).map_err(|source| Error::Definition { name, source })?;
        let names = &mut spec.names;
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let strategy = spec.conversion.strategy;
        Ok(Self {
            name: metadata.name,
            annotations: metadata.annotations,
            labels: metadata.labels,
            group: spec.group,
            names: spec.names,
            scope: spec.scope,
            versions: spec.versions,
            conversion: if strategy.is_empty() { "None".to_owned() } else { strategy },
            preserve_unknown_fields: spec.preserve_unknown_fields,
        })
    }

    /// The version of this name.
    pub fn version(&self, name: &str) -> Result<&Version, Error> {
        self.versions.iter().find(|version| version.name == name).ok_or_else(|| Error::NoVersion {
            name: self.name.clone(),
            version: name.to_owned(),
            versions: self.versions.iter().map(|version| version.name.clone()).collect(),
        })
    }

    /// The version that objects are stored in; the first one where none says so.
    pub fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage).or(self.versions.first())
    }
}
