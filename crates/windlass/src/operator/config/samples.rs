//! Which samples are applied together: all, but of an object in several versions the newest alone.

use std::collections::BTreeMap;

use kube::core::Version;
use serde_json::Value;

/// An object whatever its version.
type Identity = [String; 4];

/// The files to list, in their order. What cannot be read is listed as well: kustomize will say what is wrong with it.
pub(super) fn listed(texts: &BTreeMap<String, String>) -> Vec<String> {
    let read: Vec<(&String, Vec<(Identity, String)>)> =
        texts.iter().map(|(name, text)| (name, objects(text))).collect();
    let newest = |identity: &Identity, version: &str| {
        let versions = read.iter().flat_map(|(_, objects)| objects).filter(|(of, _)| of == identity);
        !versions.into_iter().any(|(_, other)| priority(other) > priority(version))
    };
    let wanted = |objects: &[(Identity, String)]| {
        objects.is_empty() || objects.iter().any(|(identity, version)| newest(identity, version))
    };
    read.iter().filter(|(_, objects)| wanted(objects)).map(|(name, _)| (*name).clone()).collect()
}

fn objects(text: &str) -> Vec<(Identity, String)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
    let identify = |object: &Value| {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let identity = [group.to_owned(), text("/kind"), text("/metadata/namespace"), text("/metadata/name")];
        (identity, version.to_owned())
    };
    documents.iter().map(identify).collect()
}

fn priority(version: &str) -> impl Ord + use<> {
    Version::parse(version).priority()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(version: &str, name: &str) -> String {
        format!("apiVersion: example.com/{version}\nkind: Box\nmetadata:\n  name: {name}\n")
    }

    #[test]
    fn of_an_object_in_several_versions_the_newest_is_listed() {
        let texts = BTreeMap::from([
            ("a_v1.yaml".to_owned(), sample("v1", "a")),
            ("a_v1beta1.yaml".to_owned(), sample("v1beta1", "a")),
            ("b_v1beta1.yaml".to_owned(), sample("v1beta1", "b")),
            ("both.yaml".to_owned(), format!("{}---\n{}", sample("v1beta1", "a"), sample("v1", "c"))),
            ("broken.yaml".to_owned(), "kind: [".to_owned()),
        ]);
        assert_eq!(listed(&texts), ["a_v1.yaml", "b_v1beta1.yaml", "both.yaml", "broken.yaml"]);
    }
}
