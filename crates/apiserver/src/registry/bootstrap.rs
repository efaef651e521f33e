//! What a new cluster has before anybody asks for it.

use serde_json::{Value, json};

use super::{
    Registry,
    resource::text,
    write::{Target, WriteOptions},
};
use crate::error::{Error, Reason, Result};

const RBAC: &str = "rbac.authorization.k8s.io";

/// What those may see who watch over the server.
const MONITORING: [&str; 8] =
    ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"];

fn see(paths: &[&str]) -> Value {
    json!([{"nonResourceURLs": paths, "verbs": ["get"]}])
}

/// Who may do what before anybody was given anything: role, rules, and the groups that have it.
fn roles() -> [(&'static str, Value, &'static [&'static str]); 5] {
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    let reviews = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]}]);
    [
        ("cluster-admin", all, &["system:masters"]),
        ("system:basic-user", reviews, &["system:authenticated"]),
        ("system:discovery", see(&discovery), &["system:authenticated"]),
        (
            "system:service-account-issuer-discovery",
            see(&[
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ]),
            &["system:serviceaccounts"],
        ),
        ("system:public-info-viewer", see(&health), &["system:authenticated", "system:unauthenticated"]),
    ]
}

/// The roles for people, `view`, `edit` and `admin`, and what they are made of, as the real server has them.
const AGGREGATED: &str = include_str!("roles.txt");

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The Service of the API itself, in the namespace `default`.
pub fn api_service() -> Value {
    json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

impl Registry {
    /// Creates the namespaces, the first roles and the Service of the API itself, where they are not there already.
    pub(super) fn bootstrap(&self) -> Result<()> {
        for name in NAMESPACES {
            self.ensure("", "namespaces", "", json!({"metadata": {"name": name}}))?;
        }
        for (name, rules, groups) in roles() {
            self.ensure_role(name, rules, groups)?;
        }
        for role in AGGREGATED.lines() {
            let role = serde_json::from_str(role).map_err(Error::internal)?;
            self.ensure(RBAC, "clusterroles", "", role)?;
        }
        for (name, value, description) in [
            (
                "system-cluster-critical",
                2_000_000_000,
                "Used for system critical pods that must run in the cluster, but can be moved to another node if \
                 necessary.",
            ),
            (
                "system-node-critical",
                2_000_001_000,
                "Used for system critical pods that must not be moved from their current node.",
            ),
        ] {
            self.ensure(
                "scheduling.k8s.io",
                "priorityclasses",
                "",
                json!({"metadata": {"name": name}, "value": value, "description": description}),
            )?;
        }
        self.ensure(
            "networking.k8s.io",
            "servicecidrs",
            "",
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}),
        )?;
        self.ensure("", "services", "default", api_service())?;
        self.ensure_role("system:monitoring", see(&MONITORING), &["system:monitoring"])
    }

    fn ensure_role(&self, name: &str, rules: Value, groups: &[&str]) -> Result<()> {
        let metadata = json!({"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}});
        self.ensure(RBAC, "clusterroles", "", json!({"metadata": metadata, "rules": rules}))?;
        let subjects = groups.iter().map(|group| json!({"apiGroup": RBAC, "kind": "Group", "name": group}));
        let binding = json!({"metadata": metadata, "subjects": subjects.collect::<Vec<_>>(),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}});
        self.ensure(RBAC, "clusterrolebindings", "", binding)
    }

    fn ensure(&self, group: &str, plural: &str, namespace: &str, value: Value) -> Result<()> {
        let resource = self.resource(group, "v1", plural)?;
        let target = Target { resource: &resource, namespace, name: "", subresource: "" };
        // What an earlier life of the server made has its address already.
        if self.get(&resource, namespace, text(&value, "/metadata/name")).is_ok() {
            return Ok(());
        }
        let options = WriteOptions { manager: "kube-apiserver".into(), ..WriteOptions::default() };
        match self.create_own(target, value.into(), &options) {
            Err(Error { reason: Some(Reason::AlreadyExists), .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
