//! What is wrong with a Pod spec, wherever it stands.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{container, placement, security};
use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, entries, list},
        metadata::{NameRule, label_value_error, qualified_name_errors},
        resource::text,
    },
};

const POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// What is wrong with a Pod template.
pub(in crate::registry::kinds) fn template(causes: &mut Causes, template: &Value, path: &str) {
    let metadata = &template["metadata"];
    check::labels(causes, metadata, path, "labels");
    for (key, _) in entries(metadata, "annotations") {
        let wrong = qualified_name_errors(&key.to_lowercase()).into_iter();
        causes.extend(wrong.map(|why| Cause::invalid(at(path, "annotations"), &json!(key), why)));
    }
    spec(causes, &template["spec"], &at(path, "spec"));
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(format!("{path}.spec.ephemeralContainers"), why));
    }
}

/// What is wrong with a Pod spec.
pub(in crate::registry::kinds) fn spec(causes: &mut Causes, spec: &Value, path: &str) {
    volumes(causes, spec, path);
    container::containers(causes, spec, path);
    check::required_one_of(causes, spec, path, "restartPolicy", &POLICIES);
    check::one_of(causes, spec, path, "dnsPolicy", &DNS);
    check::labels(causes, spec, path, "nodeSelector");
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        check::required(causes, secret, &format!("{path}.imagePullSecrets[{index}]"), "name");
    }
    placement::dns(causes, spec, path);
    if let Some(affinity) = spec.get("affinity") {
        placement::affinity(causes, affinity, &at(path, "affinity"));
    }
    placement::spread(causes, spec, path);
    placement::aliases_and_gates(causes, spec, path);
    security::pod(causes, spec, path);
    for field in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, &format!("/{field}"));
        if !name.is_empty() {
            check::name(causes, name, at(path, field), NameRule::Subdomain);
        }
    }
    if let Some(seconds) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(at(path, "activeDeadlineSeconds"), &json!(seconds), why));
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, &format!("/{field}"));
        if !name.is_empty() {
            check::name(causes, name, at(path, field), NameRule::Label);
        }
    }
    tolerations(causes, spec, path);
    check::one_of(causes, spec, path, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
}

fn volumes(causes: &mut Causes, spec: &Value, path: &str) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let place = format!("{path}.volumes[{index}]");
        let name = text(volume, "/name");
        let wrong = causes.len();
        let sources = volume.as_object().map_or(0, |map| map.keys().filter(|key| *key != "name").count());
        if sources == 0 {
            causes.push(Cause::required(&*place, "must specify a volume type"));
        }
        if sources > 1 {
            let extra = volume.as_object().into_iter().flatten().filter(|(key, _)| *key != "name").nth(1);
            if let Some((key, _)) = extra {
                causes.push(Cause::forbidden(at(&place, key), "may not specify more than 1 volume type"));
            }
        }
        source(causes, volume, &place);
        if name.is_empty() {
            causes.push(Cause::required(at(&place, "name"), ""));
        } else {
            check::name(causes, name, at(&place, "name"), NameRule::Label);
        }
        if !name.is_empty() && names.contains(name) {
            causes.push(check::duplicate(at(&place, "name"), name));
        }
        if causes.len() == wrong {
            names.insert(name);
        }
    }
}

fn source(causes: &mut Causes, volume: &Value, place: &str) {
    for (kind, field) in [
        ("secret", "secretName"),
        ("configMap", "name"),
        ("persistentVolumeClaim", "claimName"),
        ("hostPath", "path"),
    ] {
        if let Some(source) = volume.get(kind) {
            check::required(causes, source, &at(place, kind), field);
        }
    }
}

pub(in crate::registry::kinds) fn tolerations(causes: &mut Causes, spec: &Value, path: &str) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let place = format!("{path}.tolerations[{index}]");
        let (key, operator, effect) =
            (text(toleration, "/key"), text(toleration, "/operator"), text(toleration, "/effect"));
        if !key.is_empty() {
            check::qualified(causes, key, at(&place, "key"));
        }
        if key.is_empty() && operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid(at(&place, "operator"), &json!(operator), why));
        }
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(at(&place, "effect"), &json!(effect), why));
        }
        match operator {
            "Equal" | "" => {
                if let Some(why) = label_value_error(text(toleration, "/value")) {
                    causes.push(Cause::invalid(at(&place, "operator"), &toleration["value"], why));
                }
            }
            "Exists" => {
                if !text(toleration, "/value").is_empty() {
                    let why = "value must be empty when `operator` is 'Exists'";
                    causes.push(Cause::invalid(
                        at(&place, "operator"),
                        &json!(text(toleration, "/value")),
                        why,
                    ));
                }
            }
            other => causes.push(Cause::not_supported(at(&place, "operator"), other, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            check::one_of(
                causes,
                toleration,
                &place,
                "effect",
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            );
        }
    }
}
