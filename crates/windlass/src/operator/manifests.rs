//! The objects that run an operator in a cluster: CRDs, RBAC, webhooks, Services and a Deployment, all from the code.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::Operator;
use crate::rbac::Reach;

mod kinds;
mod metrics;
mod monitoring;
mod names;
mod network;
mod webhooks;

pub use metrics::MetricsEndpoint;
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
    /// What stands before every name, as kubebuilder has it: `pod-operator-` makes the Deployment
    /// `pod-operator-controller-manager`. Without it everything begins with the operator's name.
    pub name_prefix: Option<String>,
    /// Where metrics are served, and to whom.
    pub metrics: MetricsEndpoint,
    /// Secrets of the operator's namespace with which its image is pulled: for a registry that asks for a password.
    pub image_pull_secrets: Vec<String>,
}

impl Placement {
    /// One replica that issues its certificates itself.
    pub fn new(namespace: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            image: image.into(),
            replicas: 1,
            certificates: CertificateSource::default(),
            name_prefix: None,
            metrics: MetricsEndpoint::default(),
            image_pull_secrets: Vec::new(),
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
    /// in the operator's own namespace what leader election needs. For people there are roles to administer, edit and
    /// view each kind, which nobody is bound to.
    pub fn rbac_manifests(&self, namespace: &str) -> Vec<Value> {
        let mut manifests = self.working_roles(namespace, MetricsEndpoint::default());
        manifests.extend(self.certificate_roles(namespace));
        manifests
    }

    /// Everything but what keeping certificates takes.
    fn working_roles(&self, namespace: &str, metrics: MetricsEndpoint) -> Vec<Value> {
        let name = self.name();
        let mut manifests = vec![labelled(
            self,
            json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
            name,
            Some(namespace),
        )];
        match self.watched_namespaces() {
            None => manifests.extend(self.role("manager", None, namespace, &self.rbac())),
            Some(namespaces) => {
                let rules = self.rules(Reach::Namespaced);
                for watched in namespaces {
                    manifests.extend(self.role("manager", Some(&watched), namespace, &rules));
                }
                // No Role reaches what lives in no namespace.
                let rules = self.rules(Reach::Cluster);
                if !rules.is_empty() {
                    manifests.extend(self.role("manager", None, namespace, &rules));
                }
            }
        }
        let leases = [crate::rbac::rule(
            "coordination.k8s.io",
            ["leases"],
            ["get", "list", "watch", "create", "update"],
        )];
        manifests.extend(self.role("leader-election", Some(namespace), namespace, &leases));
        if metrics.secure {
            manifests.extend(self.metrics_roles(namespace));
        }
        manifests.extend(self.kind_roles());
        manifests
    }

    /// Everything that runs the operator in a cluster.
    pub fn manifests(&self, placement: &Placement) -> Vec<Value> {
        self.named(self.own_manifests(placement), placement)
    }

    /// The same by the operator's own names.
    pub(super) fn own_manifests(&self, placement: &Placement) -> Vec<Value> {
        let namespace = &placement.namespace;
        let mut manifests = vec![labelled(self, namespace_manifest(), namespace, None)];
        manifests.extend(self.crd_manifests().into_iter().map(|crd| self.with_conversion(crd, placement)));
        manifests.extend(self.working_roles(namespace, placement.metrics));
        if placement.certificates == CertificateSource::Operator {
            manifests.extend(self.certificate_roles(namespace));
        }
        manifests.push(self.metrics_service(placement));
        manifests.extend(self.webhook_service(placement));
        manifests.push(self.deployment(placement));
        manifests.extend(self.disruption_budget(placement));
        manifests.extend(self.webhook_configurations(placement));
        manifests
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
    ///
    /// What is between the operator's name and the suffix is what kubebuilder calls it, so that behind the prefix
    /// that it gives to every name stands what its overlays and its users look for: `manager-role`.
    fn role(&self, part: &str, namespace: Option<&str>, account: &str, rules: &[PolicyRule]) -> [Value; 2] {
        let name = format!("{}-{part}-role", self.name());
        let bound = format!("{}-{part}-rolebinding", self.name());
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
        [labelled(self, role, &name, namespace), labelled(self, binding, &bound, namespace)]
    }

    /// The command line in a cluster. Namespaces that the program does not say itself must reach it.
    fn arguments(&self, placement: &Placement) -> Vec<String> {
        let MetricsEndpoint { port, secure } = placement.metrics;
        let metrics = format!("--metrics-bind-address=:{port}");
        let fixed = ["run", "--leader-elect", &metrics, "--health-probe-bind-address=:8081"];
        let mut arguments: Vec<String> = fixed.map(ToOwned::to_owned).into();
        if !secure {
            arguments.push("--metrics-secure=false".into());
        }
        if !self.namespaces.is_empty() {
            arguments.push(format!("--watch-namespaces={}", self.namespaces.join(",")));
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }

    /// What keeps a drained node from taking all replicas at once; one alone it could only keep from being drained.
    fn disruption_budget(&self, placement: &Placement) -> Option<Value> {
        let budget = json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": self.selector() } },
        });
        let several = placement.replicas > 1;
        several.then(|| labelled(self, budget, self.name(), Some(&placement.namespace)))
    }

    /// The labels by which the operator's Pods are found.
    fn selector(&self) -> Value {
        json!({ "app.kubernetes.io/name": self.name() })
    }

    fn deployment(&self, placement: &Placement) -> Value {
        let labels = self.selector();
        // The second is what kubebuilder's projects select by.
        let pod_labels =
            json!({ "app.kubernetes.io/name": self.name(), "control-plane": "controller-manager" });
        let probe = |path: &str, delay: u32, period: u32| {
            json!({
                "httpGet": { "path": path, "port": "probes" },
                "initialDelaySeconds": delay, "periodSeconds": period,
            })
        };
        let container = json!({
            // As kubebuilder calls it, so that patches and `kubectl logs -c` fit.
            "name": "manager",
            "image": placement.image,
            "args": self.arguments(placement),
            "ports": [
                { "name": "metrics", "containerPort": placement.metrics.port },
                { "name": "probes", "containerPort": 8081 },
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
                // A new replica is ready before an old one goes: whoever asks a webhook meanwhile is answered.
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
                },
                "template": {
                    "metadata": { "labels": pod_labels },
                    "spec": {
                        "affinity": { "podAntiAffinity": {
                            // Preferred: a cluster of one node takes all replicas.
                            "preferredDuringSchedulingIgnoredDuringExecution": [{
                                "weight": 100,
                                "podAffinityTerm": {
                                    "labelSelector": { "matchLabels": labels },
                                    "topologyKey": "kubernetes.io/hostname",
                                },
                            }],
                        }},
                        "topologySpreadConstraints": [{
                            "labelSelector": { "matchLabels": labels },
                            "maxSkew": 1,
                            "topologyKey": "topology.kubernetes.io/zone",
                            "whenUnsatisfiable": "ScheduleAnyway",
                        }],
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
        if !placement.image_pull_secrets.is_empty() {
            let secrets = placement.image_pull_secrets.iter().map(|name| json!({ "name": name }));
            deployment["spec"]["template"]["spec"]["imagePullSecrets"] = secrets.collect();
        }
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

#[cfg(test)]
pub(super) mod tests;
