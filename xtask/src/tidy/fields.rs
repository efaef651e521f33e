//! Nothing that the cluster accepts is ignored in silence: crates/cluster/src/fields.txt has a line for every field of
//! every built-in kind, and what is called honoured is at least named by some code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

const SCHEMA: &str = "crates/apiserver/src/schema/kubernetes.txt";
const TABLE: &str = "crates/cluster/src/fields.txt";
/// Who acts on fields.
const ACTORS: [&str; 3] = ["crates/apiserver/src", "crates/apimachinery/src", "crates/cluster/src"];
const VERDICTS: [&str; 4] = ["honoured", "node", "others", "ignored"];

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let fields = fields(&fs::read_to_string(root.join(SCHEMA))?)?;
    let table = fs::read_to_string(root.join(TABLE))?;
    let mut words = BTreeSet::new();
    for folder in ACTORS {
        collect(&root.join(folder), &mut words)?;
    }
    Ok(compare(&fields, &table, &words))
}

/// The names of all fields that a person can set, such as `core.v1.PodSpec.nodeName`.
fn fields(schema: &str) -> Result<BTreeSet<String>> {
    let mut definitions: BTreeMap<&str, Value> = BTreeMap::new();
    for line in schema.lines() {
        let (name, json) = line.split_once(' ').context("a definition has a name")?;
        definitions.insert(name, serde_json::from_str(json)?);
    }
    let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<&str> = definitions
        .iter()
        .filter(|(name, definition)| is_kind(definition) && !name.contains(".apimachinery."))
        .filter(|(_, definition)| definition["properties"].get("items").is_none())
        .map(|(name, _)| *name)
        .collect();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        let definition = &definitions[name];
        for (field, property) in definition["properties"].as_object().into_iter().flatten() {
            if is_kind(definition) && ["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()) {
                continue;
            }
            names.insert(format!("{}.{field}", short(name)));
            let mut next = BTreeSet::new();
            references(property, &mut next);
            open.extend(
                definitions.keys().filter(|name| next.contains(**name) && !name.contains(".apimachinery.")),
            );
        }
    }
    Ok(names)
}

fn is_kind(definition: &Value) -> bool {
    definition.get("x-kubernetes-group-version-kind").is_some()
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            found.extend(name.map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// A definition's name without what all of them begin with.
fn short(definition: &str) -> &str {
    let name = definition.strip_prefix("io.k8s.").unwrap_or(definition);
    ["api.", "apiextensions-apiserver.pkg.apis.", "kube-aggregator.pkg.apis."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

/// The words of all Rust below a folder, without hyphens and dollars as fields have them.
fn collect(folder: &Path, words: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, words)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let word = |letter: char| letter.is_alphanumeric() || "_-$".contains(letter);
            words.extend(text.split(|letter| !word(letter)).map(str::to_owned));
        }
    }
    Ok(())
}

fn compare(fields: &BTreeSet<String>, table: &str, words: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (field, verdict) = line.split_once(' ').unwrap_or((line, ""));
        if !VERDICTS.contains(&verdict) {
            problems.push(format!("{TABLE}: {field} is neither of {}", VERDICTS.join(", ")));
        }
        if !known.insert(field.to_owned()) {
            problems.push(format!("{TABLE}: {field} stands there twice"));
        }
        let name = field.rsplit('.').next().unwrap_or(field);
        if verdict == "honoured" && !words.contains(name) && !words.contains(&snake(name)) {
            problems.push(format!("{TABLE}: {field} is called honoured, but no code names it"));
        }
    }
    problems.extend(fields.difference(&known).map(|field| format!("{TABLE}: there is no line for {field}")));
    problems.extend(known.difference(fields).map(|field| format!("{TABLE}: no kind has a field {field}")));
    problems
}

/// A field as Rust's types call it: `podCIDRs` is `pod_cidrs`.
fn snake(field: &str) -> String {
    let letters: Vec<char> = field.chars().collect();
    let mut name = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || before.is_some()
                    && letters.get(index + 1).is_some_and(|next| next.is_lowercase() && *next != 's'));
        if begins {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_without_a_line_and_an_honour_without_code_are_told() {
        let schema = r##"io.k8s.api.core.v1.Pod {"properties":{"status":{},"spec":{"allOf":[{"$ref":"#/x/io.k8s.api.core.v1.PodSpec"}]}},"x-kubernetes-group-version-kind":[]}
io.k8s.api.core.v1.PodSpec {"properties":{"nodeName":{},"podCIDRs":{},"other":{}}}"##;
        let table = "# words\ncore.v1.Pod.spec honoured\ncore.v1.PodSpec.nodeName honoured\ncore.v1.PodSpec.podCIDRs \
                     honoured\ncore.v1.PodSpec.gone node\n";
        let words = ["spec", "node_name"].map(str::to_owned).into();
        let problems = compare(&fields(schema).unwrap(), table, &words);
        let told = [
            "core.v1.PodSpec.podCIDRs is called honoured, but no code names it",
            "there is no line for core.v1.PodSpec.other",
            "no kind has a field core.v1.PodSpec.gone",
        ];
        assert_eq!(problems, told.map(|problem| format!("{TABLE}: {problem}")));
        assert_eq!(["podCIDRs", "hostIP", "clusterIPs"].map(snake), ["pod_cidrs", "host_ip", "cluster_ips"]);
    }
}
