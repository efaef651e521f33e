//! A bundle in a folder: read, looked over, and as a catalogue has it.

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use fs_err as fs;
use serde_json::{Value, json};

use super::documents;
use crate::{
    Error, Version,
    objects::{is_crd, items, kind, name, text},
    olm::{MANIFESTS, METADATA},
};

/// A bundle as it lies in a folder.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) package: String,
    pub(super) channels: Vec<String>,
    pub(super) default_channel: String,
    pub(super) csv: Value,
    pub(super) objects: Vec<Value>,
}

impl Source {
    /// Reads a bundle's folder, which has `manifests` and `metadata` in it.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let mut objects = Vec::new();
        for path in yaml_files(&folder.join(MANIFESTS))? {
            objects.extend(documents(&path)?);
        }
        let path = folder.join(METADATA).join("annotations.yaml");
        let annotations = documents(&path)?.into_iter().next().unwrap_or_default();
        let label = |word: &str| {
            let key = format!("operators.operatorframework.io.bundle.{word}.v1");
            annotations["annotations"][key].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        let lacks =
            |what: &str| Error::Content { path: path.clone(), why: format!("it does not say the {what}") };
        let package = label("package").ok_or_else(|| lacks("package"))?;
        let channels: Vec<String> = label("channels")
            .ok_or_else(|| lacks("channels"))?
            .split(',')
            .map(|word| word.trim().to_owned())
            .collect();
        let default_channel = label("channel.default").unwrap_or_else(|| channels[0].clone());
        let csv = objects.iter().find(|object| kind(object) == "ClusterServiceVersion").cloned();
        let csv = csv.ok_or_else(|| Error::Content {
            path: folder.join(MANIFESTS),
            why: "there is no ClusterServiceVersion in it".to_owned(),
        })?;
        Version::parse(text(&csv, "/spec/version"))?;
        Ok(Self { package, channels, default_channel, csv, objects })
    }

    /// The name of the bundle: `NAME.vVERSION`.
    pub fn name(&self) -> &str {
        name(&self.csv)
    }

    /// The package that it is a version of.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// What is wrong with the bundle, as far as it can be seen without a cluster.
    ///
    /// # Errors
    ///
    /// All that was found, together.
    pub fn validate(&self) -> Result<(), Error> {
        let mut found = Vec::new();
        let expected = format!("{}.v{}", self.package, text(&self.csv, "/spec/version"));
        if self.name() != expected {
            found.push(format!("the CSV is called {:?}, not {expected:?}", self.name()));
        }
        if self.name().len() > 63 {
            found.push(format!("the CSV's name {:?} is longer than 63 characters", self.name()));
        }
        if !self.channels.contains(&self.default_channel) {
            found.push(format!("the default channel {:?} is not among its channels", self.default_channel));
        }
        let crds: Vec<&Value> = self.objects.iter().filter(|object| is_crd(object)).collect();
        let owned: Vec<&Value> = items(&self.csv["spec"]["customresourcedefinitions"]["owned"]).collect();
        for entry in &owned {
            let known = crds.iter().any(|crd| {
                name(crd) == text(entry, "/name")
                    && items(&crd["spec"]["versions"]).any(|version| version["name"] == entry["version"])
            });
            if !known {
                found.push(format!(
                    "it owns {} {}, which is not in it",
                    text(entry, "/name"),
                    text(entry, "/version")
                ));
            }
        }
        for crd in &crds {
            if !owned.iter().any(|entry| text(entry, "/name") == name(crd)) {
                found.push(format!("the CSV does not own the CRD {}", name(crd)));
            }
        }
        if items(&self.csv["spec"]["installModes"]).all(|mode| mode["supported"] != true) {
            found.push("it can be installed for no namespaces at all".to_owned());
        }
        if items(&self.csv["spec"]["install"]["spec"]["deployments"]).next().is_none() {
            found.push("it installs no Deployment".to_owned());
        }
        if found.is_empty() { Ok(()) } else { Err(Error::Invalid(found)) }
    }

    pub(super) fn version(&self) -> &str {
        text(&self.csv, "/spec/version")
    }

    /// The bundle as a catalogue has it.
    pub(super) fn document(&self, image: Option<&str>) -> Value {
        let mut properties = vec![
            json!({ "type": "olm.package", "value": { "packageName": self.package, "version": self.version() } }),
        ];
        for (word, list) in [("olm.gvk", "owned"), ("olm.gvk.required", "required")] {
            for entry in items(&self.csv["spec"]["customresourcedefinitions"][list]) {
                let group = text(entry, "/name").split_once('.').map_or("", |(_, group)| group);
                let value = json!({ "group": group, "kind": entry["kind"], "version": entry["version"] });
                properties.push(json!({ "type": word, "value": value }));
            }
        }
        match image {
            Some(_) => properties.push(json!({ "type": "olm.csv.metadata", "value": self.metadata() })),
            None => properties.extend(self.objects.iter().map(|object| {
                let data = STANDARD.encode(object.to_string());
                json!({ "type": "olm.bundle.object", "value": { "data": data } })
            })),
        }
        let mut images: Vec<Value> = items(&self.csv["spec"]["relatedImages"]).cloned().collect();
        images.extend(image.map(|image| json!({ "name": "", "image": image })));
        let mut document = json!({
            "schema": "olm.bundle",
            "name": self.name(),
            "package": self.package,
            "properties": properties,
            "relatedImages": images,
        });
        if let Some(image) = image {
            document["image"] = json!(image);
        }
        document
    }

    /// What a console shows of the version without its image.
    fn metadata(&self) -> Value {
        let mut metadata = json!({
            "annotations": self.csv["metadata"]["annotations"],
            "labels": self.csv["metadata"]["labels"],
            "crdDescriptions": self.csv["spec"]["customresourcedefinitions"],
            "apiServiceDefinitions": {},
        });
        let fields = [
            "description",
            "displayName",
            "installModes",
            "keywords",
            "links",
            "maintainers",
            "maturity",
            "minKubeVersion",
            "provider",
        ];
        for field in fields {
            if !self.csv["spec"][field].is_null() {
                metadata[field] = self.csv["spec"][field].clone();
            }
        }
        metadata
    }
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
