//! An object as another cluster takes it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use windlass_ui::Kind;

use super::{left_out::is_definition, text};

/// The uids of the new cluster, by those of the old one.
pub(crate) type Owners = HashMap<String, String>;

/// The object to create: without what its server said of it, and with the owners that it has now. Owners that did not come
/// along are counted: with one that is not there the object would be removed as an orphan.
pub(crate) fn prepared(kind: &Kind, object: &Value, owners: &Owners) -> (Value, usize) {
    let mut object = object.clone();
    let mut lost = 0;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for own in ["uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "managedFields"]
        {
            metadata.remove(own);
        }
        if let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            references.retain_mut(|reference| {
                let new = reference["uid"].as_str().and_then(|uid| owners.get(uid)).cloned();
                lost += usize::from(new.is_none());
                new.is_some_and(|uid| {
                    reference["uid"] = uid.into();
                    true
                })
            });
            if references.is_empty() {
                metadata.remove("ownerReferences");
            }
        }
    }
    adapt(kind, &mut object, owners);
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    (object, lost)
}

/// The status to write after the object, if it has one that means something in another cluster.
pub(crate) fn status_of<'a>(kind: &Kind, object: &'a Value) -> Option<&'a Value> {
    // A Pod is scheduled anew; a namespace and a definition get theirs from the server.
    let anew = matches!((kind.group.as_str(), kind.plural.as_str()), ("", "pods" | "namespaces"));
    let status = object.get("status").filter(|status| status.as_object().is_some_and(|map| !map.is_empty()));
    status.filter(|_| !anew && !is_definition(kind))
}

/// What a server decides or what names something by uid, kind by kind.
fn adapt(kind: &Kind, object: &mut Value, owners: &Owners) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") if spec.get("clusterIP").is_none_or(|address| address != "None") => {
            for address in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                spec.remove(address);
            }
        }
        ("", "pods") => {
            spec.remove("nodeName");
            // The volume of the token is put in again, for an account of the new cluster.
            without_token(spec);
        }
        ("", "persistentvolumes") => {
            if let Some(claim) = spec.get_mut("claimRef").and_then(Value::as_object_mut) {
                claim.remove("resourceVersion");
                let uid = claim.get("uid").and_then(Value::as_str).and_then(|uid| owners.get(uid)).cloned();
                match uid {
                    Some(uid) => claim.insert("uid".into(), uid.into()),
                    None => claim.remove("uid"),
                };
            }
        }
        ("batch", "jobs") if spec.get("manualSelector").is_none_or(|manual| manual != true) => {
            spec.remove("selector");
            let labels =
                spec.get_mut("template").and_then(|template| template["metadata"]["labels"].as_object_mut());
            if let Some(labels) = labels {
                labels.retain(|name, _| {
                    !matches!(name.as_str(), "controller-uid" | "batch.kubernetes.io/controller-uid")
                });
            }
        }
        _ => {}
    }
}

fn without_token(spec: &mut Map<String, Value>) {
    const PREFIX: &str = "kube-api-access-";
    let is_token = |value: &Value| text(value, "/name").starts_with(PREFIX);
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| !is_token(volume));
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(mounts) = container["volumeMounts"].as_array_mut() {
                mounts.retain(|mount| !is_token(mount));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(group: &str, plural: &str) -> Kind {
        super::super::kind(group, "", plural, true)
    }

    #[test]
    fn an_object_keeps_what_people_wrote_and_has_its_new_owners() {
        let owners = Owners::from([("old".to_owned(), "new".to_owned())]);
        let object = json!({"metadata": {"name": "a", "uid": "x", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [], "labels": {"a": "b"},
            "finalizers": ["example.com/x"],
            "ownerReferences": [{"uid": "old", "name": "o"}, {"uid": "gone", "name": "g"}]},
            "spec": {"a": 1}, "status": {"b": 2}});
        let (prepared, lost) = prepared(&kind("example.com", "things"), &object, &owners);
        let expected = json!({"metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["example.com/x"],
            "ownerReferences": [{"uid": "new", "name": "o"}]}, "spec": {"a": 1}});
        assert_eq!((prepared, lost), (expected, 1));
        assert_eq!(status_of(&kind("example.com", "things"), &object), Some(&json!({"b": 2})));
    }

    #[test]
    fn what_the_other_server_gave_out_stays_there() {
        let made = |kind: &Kind, spec: Value| {
            prepared(kind, &json!({"metadata": {}, "spec": spec}), &Owners::new()).0
        };
        let service = made(
            &kind("", "services"),
            json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "ClusterIP"}),
        );
        assert_eq!(service["spec"], json!({"type": "ClusterIP"}));
        let headless = made(&kind("", "services"), json!({"clusterIP": "None", "clusterIPs": ["None"]}));
        assert_eq!(headless["spec"]["clusterIP"], "None");
        let pod = made(
            &kind("", "pods"),
            json!({"nodeName": "far", "volumes": [{"name": "kube-api-access-x"}, {"name": "d"}],
            "containers": [{"volumeMounts": [{"name": "kube-api-access-x"}, {"name": "d"}]}]}),
        );
        assert_eq!(
            pod["spec"],
            json!({"volumes": [{"name": "d"}], "containers": [{"volumeMounts": [{"name": "d"}]}]})
        );
        let job = made(
            &kind("batch", "jobs"),
            json!({"selector": {}, "template": {"metadata": {"labels":
            {"batch.kubernetes.io/controller-uid": "x", "mine": "y"}}}}),
        );
        assert_eq!(job["spec"], json!({"template": {"metadata": {"labels": {"mine": "y"}}}}));
    }
}
