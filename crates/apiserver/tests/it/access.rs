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
    server.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
    let binding = json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]});
    server.post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding).await.ok();
    robot.get(CONFIG_MAPS).await.ok();
    robot.get("/api/v1/configmaps").await.failed(403, "Forbidden");
    robot.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.failed(403, "Forbidden");
    robot.get("/apis").await.ok();
}

#[tokio::test]
async fn nobody_in_particular_may_ask_how_the_server_is() {
    let nobody = Server::new().as_user(Identity::anonymous());
    assert_eq!(nobody.get("/healthz").await.status, 200);
    nobody.get("/version").await.ok();
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
    assert_eq!(robot.post(path, &question).await.ok()["status"], json!({"allowed": false}));
    assert_eq!(server.post(path, &question).await.ok()["status"], json!({"allowed": true}));
    let who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.ok();
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    server
        .get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .await
        .failed(405, "MethodNotAllowed");
}
