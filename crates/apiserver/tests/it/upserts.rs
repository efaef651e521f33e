//! Writes that create what is not there: when they end, and who may send them.

use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::{
    hook::Hook,
    server::{CONFIG_MAPS, DEFINITIONS, Server, config_map},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A user with a ClusterRole of these rules.
async fn user(server: &Server, name: &str, rules: &Value) -> Server {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]});
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect_success();
    server.as_user(Identity::new(name, []))
}

#[tokio::test]
async fn an_apply_into_a_missing_namespace_of_the_same_name_is_answered() {
    let server = Server::new();
    let path = "/api/v1/namespaces/foo/configmaps/foo";
    let message = server.apply(path, "one", &config_map("foo", &json!({}))).await.failed(404, "NotFound");
    assert_eq!(message, "namespaces \"foo\" not found");
}

#[tokio::test]
async fn an_apply_of_a_binding_to_a_missing_role_of_the_same_name_is_answered() {
    let server = Server::new();
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"],
        "verbs": ["get", "create", "patch"]}]);
    let clerk = user(&server, "clerk", &rules).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}, "subjects": []});
    let path = format!("{RBAC}/namespaces/default/rolebindings/x");
    let message = clerk.apply(&path, "one", &binding).await.failed(404, "NotFound");
    assert_eq!(message, "rolebindings.rbac.authorization.k8s.io \"x\" not found");
}

/// A webhook that refuses every ConfigMap with this status.
async fn refusing(server: &Server, code: u16, reason: &str, name: &str) -> Hook {
    let status = json!({"code": code, "reason": reason, "message": "no", "details": {"name": name}});
    let hook = Hook::responding(json!({"allowed": false, "status": status})).await;
    let rule =
        json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let configuration = json!({"metadata": {"name": "refusing"}, "webhooks": [{"name": "hook.example.com",
        "clientConfig": hook.client_config(), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [rule]}]});
    server.post(HOOKS, &configuration).await.expect_success();
    hook
}

#[tokio::test]
async fn a_refusal_that_reads_like_a_lost_race_is_no_reason_to_ask_again() {
    for (code, reason) in [(404, "NotFound"), (409, "AlreadyExists"), (409, "Conflict")] {
        let server = Server::new();
        let hook = refusing(&server, code, reason, "a").await;
        let applied = server.apply(&format!("{CONFIG_MAPS}/a"), "one", &config_map("a", &json!({}))).await;
        assert_eq!(applied.status.as_u16(), code, "{}", applied.body);
        assert_eq!(hook.seen().len(), 1, "an apply that {reason} refuses");
        let generated = json!({"metadata": {"generateName": "a-"}});
        assert_eq!(server.post(CONFIG_MAPS, &generated).await.status.as_u16(), code);
        assert_eq!(hook.seen().len(), 2, "a generated name that {reason} refuses");
    }
}

fn widgets() -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// A kind of the table below: its group, plural, kind and what its objects need.
struct Kind(&'static str, &'static str, &'static str, Value);

impl Kind {
    fn path(&self) -> String {
        let prefix = if self.0.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.0) };
        format!("{prefix}/v1/namespaces/default/{}/a", self.1)
    }

    fn object(&self) -> Value {
        let version = if self.0.is_empty() { "v1".to_owned() } else { format!("{}/v1", self.0) };
        let mut object = json!({"apiVersion": version, "kind": self.2, "metadata": {"name": "a"}});
        object.as_object_mut().unwrap().extend(self.3.as_object().unwrap().clone());
        object
    }

    /// What somebody is told who may only change objects of this kind.
    fn refusal(&self) -> String {
        let Self(group, plural, ..) = self;
        let named = if group.is_empty() { (*plural).to_owned() } else { format!("{plural}.{group}") };
        format!(
            "{named} \"a\" is forbidden: User \"changer\" cannot create resource \"{plural}\" in API group \"{group}\" in \
             the namespace \"default\""
        )
    }
}

#[tokio::test]
async fn the_right_to_change_is_not_the_right_to_create() {
    let server = Server::new();
    server.post(DEFINITIONS, &widgets()).await.expect_success();
    let rules = |verbs: &[&str]| json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]);
    let changer = user(&server, "changer", &rules(&["get", "update", "patch"])).await;
    let maker = user(&server, "maker", &rules(&["get", "update", "patch", "create"])).await;
    let kinds = [
        Kind("", "configmaps", "ConfigMap", json!({})),
        Kind("", "services", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        Kind("", "endpoints", "Endpoints", json!({})),
        Kind("", "limitranges", "LimitRange", json!({"spec": {"limits": []}})),
        Kind("coordination.k8s.io", "leases", "Lease", json!({})),
        Kind("rbac.authorization.k8s.io", "roles", "Role", json!({"rules": []})),
        Kind("example.com", "widgets", "Widget", json!({})),
    ];
    for kind in kinds {
        let (path, object) = (kind.path(), kind.object());
        assert_eq!(changer.apply(&path, "one", &object).await.failed(403, "Forbidden"), kind.refusal());
        let by_put = !["configmaps", "widgets"].contains(&kind.1);
        let put = changer.put(&path, &object).await;
        if by_put {
            assert_eq!(put.failed(403, "Forbidden"), kind.refusal());
        }
        server.get(&path).await.failed(404, "NotFound");
        let made =
            if by_put { maker.put(&path, &object).await } else { maker.apply(&path, "one", &object).await };
        assert_eq!(made.status, 201, "{path}: {}", made.body);
        changer.merge(&path, &json!({"metadata": {"labels": {"changed": "yes"}}})).await.expect_success();
    }
}
