//! The tables that the API server is made from, recorded from a real one.
//!
//! Enters a testbed; leaves `schema/kubernetes.txt` (every type, without its prose), `registry/resources.txt`
//! (every resource), `schema/go_types.txt` (field numbers and pointers) and `http/table/columns.txt` (what
//! `kubectl get` prints, from the recording of the fidelity script) in crates/apiserver. With `--check`
//! nothing is written, and a difference is a failure.

mod columns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use serde_json::{Map, Value, json};

use crate::kubernetes::{self, Kubectl};

const TYPES: &str = "crates/apiserver/src/schema/kubernetes.txt";
const RESOURCES: &str = "crates/apiserver/src/registry/resources.txt";
const COLUMNS: &str = "crates/apiserver/src/http/table/columns.txt";
const GO_TYPES: &str = "crates/apiserver/src/schema/go_types.txt";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Compare instead of writing
    #[arg(long)]
    check: bool,
    /// Record from this testbed
    #[arg(long, default_value = "default")]
    name: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let kubectl = kubernetes::client(&args.name)?;
    let mut stale = Vec::new();
    let columns = columns::table(&fs_err::read_to_string(root().join(columns::RECORDING))?)?;
    for (path, content) in [
        (TYPES, types(&kubectl)?),
        (RESOURCES, resources(&kubectl)?),
        (GO_TYPES, go_types()?),
        (COLUMNS, columns),
    ] {
        let file = root().join(path);
        let current = fs_err::read_to_string(&file).unwrap_or_default();
        if current == content {
            anstream::println!("{path} is up to date");
        } else if args.check {
            stale.push(path);
        } else {
            fs_err::write(&file, content)?;
            anstream::println!("{path} written");
        }
    }
    if !stale.is_empty() {
        bail!(
            "{} differ from Kubernetes {}: run `cargo xtask generate`",
            stale.join(", "),
            kubernetes::VERSION
        );
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie in the workspace").to_owned()
}

fn get(kubectl: &Kubectl, path: &str) -> Result<Value> {
    let text = kubectl.output(&["get", "--raw", path])?;
    serde_json::from_str(&text).with_context(|| format!("failed to read the answer to {path}"))
}

/// Every type of every group version, one per line, sorted by name.
fn types(kubectl: &Kubectl) -> Result<String> {
    let index = get(kubectl, "/openapi/v3")?;
    let mut definitions = BTreeMap::new();
    for (path, entry) in index["paths"].as_object().into_iter().flatten() {
        let group = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["api", _] => "",
            ["apis", group, _] => group,
            _ => continue,
        };
        if !is_built_in(group) {
            continue;
        }
        let address = entry["serverRelativeURL"].as_str().context("a document must have an address")?;
        let document = get(kubectl, address)?;
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            definitions.insert(name.clone(), without_prose(schema));
        }
    }
    let lines: Vec<String> = definitions.iter().map(|(name, schema)| format!("{name} {schema}\n")).collect();
    Ok(lines.concat())
}

/// Kubernetes' own groups have short names or end in k8s.io; the others are of custom resources that
/// somebody left in the testbed.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// A schema without its descriptions, and without the list of kinds of types that every group shares.
fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Array(list) => list.iter().map(without_prose).collect(),
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, value) in map {
                let shared = key == "x-kubernetes-group-version-kind"
                    && value.as_array().is_some_and(|list| list.len() > 1);
                if shared || (key == "description" && value.is_string()) {
                    continue;
                }
                let kept = match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => Value::Object(
                        fields.iter().map(|(name, one)| (name.clone(), without_prose(one))).collect(),
                    ),
                    ("default" | "enum", value) => value.clone(),
                    (_, value) => without_prose(value),
                };
                out.insert(key.clone(), kept);
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

/// Every resource, one per line, in the order of discovery.
fn resources(kubectl: &Kubectl) -> Result<String> {
    let mut versions = vec![("core".to_owned(), "v1".to_owned(), "/api/v1".to_owned())];
    let groups = get(kubectl, "/apis")?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        let name = group["name"].as_str().unwrap_or_default();
        if !is_built_in(name) {
            continue;
        }
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["version"].as_str().unwrap_or_default();
            versions.push((name.to_owned(), version.to_owned(), format!("/apis/{name}/{version}")));
        }
    }
    let mut lines = Vec::new();
    for (group, version, path) in versions {
        let list = get(kubectl, &path)?;
        for row in rows(&list) {
            lines.push(format!("{group}/{version} {row}\n"));
        }
    }
    Ok(lines.concat())
}

/// The resources of a list, each with its subresources inside of it.
fn rows(list: &Value) -> Vec<Value> {
    let entries: Vec<&Value> = list["resources"].as_array().into_iter().flatten().collect();
    let kind = |entry: &Value| {
        let part = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        json!({"group": part("group"), "version": part("version"), "kind": part("kind")})
    };
    let owner =
        |entry: &Value| entry["name"].as_str().unwrap_or_default().split('/').next().map(str::to_owned);
    let mut rows = Vec::new();
    for entry in entries.iter().filter(|entry| !entry["name"].as_str().unwrap_or_default().contains('/')) {
        let namespaced = entry["namespaced"] == json!(true);
        let mut row = json!({
            "resource": entry["name"], "responseKind": kind(entry),
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": entry["singularName"], "verbs": entry["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if let Some(value) = entry.get(field) {
                row[field] = value.clone();
            }
        }
        let parts: Vec<Value> = entries
            .iter()
            .filter(|other| other["name"] != entry["name"] && owner(other) == owner(entry))
            .map(|other| {
                let name =
                    other["name"].as_str().and_then(|name| name.split_once('/')).map_or("", |(_, sub)| sub);
                json!({"subresource": name, "responseKind": kind(other), "verbs": other["verbs"]})
            })
            .collect();
        if !parts.is_empty() {
            row["subresources"] = Value::Array(parts);
        }
        rows.push(row);
    }
    rows
}

/// What only Kubernetes' own Go types tell.
fn go_types() -> Result<String> {
    let output = Command::new("go")
        .args(["run", "./types"])
        .current_dir(root().join("xtask/testbed"))
        .output()
        .context("failed to start go: install Go 1.26 or later")?;
    if !output.status.success() {
        bail!("failed to run xtask/testbed/types: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("failed to read the types that Go printed")
}
