//! The objects that run an operator in a cluster: CRDs, RBAC and a Deployment, all from the code.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use super::Operator;
use crate::error::chain;

/// Where and how the operator is to run.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The namespace of the operator.
    pub namespace: String,
    /// The image of the operator.
    pub image: String,
    /// How many replicas; one of them leads.
    pub replicas: u32,
}

/// A failed request of `install` or `uninstall`.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {kind} {name}")]
pub struct InstallError {
    verb: &'static str,
    kind: String,
    name: String,
    #[source]
    source: Box<kube::Error>,
}

impl Operator {
    /// The custom kinds as objects that can be applied.
    pub fn crd_manifests(&self) -> Vec<Value> {
        let encode = |crd| {
            let mut crd = serde_json::to_value(crd).expect("a CRD must serialise");
            crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
            crd["kind"] = "CustomResourceDefinition".into();
            crd
        };
        self.crds().iter().map(encode).collect()
    }

    /// The service account, roles and bindings. The roles hold exactly what [`rbac`](Self::rbac) computes, and
    /// in the operator's own namespace what leader election needs.
    pub fn rbac_manifests(&self, namespace: &str) -> Vec<Value> {
        let name = self.name();
        let mut manifests = vec![labelled(
            self,
            json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
            name,
            Some(namespace),
        )];
        match self.watched_namespaces() {
            None => manifests.extend(self.role(name, None, namespace, &self.rbac())),
            Some(namespaces) => {
                for watched in namespaces {
                    manifests.extend(self.role(name, Some(&watched), namespace, &self.rbac()));
                }
            }
        }
        let leases = [crate::rbac::rule("coordination.k8s.io", ["leases"], ["get", "create", "update"])];
        manifests.extend(self.role(&format!("{name}-leader-election"), Some(namespace), namespace, &leases));
        manifests
    }

    /// Everything that runs the operator in a cluster.
    pub fn manifests(&self, placement: &Placement) -> Vec<Value> {
        let namespace = &placement.namespace;
        let mut manifests = vec![labelled(self, namespace_manifest(), namespace, None)];
        manifests.extend(self.crd_manifests());
        manifests.extend(self.rbac_manifests(namespace));
        manifests.push(self.deployment(placement));
        manifests
    }

    /// The namespaces of the controllers; `None` if one of them watches all.
    fn watched_namespaces(&self) -> Option<std::collections::BTreeSet<String>> {
        self.controllers.iter().map(|controller| controller.namespace().map(ToOwned::to_owned)).collect()
    }

    /// A role and its binding: cluster-wide without a namespace.
    fn role(&self, name: &str, namespace: Option<&str>, account: &str, rules: &[PolicyRule]) -> [Value; 2] {
        let prefix = if namespace.is_some() { "" } else { "Cluster" };
        let api_version = "rbac.authorization.k8s.io/v1";
        let role = json!({ "apiVersion": api_version, "kind": format!("{prefix}Role"), "rules": rules });
        let binding = json!({
            "apiVersion": api_version,
            "kind": format!("{prefix}RoleBinding"),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": format!("{prefix}Role"), "name": name
            },
            "subjects": [{ "kind": "ServiceAccount", "name": self.name(), "namespace": account }],
        });
        [labelled(self, role, name, namespace), labelled(self, binding, name, namespace)]
    }

    fn deployment(&self, placement: &Placement) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.name() });
        let probe = |path: &str, delay: u32, period: u32| {
            json!({
                "httpGet": { "path": path, "port": "probes" },
                "initialDelaySeconds": delay, "periodSeconds": period,
            })
        };
        let container = json!({
            "name": "operator",
            "image": placement.image,
            "args": [
                "run", "--leader-elect", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081"
            ],
            "ports": [
                { "name": "metrics", "containerPort": 8080 }, { "name": "probes", "containerPort": 8081 }
            ],
            "env": [{
                "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } }
            }],
            "livenessProbe": probe("/healthz", 15, 20),
            "readinessProbe": probe("/readyz", 1, 5),
            "resources": {
                "requests": { "cpu": "10m", "memory": "64Mi" }, "limits": { "cpu": "500m", "memory": "128Mi" }
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "replicas": placement.replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": self.name(),
                        "securityContext": {
                            "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" }
                        },
                        "terminationGracePeriodSeconds": self.drain.as_secs() + 10,
                        "containers": [container],
                    },
                },
            },
        });
        labelled(self, deployment, self.name(), Some(&placement.namespace))
    }
}

fn namespace_manifest() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    })
}

fn labelled(operator: &Operator, mut manifest: Value, name: &str, namespace: Option<&str>) -> Value {
    let metadata = &mut manifest["metadata"];
    metadata["name"] = name.into();
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata["labels"]["app.kubernetes.io/name"] = operator.name().into();
    metadata["labels"]["app.kubernetes.io/managed-by"] = "windlass".into();
    manifest
}

/// The manifests as one YAML stream.
pub(super) fn to_yaml(manifests: &[Value]) -> Result<String, serde_saphyr::ser_error::Error> {
    let mut page = String::new();
    for manifest in manifests {
        page.push_str("---\n");
        page.push_str(&serde_saphyr::to_string(manifest)?);
    }
    Ok(page)
}

/// Applies manifests in order, by server-side apply: large CRDs fit, and running it again changes nothing.
pub(super) async fn apply(
    client: &Client,
    manager: &str,
    manifests: &[Value],
) -> Result<Vec<String>, InstallError> {
    let mut done = Vec::new();
    for manifest in manifests {
        let target = Target::of(manifest);
        let params = PatchParams::apply(manager).force();
        let sent = target.api(client).patch(&target.name, &params, &Patch::Apply(manifest)).await;
        sent.map_err(|source| target.failed("apply", source))?;
        done.push(format!("{} {}", target.resource.kind, target.name));
    }
    Ok(done)
}

/// Deletes manifests in reverse order; what is not there is no error.
pub(super) async fn delete(client: &Client, manifests: &[Value]) -> Result<Vec<String>, InstallError> {
    let mut done = Vec::new();
    for manifest in manifests.iter().rev() {
        let target = Target::of(manifest);
        match target.api(client).delete(&target.name, &DeleteParams::background()).await {
            Ok(_) => done.push(format!("{} {}", target.resource.kind, target.name)),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(target.failed("delete", source)),
        }
    }
    Ok(done)
}

struct Target {
    resource: ApiResource,
    namespace: Option<String>,
    name: String,
}

impl Target {
    fn of(manifest: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&manifest["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&manifest["kind"]));
        Self {
            // Every kind in this module has a regular plural.
            resource: ApiResource::from_gvk(&gvk),
            namespace: manifest["metadata"]["namespace"].as_str().map(ToOwned::to_owned),
            name: text(&manifest["metadata"]["name"]),
        }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> InstallError {
        tracing::debug!(error = chain(&source), "request failed");
        InstallError {
            verb,
            kind: self.resource.kind.clone(),
            name: self.name.clone(),
            source: Box::new(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};

    use super::*;
    use crate::{Action, Context, Controller, Reconciler};

    struct Maps;

    impl Reconciler for Maps {
        type Resource = ConfigMap;
        type Error = crate::Error;

        async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context<ConfigMap>) -> crate::Result<Action> {
            Ok(Action::await_change())
        }
    }

    fn kinds(manifests: &[Value]) -> Vec<&str> {
        manifests.iter().filter_map(|manifest| manifest["kind"].as_str()).collect()
    }

    #[test]
    fn a_controller_of_one_namespace_needs_no_cluster_role() {
        let wide = Operator::new("op").controller(Controller::new(Maps).owns::<Deployment>());
        let (account, role) = ("ServiceAccount", "Role");
        assert_eq!(
            kinds(&wide.rbac_manifests("sys")),
            [account, "ClusterRole", "ClusterRoleBinding", role, "RoleBinding"]
        );
        let narrow = Operator::new("op").controller(Controller::new(Maps).namespace("shop"));
        let manifests = narrow.rbac_manifests("sys");
        assert_eq!(kinds(&manifests), [account, role, "RoleBinding", role, "RoleBinding"]);
        assert_eq!(manifests[1]["metadata"]["namespace"], "shop");
        assert_eq!(manifests[2]["subjects"][0]["namespace"], "sys");
    }

    #[test]
    fn the_role_holds_exactly_what_is_computed() {
        let operator = Operator::new("op").controller(Controller::new(Maps).owns::<Deployment>());
        let manifests = operator.rbac_manifests("sys");
        assert_eq!(manifests[1]["rules"], serde_json::to_value(operator.rbac()).unwrap());
    }

    #[test]
    fn manifests_are_yaml_documents_in_an_order_that_can_be_applied() {
        let operator = Operator::new("op").controller(Controller::new(Maps));
        let placement = Placement { namespace: "sys".into(), image: "op:1".into(), replicas: 2 };
        let manifests = operator.manifests(&placement);
        assert_eq!((manifests[0]["kind"].as_str(), manifests.len()), (Some("Namespace"), 7));
        let yaml = to_yaml(&manifests).unwrap();
        assert_eq!(yaml.matches("---\n").count(), 7);
        assert!(yaml.contains("image: op:1"), "{yaml}");
    }
}
