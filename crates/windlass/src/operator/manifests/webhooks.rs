//! What a cluster needs for an operator's webhooks: a Service, the configurations, the conversion of CRDs, and the
//! permissions or cert-manager objects for their certificates.

use serde::Serialize;
use serde_json::{Value, json};

use super::{CertificateSource, Operator, Placement, labelled};
use crate::{rbac::rule, webhook::Reach};

/// Where cert-manager's certificate is mounted, by controller-runtime's convention.
const MOUNT: &str = "/tmp/k8s-webhook-server/serving-certs";

/// For how many seconds a replica answers webhooks after it was told to end: until everybody who balances the load has
/// heard of it.
const DELAY: u64 = 5;

/// The Secret in which the certificates are kept.
pub(crate) fn secret_name(operator: &str) -> String {
    format!("{operator}-webhook-certificates")
}

/// How the API server reaches the webhooks of an operator in this namespace.
pub(crate) fn service(operator: &str, namespace: &str) -> Reach {
    Reach::Service { namespace: namespace.to_owned(), name: format!("{operator}-webhook") }
}

impl Operator {
    /// The Service of the webhooks and, with cert-manager, what makes it issue their certificate.
    pub(super) fn webhook_service(&self, placement: &Placement) -> Vec<Value> {
        if self.webhooks.is_empty() {
            return Vec::new();
        }
        let (name, namespace) = (self.name(), &placement.namespace);
        let spec = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "spec": {
                "selector": { "app.kubernetes.io/name": name },
                "ports": [{ "name": "webhook", "port": 443, "targetPort": "webhook" }],
            },
        });
        let mut manifests = vec![labelled(self, spec, &format!("{name}-webhook"), Some(namespace))];
        if placement.certificates == CertificateSource::CertManager {
            manifests.extend(self.cert_manager(namespace));
        }
        manifests
    }

    fn cert_manager(&self, namespace: &str) -> [Value; 2] {
        let name = self.name();
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "spec": { "selfSigned": {} },
        });
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "spec": {
                "dnsNames": service(name, namespace).names(),
                "issuerRef": { "kind": "Issuer", "name": format!("{name}-selfsigned") },
                "secretName": secret_name(name),
            },
        });
        [
            labelled(self, issuer, &format!("{name}-selfsigned"), Some(namespace)),
            labelled(self, certificate, &format!("{name}-serving"), Some(namespace)),
        ]
    }

    /// The configurations, which come last: they make the API server ask.
    pub(super) fn webhook_configurations(&self, placement: &Placement) -> Vec<Value> {
        let reach = service(self.name(), &placement.namespace);
        let validating = self.webhooks.validating(self.name(), &reach, None).map(|c| encode(&c));
        let mutating = self.webhooks.mutating(self.name(), &reach, None).map(|c| encode(&c));
        let typed =
            [("MutatingWebhookConfiguration", mutating), ("ValidatingWebhookConfiguration", validating)];
        let finish = |(kind, configuration): (&str, Option<Value>)| {
            let mut manifest = configuration?;
            manifest["apiVersion"] = "admissionregistration.k8s.io/v1".into();
            manifest["kind"] = kind.into();
            let mut manifest = labelled(self, manifest, self.name(), None);
            self.annotate(&mut manifest, placement);
            Some(manifest)
        };
        typed.into_iter().filter_map(finish).collect()
    }

    /// Adds the conversion webhook to the CRDs that have one.
    pub(super) fn with_conversion(&self, mut crd: Value, placement: &Placement) -> Value {
        let converted = self.webhooks.conversions.iter().any(|conversion| {
            let kind = conversion.kind();
            crd["spec"]["group"] == kind.group.as_str() && crd["spec"]["names"]["kind"] == kind.kind.as_str()
        });
        if converted {
            crd["spec"]["conversion"] = service(self.name(), &placement.namespace).conversion(None);
            self.annotate(&mut crd, placement);
        }
        crd
    }

    /// Lets cert-manager put its authority in.
    fn annotate(&self, manifest: &mut Value, placement: &Placement) {
        if placement.certificates == CertificateSource::CertManager {
            let certificate = format!("{}/{}-serving", placement.namespace, self.name());
            manifest["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = certificate.into();
        }
    }

    /// What keeping the certificates takes: one Secret by name, and the objects that carry the authority by name.
    pub(super) fn certificate_roles(&self, namespace: &str) -> Vec<Value> {
        if self.webhooks.is_empty() {
            return Vec::new();
        }
        let named = |group: &str, resource: &str, verb: &str, names: Vec<String>| {
            let mut rule = rule(group, [resource], ["get", "list", "watch", verb]);
            rule.resource_names = Some(names);
            rule
        };
        let (name, mut wide) = (self.name(), Vec::new());
        let reach = service(name, namespace);
        if self.webhooks.mutating(name, &reach, None).is_some() {
            let resource = "mutatingwebhookconfigurations";
            wide.push(named("admissionregistration.k8s.io", resource, "patch", vec![name.to_owned()]));
        }
        if self.webhooks.validating(name, &reach, None).is_some() {
            let resource = "validatingwebhookconfigurations";
            wide.push(named("admissionregistration.k8s.io", resource, "patch", vec![name.to_owned()]));
        }
        let kinds = self.webhooks.conversions.iter().map(|conversion| conversion.kind());
        let crds: Vec<String> = kinds.map(|kind| format!("{}.{}", kind.plural, kind.group)).collect();
        if !crds.is_empty() {
            wide.push(named("apiextensions.k8s.io", "customresourcedefinitions", "patch", crds));
        }
        // Kubernetes cannot restrict a creation to a name.
        let own =
            [rule("", ["secrets"], ["create"]), named("", "secrets", "update", vec![secret_name(name)])];
        let mut manifests = self.role("webhook-certificates", None, namespace, &wide).to_vec();
        manifests.extend(self.role("webhook-certificates", Some(namespace), namespace, &own));
        manifests
    }

    /// What the webhooks change in the operator's Deployment.
    pub(super) fn with_webhooks(&self, deployment: &mut Value, placement: &Placement) {
        if self.webhooks.is_empty() {
            return;
        }
        let pod = &mut deployment["spec"]["template"]["spec"];
        push(&mut pod["containers"][0]["ports"], json!({ "name": "webhook", "containerPort": 9443 }));
        push(&mut pod["containers"][0]["args"], "--webhook-port=9443".into());
        push(&mut pod["containers"][0]["args"], format!("--shutdown-delay-duration={DELAY}s").into());
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or_default();
        pod["terminationGracePeriodSeconds"] = (grace + DELAY).into();
        if !self.webhooks.conversions.is_empty() {
            // The caches fill only once the API server reaches the conversion, and it reaches replicas that are ready.
            pod["containers"][0]["readinessProbe"]["httpGet"]["path"] = "/readyz?exclude=watches".into();
        }
        if placement.certificates == CertificateSource::CertManager {
            push(&mut pod["containers"][0]["args"], format!("--webhook-cert-path={MOUNT}").into());
            let mount = json!({ "name": "webhook-certificates", "mountPath": MOUNT, "readOnly": true });
            push(&mut pod["containers"][0]["volumeMounts"], mount);
            let secret = json!({ "secretName": secret_name(self.name()) });
            push(&mut pod["volumes"], json!({ "name": "webhook-certificates", "secret": secret }));
        }
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

fn encode(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("a webhook configuration must serialise")
}
