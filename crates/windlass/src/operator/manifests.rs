//! The objects that run an operator in a cluster: CRDs, RBAC, webhooks, Services and a Deployment, all from the code.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::wait::{await_condition, conditions},
};
use serde_json::{Value, json};

use super::Operator;
use crate::{error::chain, rbac::Reach};

mod webhooks;

pub(super) use webhooks::{secret_name, service};

/// Where and how the operator is to run.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The namespace of the operator.
    pub namespace: String,
    /// The image of the operator.
    pub image: String,
    /// How many replicas; one of them leads.
    pub replicas: u32,
    /// Who issues the certificate of the webhooks.
    pub certificates: CertificateSource,
}

impl Placement {
    /// One replica that issues its certificates itself.
    pub fn new(namespace: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            image: image.into(),
            replicas: 1,
            certificates: CertificateSource::default(),
        }
    }
}

/// Who issues the certificate of the webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateSource {
    /// The operator itself.
    #[default]
    Operator,
    /// cert-manager, which must be installed in the cluster.
    CertManager,
}

/// A failed request of `install` or `uninstall`.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {kind} {name}")]
pub struct InstallError {
    verb: &'static str,
    kind: String,
    name: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// How long a new kind may take to be served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// How long the objects of a kind may take to be finalized.
const GONE: Duration = Duration::from_mins(2);

impl Operator {
    /// Installs the custom kinds, and waits until they are served. Returns what was applied.
    ///
    /// Server-side apply: what is there already stays, and running it again changes nothing.
    pub async fn install(&self, client: &Client) -> Result<Vec<String>, InstallError> {
        let client = &self.patient(client.clone());
        let manifests = self.crd_manifests();
        let done = apply(client, self.name(), &manifests).await?;
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        for manifest in &manifests {
            let target = Target::of(manifest);
            let served = await_condition(crds.clone(), &target.name, conditions::is_crd_established());
            match tokio::time::timeout(ESTABLISHED, served).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(target.failed("establish", error)),
                Err(late) => return Err(target.failed("establish", late)),
            }
        }
        Ok(done)
    }

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
        let mut manifests = self.working_roles(namespace);
        manifests.extend(self.certificate_roles(namespace));
        manifests
    }

    /// Everything but what keeping certificates takes.
    fn working_roles(&self, namespace: &str) -> Vec<Value> {
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
                let rules = self.rules(Reach::Namespaced);
                for watched in namespaces {
                    manifests.extend(self.role(name, Some(&watched), namespace, &rules));
                }
                // No Role reaches what lives in no namespace.
                let rules = self.rules(Reach::Cluster);
                if !rules.is_empty() {
                    manifests.extend(self.role(name, None, namespace, &rules));
                }
            }
        }
        let leases = [crate::rbac::rule(
            "coordination.k8s.io",
            ["leases"],
            ["get", "list", "watch", "create", "update"],
        )];
        manifests.extend(self.role(&format!("{name}-leader-election"), Some(namespace), namespace, &leases));
        manifests.extend(self.metrics_roles(namespace));
        manifests
    }

    /// Everything that runs the operator in a cluster.
    pub fn manifests(&self, placement: &Placement) -> Vec<Value> {
        let namespace = &placement.namespace;
        let mut manifests = vec![labelled(self, namespace_manifest(), namespace, None)];
        manifests.extend(self.crd_manifests().into_iter().map(|crd| self.with_conversion(crd, placement)));
        manifests.extend(self.working_roles(namespace));
        if placement.certificates == CertificateSource::Operator {
            manifests.extend(self.certificate_roles(namespace));
        }
        manifests.push(self.metrics_service(placement));
        manifests.extend(self.webhook_service(placement));
        manifests.push(self.deployment(placement));
        manifests.extend(self.webhook_configurations(placement));
        manifests
    }

    /// What serving metrics only to whom may see them takes, and a role for those who may.
    fn metrics_roles(&self, namespace: &str) -> Vec<Value> {
        let name = self.name();
        let ask = [
            crate::rbac::rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
            crate::rbac::rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        ];
        let mut manifests = self.role(&format!("{name}-metrics-auth"), None, namespace, &ask).to_vec();
        let read = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
        });
        manifests.push(labelled(self, read, &format!("{name}-metrics-reader"), None));
        manifests
    }

    fn metrics_service(&self, placement: &Placement) -> Value {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "spec": {
                "selector": { "app.kubernetes.io/name": self.name() },
                "ports": [{ "name": "https", "port": 8443, "targetPort": "metrics" }],
            },
        });
        labelled(self, service, &format!("{}-metrics", self.name()), Some(&placement.namespace))
    }

    /// The namespaces of the controllers, or of the operator without any; `None` if one of them watches all.
    pub(super) fn watched_namespaces(&self) -> Option<BTreeSet<String>> {
        if self.controllers.is_empty() {
            return (!self.namespaces.is_empty()).then(|| self.namespaces.iter().cloned().collect());
        }
        let mut watched = BTreeSet::new();
        for controller in &self.controllers {
            let own = controller.namespaces();
            let namespaces = if own.is_empty() { self.namespaces.as_slice() } else { own };
            if namespaces.is_empty() {
                return None;
            }
            watched.extend(namespaces.iter().cloned());
        }
        Some(watched)
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

    /// The command line in a cluster. Namespaces that the program does not say itself must reach it.
    fn arguments(&self) -> Vec<String> {
        let fixed =
            ["run", "--leader-elect", "--metrics-bind-address=:8443", "--health-probe-bind-address=:8081"];
        let mut arguments: Vec<String> = fixed.map(ToOwned::to_owned).into();
        if !self.namespaces.is_empty() {
            arguments.push(format!("--watch-namespaces={}", self.namespaces.join(",")));
        }
        arguments
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
            "args": self.arguments(),
            "ports": [
                { "name": "metrics", "containerPort": 8443 }, { "name": "probes", "containerPort": 8081 }
            ],
            "env": [{
                "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } }
            }],
            "livenessProbe": probe("/healthz", 15, 20),
            "readinessProbe": probe("/readyz", 1, 5),
            // No limit of memory: a cache is as large as what is watched, which no manifest knows, and a process that
            // is ended while it lists will be ended again.
            "resources": { "requests": { "cpu": "10m", "memory": "64Mi" }, "limits": { "cpu": "500m" } },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        let mut deployment = json!({
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
        self.with_webhooks(&mut deployment, placement);
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

/// Waits until CRDs that were deleted are gone, and with them their objects and what those left to clean up.
pub(super) async fn await_gone(client: &Client, crds: &[Value]) -> Result<(), InstallError> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds {
        let target = Target::of(crd);
        let gone = await_condition(api.clone(), &target.name, |crd: Option<&CustomResourceDefinition>| {
            crd.is_none()
        });
        match tokio::time::timeout(GONE, gone).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(target.failed("await the end of", error)),
            Err(_) => return Err(target.failed("await the end of", Finalizing)),
        }
    }
    Ok(())
}

/// Objects that are not let go.
#[derive(Debug, thiserror::Error)]
#[error(
    "its objects still wait for their finalizers after {GONE:?}; is the operator running? \
     nothing else was deleted, so that it can go on"
)]
struct Finalizing;

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

    fn failed(
        &self,
        verb: &'static str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> InstallError {
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
mod tests;
