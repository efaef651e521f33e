//! Who may reach an operator's Pods over the network, under kubebuilder's names. Not part of what is applied by default.

use serde_json::{Value, json};

use super::{Operator, Placement, labelled};

impl Operator {
    /// NetworkPolicies that let nobody reach the operator but those who read its metrics, from namespaces with the label
    /// `metrics: enabled`, and the API server that asks its webhooks.
    ///
    /// They are apart from [`manifests`](Self::manifests), as with kubebuilder: a Prometheus whose namespace lacks the
    /// label would read nothing any more.
    pub fn network_policies(&self, placement: &Placement) -> Vec<Value> {
        let from = json!([{ "namespaceSelector": { "matchLabels": { "metrics": "enabled" } } }]);
        let mut policies = vec![self.policy("allow-metrics-traffic", "metrics", Some(from), placement)];
        if !self.webhooks.is_empty() {
            // From anywhere: the API server is in no namespace, and in most clusters in no Pod.
            policies.push(self.policy("allow-webhook-traffic", "webhook", None, placement));
        }
        policies
    }

    fn policy(&self, name: &str, port: &str, from: Option<Value>, placement: &Placement) -> Value {
        // The port of the Pod, which is what a policy is about, not that of a Service in front of it.
        let mut rule = json!({ "ports": [{ "port": port, "protocol": "TCP" }] });
        if let Some(from) = from {
            rule["from"] = from;
        }
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "spec": {
                "podSelector": { "matchLabels": self.selector() },
                "policyTypes": ["Ingress"],
                "ingress": [rule],
            },
        });
        labelled(self, policy, &format!("{}-{name}", self.name()), Some(&placement.namespace))
    }
}
