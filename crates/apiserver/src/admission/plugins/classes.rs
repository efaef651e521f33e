//! The classes of storage and of ingress that an object gets when it names none; and claims that grow.

use serde_json::{Value, json};

use super::forbidden;
use crate::{
    admission::Attributes,
    error::Result,
    quota::{Amount, storage_class},
    registry::Registry,
};

/// The newest class that an annotation makes the default; of several just as new the first by name.
fn default_class(registry: &Registry, group: &str, plural: &str, annotations: &[&str]) -> Option<Value> {
    let mut classes = registry.look_through(group, plural, None);
    classes.retain(|class| {
        annotations.iter().any(|annotation| class["metadata"]["annotations"][*annotation] == "true")
    });
    let time = |class: &Value| class["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    // Of equal ones the last wins, and they are in the order of their names.
    classes.into_iter().rev().max_by_key(|class| time(class))
}

/// Gives a new claim its class.
pub(super) fn of_storage(registry: &Registry, claim: &mut Value) {
    let old = "volume.beta.kubernetes.io/storage-class";
    let named = claim["spec"].get("storageClassName").is_some_and(|name| !name.is_null())
        || claim["metadata"]["annotations"].get(old).is_some();
    if named {
        return;
    }
    let annotations =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if let Some(class) = default_class(registry, "storage.k8s.io", "storageclasses", &annotations) {
        claim["spec"]["storageClassName"] = class["metadata"]["name"].clone();
    }
}

/// Gives a new Ingress its class.
pub(super) fn of_ingress(registry: &Registry, ingress: &mut Value) {
    let named = ingress["spec"].get("ingressClassName").is_some_and(|name| !name.is_null())
        || ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class").is_some();
    if named {
        return;
    }
    let annotations = ["ingressclass.kubernetes.io/is-default-class"];
    if let Some(class) = default_class(registry, "networking.k8s.io", "ingressclasses", &annotations) {
        ingress["spec"]["ingressClassName"] = json!(class["metadata"]["name"]);
    }
}

/// A claim grows only where its class can make it grow.
pub(super) fn check_growth(
    registry: &Registry,
    request: &Attributes<'_>,
    claim: &Value,
    old: &Value,
) -> Result<()> {
    let size = |claim: &Value| {
        claim.pointer("/spec/resources/requests/storage").and_then(Amount::from_json).unwrap_or(Amount::ZERO)
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        let why = "Only bound persistent volume claims can be expanded";
        return Err(forbidden(request, claim, why));
    }
    let class = storage_class(claim);
    let same = !class.is_empty() && class == storage_class(old);
    let found = same.then(|| registry.look_up("storage.k8s.io", "storageclasses", "", class)).flatten();
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(forbidden(request, claim, why))
}
