//! What stands in a cluster of an operator's work, without what differs from one life of it to the next.
//!
//! Enters: a client and the kinds. Leaves: one line for each object, sorted, in which uids, versions, times, addresses,
//! generated names, digests and the contents of Secrets are the same words every time.

use std::net::IpAddr;

use windlass::{
    Kind,
    jiff::Timestamp,
    kube::{
        Api, Client,
        api::{ApiResource, DynamicObject, ListParams},
    },
    serde_json::{self, Value},
};

/// What a test of its own makes of an object before it is compared.
pub type Normalise = dyn Fn(&mut Value) + Send + Sync;

/// The objects of these kinds, one line each, sorted: what two lives of an operator must have in common.
///
/// # Panics
///
/// When a kind cannot be listed.
pub async fn standing(client: &Client, kinds: &[Kind], normalise: &Normalise) -> Vec<String> {
    let mut objects = Vec::new();
    for kind in kinds {
        objects.extend(list(client, kind).await);
    }
    // Words that stand for an object in others: its uid in references and labels, its generated name in a status.
    let mut words = Vec::new();
    let pods = Kind::of::<windlass::k8s_openapi::api::core::v1::Pod>();
    for object in objects.iter().chain(&list(client, &pods).await) {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let (kind, name) = (text("/kind").unwrap_or("Pod"), text("/metadata/name").unwrap_or_default());
        let generated = text("/metadata/generateName").is_some();
        let stands_for = if generated { format!("<a {kind}>") } else { format!("<uid of {kind} {name}>") };
        words.extend(text("/metadata/uid").map(|uid| (uid.to_owned(), stands_for.clone())));
        words.extend(generated.then(|| (name.to_owned(), stands_for)));
    }
    // A name may begin with another one.
    words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    let mut lines: Vec<String> = objects.into_iter().map(|object| line(object, &words, normalise)).collect();
    lines.sort();
    lines
}

async fn list(client: &Client, kind: &Kind) -> Vec<Value> {
    let resource = ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let found = match api.list(&ListParams::default()).await {
        Ok(found) => found.items,
        // A kind that may not be served is not: there is no Status in that answer.
        Err(windlass::kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => panic!("failed to list {}: {error}", kind.plural),
    };
    let encode = |object: DynamicObject| {
        let mut value = serde_json::to_value(object).expect("an object must serialise");
        value["kind"] = kind.kind.clone().into();
        value["apiVersion"] = kind.api_version().into();
        value
    };
    // What the cluster itself puts into every namespace is nobody's work.
    let own = |object: &Value| object["metadata"]["name"] != "kube-root-ca.crt";
    found.into_iter().map(encode).filter(own).collect()
}

fn line(mut object: Value, words: &[(String, String)], normalise: &Normalise) -> String {
    normalise(&mut object);
    let reconciled = object["status"].clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["resourceVersion", "generation", "managedFields", "uid"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.starts_with("applied.windlass.dev/"));
        }
    }
    // The status of a built-in kind is its own controller's work.
    let group =
        object["apiVersion"].as_str().and_then(|text| text.split_once('/')).map_or("", |(group, _)| group);
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    object["status"] = if built_in { Value::Null } else { reconciled };
    if object["kind"] == "Secret" && built_in {
        for field in ["data", "stringData"] {
            let values = object[field].as_object_mut().into_iter().flat_map(|data| data.values_mut());
            values.for_each(|value| *value = "<secret>".into());
        }
    }
    scrub(&mut object);
    let text = object.to_string();
    words.iter().fold(text, |text, (word, stands_for)| text.replace(word.as_str(), stands_for))
}

/// Puts one word in place of what chance and the clock decide.
fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, field| !field.is_null() && key != "observedGeneration" && key != "nodePort");
            fields.values_mut().for_each(scrub);
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "<time>".clone_into(text),
        Value::String(text) if text.parse::<IpAddr>().is_ok() => "<address>".clone_into(text),
        Value::String(text) if is_digest(text) => "<digest>".clone_into(text),
        _ => {}
    }
}

/// A digest of what may hold a uid or a secret.
fn is_digest(text: &str) -> bool {
    let hex = text.rsplit_once(':').map_or(text, |(_, hex)| hex);
    hex.len() >= 16 && hex.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::json;

    use super::*;

    #[test]
    fn what_chance_and_the_clock_decide_is_the_same_every_time() {
        let object = |uid: &str, time: &str, address: &str| {
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {
                    "name": "a", "uid": uid, "resourceVersion": uid, "creationTimestamp": time,
                    "labels": {"owner": uid}, "annotations": {"applied.windlass.dev/op": uid},
                },
                "spec": {"clusterIP": address, "digest": "sha256:00112233445566778899aabbccddeeff"},
                "status": {"replicas": time},
            })
        };
        let told = |uid: &str, time: &str, address: &str| {
            let words = [(uid.to_owned(), "<uid>".to_owned())];
            line(object(uid, time, address), &words, &|_| {})
        };
        let one = told("5e5c", "2026-01-01T00:00:00Z", "10.0.0.1");
        assert_eq!(one, told("77aa", "2026-01-01T00:00:09.5Z", "10.0.0.2"));
        assert!(
            one.contains(r#""owner":"<uid>""#) && one.contains("<address>") && one.contains("<time>"),
            "{one}"
        );
    }
}
