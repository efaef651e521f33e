//! A bundle of an operator for the Operator Lifecycle Manager, in the format `registry+v1`.
//!
//! Enters: the operator's objects, its samples and what is told about it. Leaves: `bundle/` with manifests, metadata and
//! tests, `bundle.Dockerfile`, and what could not be packed, for the user to know.
//!
//! OLM issues the certificates of webhooks and mounts them. So the objects are those of an operator that finds its
//! certificate in a directory, as with cert-manager, whose own objects are left out here.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    Error, Facts, Files, Objects, RELEASE_NAMESPACE,
    objects::{kind, name, text},
    yaml,
};

mod csv;
mod descriptors;
mod permissions;
mod webhooks;

/// How this version is offered, and what it follows.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The channels that the version is part of.
    pub channels: Vec<String>,
    /// The channel that a subscription without one follows; the first unless given.
    pub default_channel: Option<String>,
    /// The CSV that this one replaces: `NAME.vVERSION`.
    pub replaces: Option<String>,
    /// CSVs that nobody needs to go through.
    pub skips: Vec<String>,
    /// Versions from which this one can be reached at once: `>=1.0.0 <1.2.0`.
    pub skip_range: Option<String>,
    /// The architectures of the image beside amd64, as Go calls them.
    pub architectures: Vec<String>,
}

/// A bundle, and what a person should know about it.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The files, from the project's root.
    pub files: Files,
    /// What is not in it, or is missing for a good one.
    pub remarks: Vec<String>,
}

/// The channel of a version when none is given: `alpha` is not among the names that the Operator Framework recommends.
pub fn usual_channel(version: &crate::Version) -> &'static str {
    if version.major == 0 || version.is_prerelease() { "candidate" } else { "stable" }
}

/// Where the manifests of a bundle are, below its own folder.
pub(crate) const MANIFESTS: &str = "manifests";
/// Where its metadata are.
pub(crate) const METADATA: &str = "metadata";

/// The files of a bundle.
///
/// # Errors
///
/// When an object cannot be written as YAML, or the version is none.
pub fn bundle(
    facts: &Facts,
    objects: &Objects,
    samples: &[Value],
    options: &Options,
) -> Result<Bundle, Error> {
    let version = crate::Version::parse(&facts.version)?;
    let mut options = options.clone();
    if options.channels.is_empty() {
        options.channels = vec![usual_channel(&version).to_owned()];
    }
    let csv = csv::csv(facts, objects, samples, &options)?;
    let mut files = Files::new("bundle/.windlass-generated");
    let mut insert = |path: String, object: &Value| -> Result<(), Error> {
        let text = yaml::document(&path, object)?.replace(RELEASE_NAMESPACE, &facts.namespace);
        files.insert(format!("bundle/{path}"), text);
        Ok(())
    };
    insert(format!("{MANIFESTS}/{}.clusterserviceversion.yaml", facts.name), &csv)?;
    for crd in objects.crds() {
        let path =
            format!("{MANIFESTS}/{}_{}.yaml", text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        insert(path, &delivered(crd, objects))?;
    }
    let (beside, left) = csv::beside(objects);
    for object in &beside {
        let version = text(object, "/apiVersion").replace('/', "_");
        insert(
            format!("{MANIFESTS}/{}_{version}_{}.yaml", name(object), kind(object).to_lowercase()),
            object,
        )?;
    }
    insert(format!("{METADATA}/annotations.yaml"), &json!({ "annotations": labels(facts, &options) }))?;
    insert("tests/scorecard/config.yaml".to_owned(), &scorecard())?;
    files.insert("bundle.Dockerfile", dockerfile(facts, &options));
    let mut remarks: Vec<String> = left
        .into_iter()
        .map(|object| format!("{object} is not in the bundle: OLM accepts no such object in one"))
        .collect();
    remarks.extend(without_example(&csv));
    if facts.maintainers.iter().any(|maintainer| maintainer.email.is_none()) {
        remarks.push("a maintainer without an address of mail is not in the bundle".to_owned());
    }
    Ok(Bundle { files, remarks })
}

/// The CRD as OLM is to apply it. It points the conversion at its own Service later; until then the name is right.
fn delivered(crd: &Value, objects: &Objects) -> Value {
    let mut crd = crd.clone();
    if let Some(service) = crd.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
        service["name"] = json!(webhooks::service_name(objects.name()));
        service["port"] = json!(webhooks::PORT);
    }
    let annotations = crd["metadata"]["annotations"].as_object_mut();
    if let Some(annotations) = annotations {
        annotations.retain(|key, _| !key.starts_with("cert-manager.io/"));
        if annotations.is_empty()
            && let Some(metadata) = crd["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    crd
}

/// Kinds in versions that nobody has shown an example of.
fn without_example(csv: &Value) -> Vec<String> {
    let examples: Vec<Value> =
        serde_json::from_str(text(csv, "/metadata/annotations/alm-examples")).unwrap_or_default();
    let owned = csv.pointer("/spec/customresourcedefinitions/owned").and_then(Value::as_array);
    let lacks = |owned: &&Value| {
        let version = format!("/{}", text(owned, "/version"));
        !examples.iter().any(|example| {
            example["kind"] == owned["kind"] && text(example, "/apiVersion").ends_with(&version)
        })
    };
    let tell = |owned: &Value| {
        format!(
            "{} {} has no sample in config/samples: consoles show none",
            text(owned, "/kind"),
            text(owned, "/version")
        )
    };
    owned.into_iter().flatten().filter(lacks).map(tell).collect()
}

/// What the bundle's image and its metadata say of it.
fn labels(facts: &Facts, options: &Options) -> Value {
    let default = options.default_channel.as_ref().or(options.channels.first());
    let prefix = "operators.operatorframework.io";
    json!({
        format!("{prefix}.bundle.mediatype.v1"): "registry+v1",
        format!("{prefix}.bundle.manifests.v1"): "manifests/",
        format!("{prefix}.bundle.metadata.v1"): "metadata/",
        format!("{prefix}.bundle.package.v1"): facts.name,
        format!("{prefix}.bundle.channels.v1"): options.channels.join(","),
        format!("{prefix}.bundle.channel.default.v1"): default,
        format!("{prefix}.metrics.builder"): concat!("windlass-", env!("CARGO_PKG_VERSION")),
        format!("{prefix}.metrics.mediatype.v1"): "metrics+v1",
        format!("{prefix}.metrics.project_layout"): "windlass",
        format!("{prefix}.test.config.v1"): "tests/scorecard/",
        format!("{prefix}.test.mediatype.v1"): "scorecard+v1",
    })
}

fn dockerfile(facts: &Facts, options: &Options) -> String {
    let mut text = String::from("FROM scratch\n\n");
    for (key, value) in labels(facts, options).as_object().into_iter().flatten() {
        let _ = writeln!(text, "LABEL {key}={}", value.as_str().unwrap_or_default());
    }
    text.push_str("\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\nCOPY bundle/tests/scorecard /tests/scorecard/\n");
    text
}

/// What operator-sdk's scorecard runs: everything that it has for bundles.
fn scorecard() -> Value {
    const IMAGE: &str = "quay.io/operator-framework/scorecard-test:v1.42.0";
    const TESTS: [(&str, &str); 6] = [
        ("basic", "basic-check-spec"),
        ("olm", "olm-bundle-validation"),
        ("olm", "olm-crds-have-validation"),
        ("olm", "olm-crds-have-resources"),
        ("olm", "olm-spec-descriptors"),
        ("olm", "olm-status-descriptors"),
    ];
    let test = |(suite, test): (&str, &str)| {
        json!({
            "image": IMAGE,
            "entrypoint": ["scorecard-test", test],
            "labels": { "suite": suite, "test": format!("{test}-test") },
        })
    };
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": { "name": "config" },
        "stages": [{ "parallel": true, "tests": TESTS.map(test) }],
    })
}

#[cfg(test)]
mod tests;
