//! The ClusterServiceVersion: what one version of an operator is, brings and needs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    Options,
    descriptors::{default_images, owned},
    permissions::{Permissions, install_modes},
    webhooks,
};
use crate::{
    Error, Facts, Objects,
    objects::{items, kind, name, text},
};

/// The CSV. Samples of kinds that are not among the operator's are left out.
pub(super) fn csv(
    facts: &Facts,
    objects: &Objects,
    samples: &[Value],
    options: &Options,
) -> Result<Value, Error> {
    let deployment = objects.deployment()?;
    let permissions = Permissions::of(objects);
    let (definitions, converts) = webhooks::definitions(objects, deployment);
    let rules: Vec<Value> = permissions.namespaced.iter().chain(&permissions.cluster).cloned().collect();
    let owned: Vec<Value> = objects.crds().flat_map(|crd| owned(crd, &rules)).collect();
    let mut strategy =
        json!({ "deployments": [{ "name": name(deployment), "spec": installed(deployment) }] });
    let parts = [("permissions", &permissions.namespaced), ("clusterPermissions", &permissions.cluster)];
    for (key, rules) in parts {
        if let Some(entry) = Permissions::entry(rules, objects.account()) {
            strategy[key] = entry;
        }
    }
    let picture = facts.picture();
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{}.v{}", facts.name, facts.version),
            "annotations": annotations(facts, &examples(&owned, samples), options),
            "labels": { "operatorframework.io/os.linux": "supported", "operatorframework.io/arch.amd64": "supported" },
        },
        "spec": {
            "displayName": facts.title(),
            "description": description(facts, &owned),
            "version": facts.version,
            "maturity": facts.maturity(),
            "minKubeVersion": facts.min_kube_version,
            "provider": { "name": facts.provider() },
            "icon": [{ "base64data": picture.base64(), "mediatype": picture.media_type }],
            "installModes": install_modes(objects, converts),
            "install": { "strategy": "deployment", "spec": strategy },
            "customresourcedefinitions": { "owned": owned },
            "relatedImages": related(objects, deployment),
        },
    });
    for arch in &options.architectures {
        csv["metadata"]["labels"][format!("operatorframework.io/arch.{arch}")] = json!("supported");
    }
    let spec = &mut csv["spec"];
    let maintainers: Vec<Value> = facts
        .maintainers
        .iter()
        .filter_map(|maintainer| {
            Some(json!({ "name": maintainer.name, "email": maintainer.email.as_ref()? }))
        })
        .collect();
    let links: Vec<Value> =
        facts.links.iter().map(|link| json!({ "name": link.name, "url": link.url })).collect();
    let lists = [
        ("maintainers", json!(maintainers)),
        ("links", json!(links)),
        ("keywords", json!(facts.keywords)),
        ("webhookdefinitions", json!(definitions)),
        ("skips", json!(options.skips)),
    ];
    for (key, list) in lists {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            spec[key] = list;
        }
    }
    if let Some(replaces) = &options.replaces {
        spec["replaces"] = json!(replaces);
    }
    Ok(csv)
}

fn annotations(facts: &Facts, examples: &[Value], options: &Options) -> Value {
    let mut annotations = json!({
        "alm-examples": serde_json::to_string_pretty(examples).unwrap_or_default(),
        "capabilities": facts.capabilities.as_deref().unwrap_or("Basic Install"),
        "containerImage": facts.image,
        "description": facts.sentence(),
        "operatorframework.io/suggested-namespace": facts.namespace,
        "operators.operatorframework.io/builder": concat!("windlass-", env!("CARGO_PKG_VERSION")),
    });
    let texts = [
        ("categories", (!facts.categories.is_empty()).then(|| facts.categories.join(","))),
        (
            "repository",
            facts.links.iter().find(|link| link.name == "Repository").map(|link| link.url.clone()),
        ),
        ("olm.skipRange", options.skip_range.clone()),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            annotations[key] = json!(text);
        }
    }
    annotations
}

/// A sample of each version of each kind, in the order of the kinds.
fn examples(owned: &[Value], samples: &[Value]) -> Vec<Value> {
    let matches = |owned: &Value, sample: &&Value| {
        let group = text(owned, "/name").split_once('.').map_or("", |(_, group)| group);
        text(sample, "/apiVersion") == format!("{group}/{}", text(owned, "/version"))
            && sample["kind"] == owned["kind"]
    };
    owned
        .iter()
        .flat_map(|owned| samples.iter().filter(move |sample| matches(owned, sample)))
        .cloned()
        .collect()
}

/// Markdown that a console shows.
fn description(facts: &Facts, owned: &[Value]) -> String {
    let mut text = facts.sentence();
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for entry in owned {
        let kind = entry["kind"].as_str().unwrap_or_default();
        if !kinds.iter().any(|(other, _)| *other == kind) {
            kinds.push((kind, entry["description"].as_str().unwrap_or_default()));
        }
    }
    if !kinds.is_empty() {
        text.push_str("\n\n## Kinds\n");
        for (kind, about) in kinds {
            let _ = write!(text, "\n* **{kind}**: {about}");
        }
    }
    text
}

/// The Deployment as OLM is to make it: it tells the operator which namespaces it is installed for, and mounts the
/// certificate of its webhooks by itself.
fn installed(deployment: &Value) -> Value {
    let mut spec = deployment["spec"].clone();
    let pod = &mut spec["template"]["spec"];
    let mounted: Vec<Value> = pod["containers"][0]["volumeMounts"].as_array().cloned().unwrap_or_default();
    let certificates = |name: &Value| name == "webhook-certificates";
    if mounted.iter().any(|mount| certificates(&mount["name"])) {
        retain(&mut pod["containers"][0], "volumeMounts", |mount| !certificates(&mount["name"]));
        retain(pod, "volumes", |volume| !certificates(&volume["name"]));
    }
    let container = &mut pod["containers"][0];
    retain(container, "args", |argument| {
        !argument.as_str().is_some_and(|text| text.starts_with("--watch-namespaces="))
    });
    let watched = json!({
        "name": "WATCH_NAMESPACE",
        "valueFrom": { "fieldRef": { "fieldPath": "metadata.annotations['olm.targetNamespaces']" } },
    });
    match container["env"].as_array_mut() {
        Some(env) => env.push(watched),
        None => container["env"] = json!([watched]),
    }
    spec
}

/// Removes items of a list, and the list when it is empty then.
fn retain(object: &mut Value, key: &str, keep: impl Fn(&Value) -> bool) {
    let Some(list) = object[key].as_array_mut() else {
        // Indexing has made an entry of it.
        if let Some(object) = object.as_object_mut() {
            object.retain(|other, value| other != key || !value.is_null());
        }
        return;
    };
    list.retain(keep);
    if list.is_empty()
        && let Some(object) = object.as_object_mut()
    {
        object.remove(key);
    }
}

/// Every image that is needed: those of the Pods, those that they are told of, those that the kinds have by default.
fn related(objects: &Objects, deployment: &Value) -> Vec<Value> {
    let mut images: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, image: &str| {
        if !image.is_empty() && !images.iter().any(|(_, other)| other == image) {
            let taken = images.iter().filter(|(other, _)| *other == name).count();
            images
                .push((if taken == 0 { name } else { format!("{name}-{}", images.len()) }, image.to_owned()));
        }
    };
    for container in items(&deployment["spec"]["template"]["spec"]["containers"]) {
        add(
            container["name"].as_str().unwrap_or("manager").to_owned(),
            container["image"].as_str().unwrap_or_default(),
        );
        for variable in items(&container["env"]) {
            if let Some(name) = variable["name"].as_str().and_then(|name| name.strip_prefix("RELATED_IMAGE_"))
            {
                add(name.to_lowercase().replace('_', "-"), variable["value"].as_str().unwrap_or_default());
            }
        }
    }
    for crd in objects.crds() {
        for image in default_images(crd) {
            add(text(crd, "/spec/names/kind").to_lowercase(), &image);
        }
    }
    images.sort();
    images.into_iter().map(|(name, image)| json!({ "name": name, "image": image })).collect()
}

/// Objects that a bundle holds beside the CSV: what OLM does not make from it, of the kinds that it accepts.
pub(super) fn beside(objects: &Objects) -> (Vec<Value>, Vec<String>) {
    const ACCEPTED: [&str; 10] = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "PodDisruptionBudget",
        "PriorityClass",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceMonitor",
    ];
    // OLM makes these from the CSV, or they are somebody else's business.
    const MADE: [&str; 8] = [
        "Certificate",
        "CustomResourceDefinition",
        "Deployment",
        "Issuer",
        "MutatingWebhookConfiguration",
        "Namespace",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    ];
    let bound = Objects::bound(objects.all(), objects.account());
    let (mut beside, mut left) = (Vec::new(), Vec::new());
    for object in objects.all() {
        let ours =
            |binding: &Value| items(&binding["subjects"]).any(|subject| subject["name"] == objects.account());
        let webhook = items(&object["spec"]["ports"]).any(|port| port["targetPort"] == "webhook");
        let made = MADE.contains(&kind(object))
            || bound.contains(&crate::objects::role_key(object))
            || (kind(object).ends_with("RoleBinding") && ours(object))
            || (kind(object) == "Service" && webhook);
        if made {
            continue;
        }
        if !ACCEPTED.contains(&kind(object)) {
            left.push(format!("{} {}", kind(object), name(object)));
            continue;
        }
        let mut object = object.clone();
        // OLM puts it where the operator is installed.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        beside.push(object);
    }
    (beside, left)
}
