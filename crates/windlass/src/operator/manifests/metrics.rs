//! Where an operator serves its metrics in a cluster, and what that takes: a Service, and the roles of those who ask.

use std::str::FromStr;

use serde_json::{Value, json};

use super::{Operator, Placement, labelled};

/// Where the metrics of an operator are served in a cluster, and to whom: with TLS at 8443 unless set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsEndpoint {
    /// The port of the Pods, and of the Service before them.
    pub port: u16,
    /// Whether they are served with TLS, and only to whom the API server lets read them. Otherwise everybody who reaches
    /// the port reads them, as in kubebuilder's projects of before, which have them at 8080.
    pub secure: bool,
}

impl Default for MetricsEndpoint {
    fn default() -> Self {
        Self { port: 8443, secure: true }
    }
}

impl MetricsEndpoint {
    /// The scheme of its URL, which is also the name of the Service's port.
    pub(super) fn scheme(self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// The port of an address as `--metrics-bind-address` has it: `:8080`.
    ///
    /// # Errors
    ///
    /// When there is no port, or one that the operator has another use for.
    pub fn parse_port(address: &str) -> Result<u16, String> {
        let port = u16::from_str(address.strip_prefix(':').unwrap_or(address)).unwrap_or_default();
        match port {
            0 => {
                Err(format!("{address:?} is no address of a Pod's metrics: write :PORT, for instance :8080"))
            }
            8081 | 9443 => Err(format!("port {port} is that of the operator's probes or webhooks")),
            port => Ok(port),
        }
    }
}

impl Operator {
    /// What serving metrics only to whom may see them takes, and a role for those who may.
    pub(super) fn metrics_roles(&self, namespace: &str) -> Vec<Value> {
        let name = self.name();
        let ask = [
            crate::rbac::rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
            crate::rbac::rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        ];
        let mut manifests = self.role("metrics-auth", None, namespace, &ask).to_vec();
        let read = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
        });
        manifests.push(labelled(self, read, &format!("{name}-metrics-reader"), None));
        manifests
    }

    pub(super) fn metrics_service(&self, placement: &Placement) -> Value {
        let port = placement.metrics.port;
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "spec": {
                "selector": { "app.kubernetes.io/name": self.name() },
                "ports": [{ "name": placement.metrics.scheme(), "port": port, "targetPort": "metrics" }],
            },
        });
        labelled(self, service, &format!("{}-metrics", self.name()), Some(&placement.namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_served_where_and_as_they_are_asked_for() {
        let metrics = MetricsEndpoint { port: MetricsEndpoint::parse_port(":8080").unwrap(), secure: false };
        let placement = Placement { metrics, ..Placement::new("sys", "op:1") };
        let operator = Operator::new("op");
        let objects = operator.manifests(&placement);
        let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        let container = &of("Deployment")["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].to_string();
        assert!(arguments.contains("--metrics-bind-address=:8080"), "{arguments}");
        assert!(arguments.contains("--metrics-secure=false"), "{arguments}");
        assert_eq!(container["ports"][0]["containerPort"], 8080);
        assert_eq!(
            of("Service")["spec"]["ports"][0],
            json!({"name": "http", "port": 8080, "targetPort": "metrics"})
        );
        let monitor = &operator.monitoring_manifests(&placement)[0]["spec"]["endpoints"][0];
        assert_eq!(monitor, &json!({"path": "/metrics", "port": "http", "scheme": "http"}));
        // Nobody is asked who may read them, so nothing is needed for that.
        let text = serde_json::to_string(&objects).unwrap();
        assert!(!text.contains("tokenreviews") && !text.contains("metrics-reader"), "{text}");
    }

    #[test]
    fn a_port_that_cannot_be_is_refused() {
        assert_eq!(MetricsEndpoint::parse_port("8080"), Ok(8080));
        for wrong in ["", "0", ":0", "host:8080", ":70000", ":8081", ":9443"] {
            assert!(MetricsEndpoint::parse_port(wrong).is_err(), "{wrong}");
        }
    }
}
