//! Every Pod runs as a service account, and finds that account's token mounted.

use serde_json::{Value, json};

use crate::{
    admission::Attributes,
    error::{Error, Result},
    registry::Registry,
    store::{Key, TableName},
};

/// Where containers find the token.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The volume's name before its random end.
const VOLUME: &str = "kube-api-access-";

/// Pods that a kubelet runs by itself have no account.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// How long a mounted token lives before it is renewed.
const SECONDS: u32 = 3607;

/// Gives a new Pod what its service account gives it.
pub(super) fn admit(registry: &Registry, request: &Attributes<'_>, pod: &mut Value) -> Result<()> {
    if pod.pointer("/metadata/annotations").and_then(|all| all.get(MIRROR)).is_some() {
        return Ok(());
    }
    let namespace = request.target.namespace;
    let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    let name = if name.is_empty() { "default".to_owned() } else { name };
    let table = TableName { group: "".into(), plural: "serviceaccounts".into() };
    let found = registry.store().get(&table, &Key::new(namespace, &name));
    let account: Value = match found {
        Some(object) => serde_json::from_slice(&object.bytes).unwrap_or_default(),
        // Every namespace gets its `default` account in a moment; a Pod need not wait for that.
        None if name == "default" => json!({}),
        None => {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            );
            return Err(Error::forbidden(request.target.resource.named(), &request.name, why));
        }
    };
    let spec = &mut pod["spec"];
    let pulled = spec["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    if let (false, Some(secrets)) = (pulled, account["imagePullSecrets"].as_array()) {
        spec["imagePullSecrets"] = json!(secrets);
    }
    let automount = "automountServiceAccountToken";
    let wanted = spec[automount].as_bool().or_else(|| account[automount].as_bool()).unwrap_or(true);
    if wanted {
        mount(registry, spec);
    }
    Ok(())
}

/// Mounts the token into every container that has nothing in its place.
fn mount(registry: &Registry, spec: &mut Value) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let known = volumes
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with(VOLUME))
        .map(str::to_owned);
    let name = known.clone().unwrap_or_else(|| format!("{VOLUME}{}", registry.environment().name_suffix(5)));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if mounts.into_iter().any(|mount| mount["mountPath"] == PATH) {
                continue;
            }
            let own = json!({"name": name, "readOnly": true, "mountPath": PATH});
            match container["volumeMounts"].as_array_mut() {
                Some(mounts) => mounts.push(own),
                None => container["volumeMounts"] = json!([own]),
            }
            mounted = true;
        }
    }
    if mounted && known.is_none() {
        match spec["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume(&name)),
            None => spec["volumes"] = json!([volume(&name)]),
        }
    }
}

fn volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}})
}
