//! What an operator's program says that it needs in a cluster, and what of it an operator outside the cluster needs.
//!
//! Enters: the YAML of `<program> manifests`. Leaves: objects to apply, and facts about the operator. Left out are the
//! Deployment and the Services, since no Pod of it runs, and what points the API server at them: the program says by
//! itself where its webhooks are.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::core::{ApiResource, GroupVersionKind},
};

use crate::project::{Error, Project, build};

/// What an operator outside the cluster needs there.
#[derive(Clone, Debug)]
pub(crate) struct Manifests {
    /// The name of the operator, which is that of its service account.
    pub(crate) name: String,
    /// The namespace of its service account.
    pub(crate) namespace: String,
    /// Whether it has webhooks.
    pub(crate) webhooks: bool,
    crds: Vec<Value>,
    others: Vec<Value>,
}

impl Manifests {
    /// Asks the program.
    pub(crate) async fn of(project: &Project, program: &std::path::Path) -> Result<Self, Error> {
        let text = build::printed(program, &project.root, &["manifests"]).await?;
        let objects = serde_saphyr::from_multiple::<Value>(&text).map_err(|source| Error::Printed {
            command: format!("{} manifests", project.name),
            source: source.into(),
        })?;
        Self::new(objects).ok_or_else(|| Error::NoAccount { name: project.name.clone() })
    }

    fn new(objects: Vec<Value>) -> Option<Self> {
        let account = objects.iter().find(|object| object["kind"] == "ServiceAccount")?;
        let text = |pointer: &str| account.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        let (name, namespace) = (text("/metadata/name")?, text("/metadata/namespace")?);
        let mut found = Self { name, namespace, webhooks: false, crds: Vec::new(), others: Vec::new() };
        for mut object in objects {
            match object["kind"].as_str().unwrap_or_default() {
                "CustomResourceDefinition" => {
                    let conversion =
                        object["spec"].as_object_mut().and_then(|spec| spec.remove("conversion"));
                    found.webhooks |=
                        conversion.is_some_and(|conversion| conversion["strategy"] == "Webhook");
                    found.crds.push(object);
                }
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => found.webhooks = true,
                "Deployment" | "Service" => {}
                _ => found.others.push(object),
            }
        }
        if found.webhooks {
            found.others.extend(found.reaching_back());
        }
        Some(found)
    }

    /// What serving webhooks from outside the cluster takes beyond the operator's own roles: configurations under a
    /// name of their own, which come and go with the process.
    fn reaching_back(&self) -> [Value; 2] {
        const GROUP: &str = "rbac.authorization.k8s.io";
        let (name, local) = (format!("{}-outside", self.name), format!("{}-local", self.name));
        let resources = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
        let group = ["admissionregistration.k8s.io"];
        let verbs = ["get", "list", "watch", "update", "patch", "delete"];
        let role = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                {"apiGroups": group, "resources": resources, "verbs": ["create"]},
                {"apiGroups": group, "resources": resources, "resourceNames": [local], "verbs": verbs},
            ],
        });
        let binding = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        });
        [role, binding]
    }

    /// The custom kinds, as they are applied.
    pub(crate) fn crds(&self) -> &[Value] {
        &self.crds
    }

    /// For a cluster that cannot reach the webhooks: nobody would convert what is not stored.
    pub(crate) fn serve_stored_versions_only(&mut self) {
        let crds = self.crds.iter_mut().filter_map(|crd| crd["spec"]["versions"].as_array_mut());
        for version in crds.flatten() {
            version["served"] = version["storage"].clone();
        }
    }

    /// Everything else: the namespace, the service account, its roles.
    pub(crate) fn others(&self) -> &[Value] {
        &self.others
    }

    /// The names of the custom kinds.
    pub(crate) fn crd_names(&self) -> Vec<&str> {
        self.crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect()
    }

    /// The custom kinds as an untyped client needs them, in the version that is stored.
    pub(crate) fn kinds(&self) -> Vec<ApiResource> {
        let kind = |crd: &Value| {
            let crd: CustomResourceDefinition = serde_json::from_value(crd.clone()).ok()?;
            let version = crd.spec.versions.iter().find(|version| version.storage)?;
            let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &crd.spec.names.kind);
            Some(ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural))
        };
        self.crds.iter().filter_map(kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests(more: &[Value]) -> Manifests {
        let account =
            json!({"kind": "ServiceAccount", "metadata": {"name": "shop", "namespace": "shop-system"}});
        let mut objects = vec![json!({"kind": "Deployment"}), account, json!({"kind": "Service"})];
        objects.extend(more.iter().cloned());
        Manifests::new(objects).unwrap()
    }

    #[test]
    fn what_would_run_it_in_the_cluster_is_left_out() {
        let found = manifests(&[]);
        assert_eq!((found.name.as_str(), found.namespace.as_str()), ("shop", "shop-system"));
        assert_eq!(found.others().len(), 1, "{found:?}");
        assert!(!found.webhooks);
    }

    #[test]
    fn webhooks_are_the_programs_own_matter_and_it_may_register_them() {
        let found = manifests(&[json!({"kind": "ValidatingWebhookConfiguration"})]);
        assert!(found.webhooks);
        let kinds: Vec<&Value> = found.others().iter().map(|object| &object["kind"]).collect();
        assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
        let crd = json!({
            "kind": "CustomResourceDefinition", "metadata": {"name": "carts.shop.com"},
            "spec": {"group": "shop.com", "scope": "Namespaced", "names": {"kind": "Cart", "plural": "carts"},
                "versions": [{"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": true, "storage": true}],
                "conversion": {"strategy": "Webhook"}},
        });
        let found = manifests(&[crd]);
        assert!(found.webhooks && found.crds()[0]["spec"]["conversion"].is_null());
        assert_eq!(found.crd_names(), ["carts.shop.com"]);
        let kind = &found.kinds()[0];
        assert_eq!((kind.api_version.as_str(), kind.plural.as_str()), ("shop.com/v2", "carts"));
        let mut found = found;
        found.serve_stored_versions_only();
        let served: Vec<&Value> = found.crds()[0]["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|version| &version["served"])
            .collect();
        assert_eq!(served, [false, true]);
    }
}
