//! Who may do what.

use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::server::{CONFIG_MAPS, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

#[tokio::test]
async fn a_service_account_may_do_what_its_role_says() {
    let server = Server::new();
    let robot = server.as_user(Identity::service_account("default", "robot"));
    let refused = robot.get(CONFIG_MAPS).await.failed(403, "Forbidden");
    assert_eq!(
        refused,
        "configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot list resource \"configmaps\" in \
         API group \"\" in the namespace \"default\""
    );
    let role = json!({"metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]});
    server.post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding).await.expect_success();
    robot.get(CONFIG_MAPS).await.expect_success();
    robot.get("/api/v1/configmaps").await.failed(403, "Forbidden");
    robot.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.failed(403, "Forbidden");
    robot.get("/apis").await.expect_success();
}

#[tokio::test]
async fn a_rule_about_one_name_lets_that_one_be_listed_and_watched() {
    let server = Server::new();
    let role = json!({"metadata": {"name": "one"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"], "resourceNames": ["one"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    server.post(&bindings, &binding("one", "ClusterRole", "one", "robot")).await.expect_success();
    let robot = server.as_user(Identity::new("robot", []));
    for selector in
        ["metadata.name%3Done", "metadata.name%3D%3Done", "metadata.namespace%3Ddefault,metadata.name%3Done"]
    {
        robot.get(&format!("{CONFIG_MAPS}?fieldSelector={selector}")).await.expect_success();
        let watch = format!("{CONFIG_MAPS}?fieldSelector={selector}&watch=true&timeoutSeconds=1");
        assert_eq!(robot.get(&watch).await.status, 200, "{selector}");
    }
    for selector in ["", "metadata.name%21%3Done", "metadata.name%3Dtwo", "metadata.namespace%3Done"] {
        robot.get(&format!("{CONFIG_MAPS}?fieldSelector={selector}")).await.failed(403, "Forbidden");
    }
    let message = robot.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dtwo")).await;
    let message = message.failed(403, "Forbidden");
    assert!(message.starts_with("configmaps \"two\" is forbidden"), "{message}");
}

#[tokio::test]
async fn nobody_in_particular_may_ask_how_the_server_is() {
    let nobody = Server::new().as_user(Identity::anonymous());
    assert_eq!(nobody.get("/healthz").await.status, 200);
    nobody.get("/version").await.expect_success();
    let message = nobody.get("/apis").await.failed(403, "Forbidden");
    assert_eq!(message, "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
}

#[tokio::test]
async fn everybody_may_ask_what_they_may_do() {
    let server = Server::new();
    let robot = server.as_user(Identity::service_account("default", "robot"));
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let question =
        json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}});
    assert_eq!(robot.post(path, &question).await.expect_success()["status"], json!({"allowed": false}));
    assert_eq!(server.post(path, &question).await.expect_success()["status"], json!({"allowed": true}));
    let who =
        robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.expect_success();
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    server
        .get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .await
        .failed(405, "MethodNotAllowed");
}

/// A user who may write roles and bindings, and read configmaps.
async fn clerk(server: &Server) -> Server {
    let role = json!({"metadata": {"name": "clerk"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "verbs": ["create", "update", "patch", "get"],
            "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    server
        .post(&format!("{RBAC}/clusterrolebindings"), &binding("clerk", "ClusterRole", "clerk", "clerk"))
        .await
        .expect_success();
    server.as_user(Identity::new("clerk", []))
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]})
}

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let server = Server::new();
    let clerk = clerk(&server).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let own = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let more = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]});
    let apps = json!({"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["*"],
        "resourceNames": ["a"]});
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    clerk.post(&roles, &role("ok", json!([own]))).await.expect_success();
    let start = "is forbidden: user \"clerk\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC \
        permissions not currently held:\n";
    let secrets = "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}";
    let message = clerk.post(&roles, &role("esc", json!([own, more, apps]))).await.failed(403, "Forbidden");
    assert_eq!(
        message,
        format!(
            "roles.rbac.authorization.k8s.io \"esc\" {start}{secrets}\n{{APIGroups:[\"apps\"], \
        Resources:[\"deployments\"], ResourceNames:[\"a\"], Verbs:[\"*\"]}}\n{{APIGroups:[\"apps\"], \
        Resources:[\"replicasets\"], ResourceNames:[\"a\"], Verbs:[\"*\"]}}"
        )
    );
    let patch = json!({"rules": [own, more]});
    let message = clerk.merge(&format!("{roles}/ok"), &patch).await.failed(403, "Forbidden");
    assert_eq!(message, format!("roles.rbac.authorization.k8s.io \"ok\" {start}{secrets}"));
    server.post(&roles, &role("secretive", json!([more]))).await.expect_success();
    clerk.post(&bindings, &binding("fine", "Role", "ok", "x")).await.expect_success();
    let message =
        clerk.post(&bindings, &binding("b", "Role", "secretive", "x")).await.failed(403, "Forbidden");
    assert_eq!(message, format!("rolebindings.rbac.authorization.k8s.io \"b\" {start}{secrets}"));
    let message = clerk.post(&bindings, &binding("c", "Role", "missing", "x")).await.failed(404, "NotFound");
    assert_eq!(message, "rolebindings.rbac.authorization.k8s.io \"missing\" not found");
    let all = binding("d", "ClusterRole", "cluster-admin", "clerk");
    let message = clerk.post(&format!("{RBAC}/clusterrolebindings"), &all).await.failed(403, "Forbidden");
    assert_eq!(
        message,
        format!(
            "clusterrolebindings.rbac.authorization.k8s.io \"d\" {start}{{APIGroups:[\"*\"], \
        Resources:[\"*\"], Verbs:[\"*\"]}}\n{{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}}"
        )
    );
    clerk
        .merge(&format!("{roles}/secretive"), &json!({"metadata": {"finalizers": ["a.b/c"]}}))
        .await
        .expect_success();
    let mut aggregate = role("agg", json!([]));
    aggregate["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"agg": "yes"}}]});
    let message = clerk.post(&format!("{RBAC}/clusterroles"), &aggregate).await.failed(403, "Forbidden");
    assert_eq!(
        message,
        "clusterroles.rbac.authorization.k8s.io \"agg\" is forbidden: must have cluster-admin \
        privileges to use the aggregationRule"
    );
}

#[tokio::test]
async fn escalate_and_bind_are_permissions_of_their_own() {
    let server = Server::new();
    let clerk = clerk(&server).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let special = json!({"metadata": {"name": "special"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["bind"],
            "resourceNames": ["view"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &special).await.expect_success();
    server.post(&bindings, &binding("special", "ClusterRole", "special", "clerk")).await.expect_success();
    clerk.post(&roles, &json!({"metadata": {"name": "any"}, "rules": secrets})).await.expect_success();
    clerk.post(&bindings, &binding("viewer", "ClusterRole", "view", "x")).await.expect_success();
    clerk.post(&bindings, &binding("editor", "ClusterRole", "edit", "x")).await.failed(403, "Forbidden");
    clerk.post(&bindings, &binding("any", "Role", "any", "x")).await.failed(403, "Forbidden");
}

#[tokio::test]
async fn an_aggregated_role_is_made_of_others() {
    let server = Server::new();
    let path = format!("{RBAC}/clusterroles");
    let part = |name: &str, resource: &str| {
        json!({"metadata": {"name": name, "labels": {"agg": "yes"}},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]})
    };
    let whole = json!({"metadata": {"name": "whole"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"agg": "yes"}}]}});
    server.post(&path, &part("one", "pods")).await.expect_success();
    server.post(&path, &whole).await.expect_success();
    server.post(&path, &part("two", "nodes")).await.expect_success();
    let resources = |role: Value| -> Vec<Value> {
        role["rules"].as_array().into_iter().flatten().map(|rule| rule["resources"][0].clone()).collect()
    };
    assert_eq!(resources(server.get(&format!("{path}/whole")).await.expect_success()), ["pods", "nodes"]);
    server.delete(&format!("{path}/one"), &Value::Null).await.expect_success();
    assert_eq!(resources(server.get(&format!("{path}/whole")).await.expect_success()), ["nodes"]);
    let edit = server.get(&format!("{path}/edit")).await.expect_success();
    let view = server.get(&format!("{path}/view")).await.expect_success();
    assert!(edit["rules"].as_array().unwrap().len() > view["rules"].as_array().unwrap().len());
}

#[tokio::test]
async fn everybody_may_ask_for_all_that_they_may_do() {
    let server = Server::new();
    let clerk = clerk(&server).await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let status =
        clerk.post(path, &json!({"spec": {"namespace": "default"}})).await.expect_success()["status"].clone();
    assert_eq!(status["incomplete"], false);
    let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]});
    assert!(status["resourceRules"].as_array().unwrap().contains(&rule), "{status}");
    assert!(status["nonResourceRules"].as_array().unwrap().len() >= 2, "{status}");
}
