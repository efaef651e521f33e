//! The ConfigMaps and Secrets that a Pod refers to, and which of them are missing. Pure but for the two look-ups that
//! enter.
//!
//! As with the kubelet, a volume that cannot be filled keeps the whole Pod from starting, and a variable that cannot be
//! set keeps its container.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use windlass::k8s_openapi::api::core::v1::{ConfigMap, Container, KeyToPath, Pod, Secret, Volume};

/// Published in every namespace for every Pod; that it may come a moment later than the first Pod matters to nobody.
const ROOT_CA: &str = "kube-root-ca.crt";

/// How ConfigMaps and Secrets of the Pod's namespace are found.
pub(super) struct Sources<'a> {
    pub(super) config_map: &'a dyn Fn(&str) -> Option<Arc<ConfigMap>>,
    pub(super) secret: &'a dyn Fn(&str) -> Option<Arc<Secret>>,
}

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// Why volumes cannot be mounted.
    pub(super) mounts: Vec<String>,
    /// Why containers cannot be made, by their names.
    pub(super) containers: BTreeMap<String, String>,
}

/// A reference, and whether the Pod can do without it.
struct Reference<'a> {
    secret: bool,
    name: &'a str,
    key: Option<&'a str>,
    optional: bool,
}

impl Reference<'_> {
    /// Whether all is there; else whether the object or only the key is missing.
    fn lack(&self, sources: &Sources<'_>) -> Option<Lack> {
        if self.optional || !self.secret && self.name == ROOT_CA {
            return None;
        }
        let keys: Option<BTreeSet<String>> = if self.secret {
            (sources.secret)(self.name)
                .map(|secret| secret.data.iter().flatten().map(|(key, _)| key.clone()).collect())
        } else {
            (sources.config_map)(self.name).map(|map| {
                let text = map.data.iter().flatten().map(|(key, _)| key.clone());
                text.chain(map.binary_data.iter().flatten().map(|(key, _)| key.clone())).collect()
            })
        };
        match (keys, self.key) {
            (None, _) => Some(Lack::Object),
            (Some(keys), Some(key)) if !keys.contains(key) => Some(Lack::Key),
            _ => None,
        }
    }

    fn not_found(&self) -> String {
        format!("{} \"{}\" not found", if self.secret { "secret" } else { "configmap" }, self.name)
    }
}

enum Lack {
    Object,
    Key,
}

/// What a Pod lacks to be started.
pub(super) fn missing(pod: &Pod, sources: &Sources<'_>) -> Missing {
    let mut missing = Missing::default();
    let Some(spec) = &pod.spec else { return missing };
    for volume in spec.volumes.iter().flatten() {
        for reference in of_volume(volume) {
            let why = match reference.lack(sources) {
                None => continue,
                Some(Lack::Object) => reference.not_found(),
                Some(Lack::Key) => {
                    let kind = if reference.secret { "secret" } else { "config" };
                    format!("references non-existent {kind} key: {}", reference.key.unwrap_or_default())
                }
            };
            missing.mounts.push(format!("MountVolume.SetUp failed for volume \"{}\" : {why}", volume.name));
        }
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        let why = of_container(container).find_map(|reference| {
            Some(match reference.lack(sources)? {
                Lack::Object => reference.not_found(),
                Lack::Key => {
                    let kind = if reference.secret { "Secret" } else { "ConfigMap" };
                    let key = reference.key.unwrap_or_default();
                    format!("couldn't find key {key} in {kind} {namespace}/{}", reference.name)
                }
            })
        });
        missing.containers.extend(why.map(|why| (container.name.clone(), why)));
    }
    missing
}

/// The names of all that a Pod refers to: `configmap/name`, `secret/name`.
pub(super) fn names(pod: &Pod) -> BTreeSet<String> {
    let Some(spec) = &pod.spec else { return BTreeSet::new() };
    let volumes = spec.volumes.iter().flatten().flat_map(of_volume);
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers).flat_map(of_container);
    let name = |reference: Reference<'_>| {
        format!("{}/{}", if reference.secret { "secret" } else { "configmap" }, reference.name)
    };
    volumes.chain(containers).map(name).collect()
}

/// The whole object, and each key of it that is asked for.
fn keyed<'a>(
    secret: bool,
    name: &'a str,
    items: Option<&'a [KeyToPath]>,
    optional: Option<bool>,
) -> Vec<Reference<'a>> {
    let optional = optional == Some(true);
    let whole = Reference { secret, name, key: None, optional };
    let items = items.unwrap_or_default();
    if items.is_empty() {
        return vec![whole];
    }
    items.iter().map(|item| Reference { secret, name, key: Some(&item.key), optional }).collect()
}

fn of_volume(volume: &Volume) -> Vec<Reference<'_>> {
    let mut found = Vec::new();
    if let Some(source) = &volume.config_map {
        found.extend(keyed(false, &source.name, source.items.as_deref(), source.optional));
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        found.extend(keyed(true, name, source.items.as_deref(), source.optional));
    }
    for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
        if let Some(source) = &source.config_map {
            found.extend(keyed(false, &source.name, source.items.as_deref(), source.optional));
        }
        if let Some(source) = &source.secret {
            found.extend(keyed(true, &source.name, source.items.as_deref(), source.optional));
        }
    }
    found
}

fn of_container(container: &Container) -> impl Iterator<Item = Reference<'_>> {
    let whole = container.env_from.iter().flatten().flat_map(|from| {
        let map = from.config_map_ref.as_ref().map(|one| (false, one.name.as_str(), one.optional));
        let secret = from.secret_ref.as_ref().map(|one| (true, one.name.as_str(), one.optional));
        map.into_iter().chain(secret)
    });
    let whole = whole.map(|(secret, name, optional)| Reference {
        secret,
        name,
        key: None,
        optional: optional == Some(true),
    });
    let keys = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
    let keys = keys.filter_map(|from| {
        let map = from.config_map_key_ref.as_ref().map(|one| (false, &one.name, &one.key, one.optional));
        let secret = from.secret_key_ref.as_ref().map(|one| (true, &one.name, &one.key, one.optional));
        map.or(secret)
    });
    let keys = keys.map(|(secret, name, key, optional)| Reference {
        secret,
        name,
        key: Some(key),
        optional: optional == Some(true),
    });
    whole.chain(keys)
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn lacks(spec: Value) -> Missing {
        let pod: Pod = from_value(json!({"metadata": {"namespace": "shop"}, "spec": spec})).unwrap();
        let map: Arc<ConfigMap> = Arc::new(from_value(json!({"data": {"colour": "red"}})).unwrap());
        let sources =
            Sources { config_map: &|name| (name == "there").then(|| map.clone()), secret: &|_| None };
        missing(&pod, &sources)
    }

    fn env(reference: Value) -> Option<String> {
        let container = json!({"name": "c", "env": [{"name": "X", "valueFrom": reference}]});
        lacks(json!({"containers": [container]})).containers.remove("c")
    }

    #[test]
    fn a_variable_needs_its_object_and_its_key_unless_it_is_optional() {
        let key = |name: &str, key: &str| env(json!({"configMapKeyRef": {"name": name, "key": key}}));
        assert_eq!(key("there", "colour"), None);
        assert_eq!(key("there", "size").as_deref(), Some("couldn't find key size in ConfigMap shop/there"));
        assert_eq!(key("away", "size").as_deref(), Some("configmap \"away\" not found"));
        let secret = json!({"secretKeyRef": {"name": "away", "key": "k"}});
        assert_eq!(env(secret).as_deref(), Some("secret \"away\" not found"));
        assert_eq!(env(json!({"secretKeyRef": {"name": "away", "key": "k", "optional": true}})), None);
    }

    #[test]
    fn a_volume_needs_what_it_is_filled_from() {
        let mounts = |source: Value| {
            let mut volume = json!({"name": "v"});
            volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
            lacks(json!({"containers": [], "volumes": [volume]})).mounts
        };
        assert!(mounts(json!({"configMap": {"name": "there"}})).is_empty());
        assert_eq!(
            mounts(json!({"configMap": {"name": "there", "items": [{"key": "size", "path": "s"}]}})),
            ["MountVolume.SetUp failed for volume \"v\" : references non-existent config key: size"]
        );
        assert_eq!(
            mounts(json!({"secret": {"secretName": "away"}})),
            ["MountVolume.SetUp failed for volume \"v\" : secret \"away\" not found"]
        );
        assert!(mounts(json!({"secret": {"secretName": "away", "optional": true}})).is_empty());
        let projected = json!({"projected": {"sources": [
            {"configMap": {"name": "away"}}, {"configMap": {"name": ROOT_CA}}]}});
        assert_eq!(mounts(projected).len(), 1);
    }
}
