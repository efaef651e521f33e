//! Tokens of service accounts, who they make of a client, and who a client may pretend to be.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::server::{Answer, PODS, Server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/robot/token";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn server() -> Server {
    let server = Server::new();
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect_success();
    server
}

async fn token(server: &Server, spec: &Value) -> String {
    let answer = server.post(TOKEN, &json!({"spec": spec})).await.expect_success();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

async fn review(server: &Server, token: &str) -> Value {
    server.post(REVIEWS, &json!({"spec": {"token": token}})).await.expect_success()["status"].clone()
}

async fn bearer(server: &Server, token: &str, method: Method, path: &str, body: &Value) -> Answer {
    let nobody = server.as_user(Identity::anonymous());
    nobody.with_headers(method, path, &[("authorization", &format!("Bearer {token}"))], body).await
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn pod(name: &str, account: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account,
        "containers": [{"name": "c", "image": "x"}]}})
}

#[tokio::test]
async fn a_token_makes_its_bearer_the_service_account() {
    let server = server().await;
    let account = server.get(&format!("{ACCOUNTS}/robot")).await.expect_success();
    let answer = server.post(TOKEN, &json!({"spec": {}})).await;
    assert_eq!(answer.status, 201);
    let made = answer.body;
    assert_eq!(
        made["spec"],
        json!({"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600,
        "boundObjectRef": null})
    );
    let token = made["status"]["token"].as_str().unwrap();
    let said = claims(token);
    // The clock runs: what is known is the distance.
    let expires: Timestamp = made["status"]["expirationTimestamp"].as_str().unwrap().parse().unwrap();
    assert_eq!(said["exp"], expires.as_second());
    assert_eq!(said["exp"].as_i64().unwrap() - said["iat"].as_i64().unwrap(), 3600);
    assert_eq!(
        said["kubernetes.io"],
        json!({"namespace": "default",
        "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}})
    );
    assert_eq!(said["sub"], "system:serviceaccount:default:robot");
    let who = bearer(&server, token, Method::POST, WHO_AM_I, &json!({})).await.expect_success();
    let user = json!({"username": "system:serviceaccount:default:robot", "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", said["jti"].as_str().unwrap())]}});
    assert_eq!(who["status"]["userInfo"], user);
    let reviewed = review(&server, token).await;
    assert_eq!(
        reviewed,
        json!({"authenticated": true, "user": user,
        "audiences": ["https://kubernetes.default.svc"]})
    );
    let refused = bearer(&server, token, Method::GET, PODS, &Value::Null).await.failed(403, "Forbidden");
    assert!(refused.contains("User \"system:serviceaccount:default:robot\" cannot list"), "{refused}");
}

#[tokio::test]
async fn what_is_no_token_of_ours_is_unauthorized() {
    let server = server().await;
    let token = token(&server, &json!({})).await;
    let forged = format!("{}AAAA", &token[..token.len() - 4]);
    for bad in ["bad", "a.b.c", &forged] {
        let answer = bearer(&server, bad, Method::GET, "/healthz", &Value::Null).await;
        assert_eq!(
            answer.body,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401})
        );
    }
    assert_eq!(review(&server, "abc").await, json!({"user": {}, "error": "invalid bearer token"}));
    let said = review(&server, &forged).await;
    assert_eq!(said["error"], "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]");
    let message = server.post(REVIEWS, &json!({"spec": {}})).await.failed(400, "BadRequest");
    assert_eq!(message, "token is required for TokenReview in authentication");
    let nobody = server.as_user(Identity::anonymous());
    let basic =
        nobody.with_headers(Method::GET, "/api", &[("authorization", "Basic abc")], &Value::Null).await;
    assert_eq!(
        basic.failed(403, "Forbidden"),
        "forbidden: User \"system:anonymous\" cannot get path \"/api\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_time_and_with_what_it_is_bound_to() {
    let server = server().await;
    let short = token(&server, &json!({"expirationSeconds": 600})).await;
    assert_eq!(review(&server, &short).await["authenticated"], true);
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_eq!(
        review(&server, &short).await["error"],
        "[invalid bearer token, service account token has expired]"
    );
    server.post(SECRETS, &json!({"metadata": {"name": "s"}})).await.expect_success();
    server.post(PODS, &pod("p", "robot")).await.expect_success();
    let reference =
        |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    let (secret, running) =
        (token(&server, &reference("Secret", "s")).await, token(&server, &reference("Pod", "p")).await);
    let plain = token(&server, &json!({})).await;
    let extra = review(&server, &running).await["user"]["extra"].clone();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    let invalidated = "[invalid bearer token, service account token has been invalidated]";
    server.delete(&format!("{SECRETS}/s"), &Value::Null).await.expect_success();
    assert_eq!(review(&server, &secret).await, json!({"user": {}, "error": invalidated}));
    server.delete(&format!("{PODS}/p?gracePeriodSeconds=0"), &Value::Null).await.expect_success();
    assert_eq!(review(&server, &running).await["error"], invalidated);
    server.delete(&format!("{ACCOUNTS}/robot"), &Value::Null).await.expect_success();
    assert_eq!(review(&server, &plain).await["error"], invalidated);
}

#[tokio::test]
async fn a_token_that_cannot_be_is_refused_in_the_real_words() {
    let server = server().await;
    server.post(SECRETS, &json!({"metadata": {"name": "s"}})).await.expect_success();
    server.post(PODS, &pod("other", "default")).await.expect_success();
    let bound = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}});
    let cases = [
        (
            json!({"expirationSeconds": 60}),
            422,
            "Invalid",
            "TokenRequest.authentication.k8s.io \"\" is invalid: \
            spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"expirationSeconds": 4_294_967_297_i64}),
            422,
            "Invalid",
            "TokenRequest.authentication.k8s.io \"\" is \
            invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (bound("Pod", "nope", ""), 404, "NotFound", "pods \"nope\" not found"),
        (
            bound("ConfigMap", "nope", ""),
            400,
            "BadRequest",
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            bound("Secret", "s", "x"),
            409,
            "Conflict",
            "Operation cannot be fulfilled on Secret \"s\": the UID in the \
            bound object reference (x) does not match the UID in record. The object might have been deleted and then \
            recreated",
        ),
        (
            bound("Pod", "other", ""),
            400,
            "BadRequest",
            "cannot bind token for serviceaccount \"robot\" to pod running \
            with different serviceaccount name.",
        ),
    ];
    for (spec, status, reason, message) in cases {
        assert_eq!(server.post(TOKEN, &json!({"spec": spec})).await.failed(status, reason), message);
    }
    let missing = server.post(&format!("{ACCOUNTS}/nobody/token"), &json!({"spec": {}})).await;
    assert_eq!(missing.failed(404, "NotFound"), "serviceaccounts \"nobody\" not found");
    let own = token(&server, &json!({"audiences": ["vault"]})).await;
    let question = json!({"spec": {"token": own, "audiences": ["vault", "other"]}});
    assert_eq!(
        server.post(REVIEWS, &question).await.expect_success()["status"]["audiences"],
        json!(["vault"])
    );
    assert_eq!(
        review(&server, &own).await["error"],
        "[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences \
         [\"https://kubernetes.default.svc\"]]"
    );
    assert_eq!(bearer(&server, &own, Method::GET, "/version", &Value::Null).await.status, 401);
}

#[tokio::test]
async fn anybody_with_an_account_can_check_tokens_by_the_published_key() {
    let server = server().await;
    let token = token(&server, &json!({})).await;
    let issuer = bearer(&server, &token, Method::GET, "/.well-known/openid-configuration", &Value::Null)
        .await
        .expect_success();
    assert_eq!(issuer["issuer"], claims(&token)["iss"]);
    let keys = bearer(&server, &token, Method::GET, "/openid/v1/jwks", &Value::Null).await.expect_success();
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(keys["keys"][0][name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    let nobody = server.as_user(Identity::anonymous());
    nobody.get("/openid/v1/jwks").await.failed(403, "Forbidden");
}

#[tokio::test]
async fn a_pod_finds_the_token_of_its_account_mounted() {
    let server = server().await;
    let made = server.post(PODS, &pod("p", "robot")).await.expect_success();
    let volume = &made["spec"]["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
    assert_eq!(
        volume["projected"],
        json!({"sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}], "defaultMode": 420})
    );
    assert_eq!(
        made["spec"]["containers"][0]["volumeMounts"],
        json!([{"name": name, "readOnly": true,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );
    assert!(
        !made["metadata"]["managedFields"].to_string().contains("f:volumes"),
        "what admission adds has no owner"
    );
    let mut without = pod("q", "robot");
    without["spec"]["automountServiceAccountToken"] = json!(false);
    assert_eq!(server.post(PODS, &without).await.expect_success()["spec"]["volumes"], Value::Null);
    let message = server.post(PODS, &pod("r", "none")).await.failed(403, "Forbidden");
    assert_eq!(
        message,
        "pods \"r\" is forbidden: error looking up service account default/none: serviceaccount \"none\" not found"
    );
}

#[tokio::test]
async fn a_secret_made_for_a_token_gets_one() {
    let server = server().await;
    let secret = json!({"metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"});
    let made = server.post(SECRETS, &secret).await.expect_success();
    let token = String::from_utf8(STANDARD.decode(made["data"]["token"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(claims(&token)["kubernetes.io/serviceaccount/secret.name"], "old");
    assert_eq!(review(&server, &token).await["user"]["username"], "system:serviceaccount:default:robot");
    server.delete(&format!("{SECRETS}/old"), &Value::Null).await.expect_success();
    assert_eq!(
        review(&server, &token).await["error"],
        "[invalid bearer token, service account token has been invalidated]"
    );
}

/// The code with which a bearer of the token asks who it is.
async fn code(server: &Server, token: &str) -> u16 {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    bearer(server, token, Method::POST, WHO_AM_I, &review).await.status.as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_just_used_ends_at_once_with_what_it_rests_on() {
    let server = server().await;
    server.post(SECRETS, &json!({"metadata": {"name": "s"}})).await.expect_success();
    server.post(PODS, &pod("p", "robot")).await.expect_success();
    server.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect_success();
    let legacy = json!({"metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"});
    let legacy = server.post(SECRETS, &legacy).await.expect_success();
    let legacy = STANDARD.decode(legacy["data"]["token"].as_str().unwrap()).unwrap();
    let bound =
        |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    let objects = [
        (token(&server, &bound("Secret", "s")).await, format!("{SECRETS}/s")),
        (token(&server, &bound("Pod", "p")).await, format!("{PODS}/p?gracePeriodSeconds=0")),
        (token(&server, &bound("Node", "n")).await, "/api/v1/nodes/n".to_owned()),
        (String::from_utf8(legacy).unwrap(), format!("{SECRETS}/old")),
    ];
    for (token, path) in &objects {
        for _ in 0..3 {
            assert_eq!(code(&server, token).await, 201, "{path}");
        }
        // A change of the object is no end of it.
        let plain = path.split('?').next().unwrap();
        server.merge(plain, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect_success();
        assert_eq!(code(&server, token).await, 201, "{path} was changed");
        server.delete(path, &Value::Null).await.expect_success();
        assert_eq!(code(&server, token).await, 401, "{path} is gone");
    }
    let account = token(&server, &json!({})).await;
    assert_eq!(code(&server, &account).await, 201);
    server.delete(&format!("{ACCOUNTS}/robot"), &Value::Null).await.expect_success();
    assert_eq!(code(&server, &account).await, 401);
    // Another account of the same name is another account.
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect_success();
    assert_eq!(code(&server, &account).await, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_just_used_ends_with_its_time_and_serves_its_audience_alone() {
    let server = server().await;
    let short = token(&server, &json!({"expirationSeconds": 600})).await;
    tokio::time::sleep(Duration::from_secs(598)).await;
    assert_eq!(code(&server, &short).await, 201);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(code(&server, &short).await, 401, "it was verified four seconds ago, and has ended since");
    let other = token(&server, &json!({"audiences": ["vault"]})).await;
    let asked = json!({"spec": {"token": other, "audiences": ["vault"]}});
    assert_eq!(server.post(REVIEWS, &asked).await.expect_success()["status"]["authenticated"], true);
    assert_eq!(code(&server, &other).await, 401, "what is known of it is whom it is for");
    let other = format!("{}A", &short[..short.len() - 1]);
    assert_eq!(code(&server, &other).await, 401);
}

async fn as_other(server: &Server, headers: &[(&str, &str)]) -> Answer {
    server.with_headers(Method::POST, WHO_AM_I, headers, &json!({})).await
}

#[tokio::test]
async fn an_administrator_can_be_anybody() {
    let server = Server::new();
    let cases: [(&[(&str, &str)], Value); 4] = [
        (&[("Impersonate-User", "jane")], json!({"username": "jane", "groups": ["system:authenticated"]})),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Group", "devs"), ("Impersonate-Uid", "u1")],
            json!({"username": "jane", "uid": "u1", "groups": ["devs", "system:authenticated"]}),
        ),
        (
            &[
                ("Impersonate-User", "jane"),
                ("Impersonate-Extra-Scopes", "view"),
                ("Impersonate-Extra-acme.com%2Fproject", "x"),
            ],
            json!({"username": "jane", "groups": ["system:authenticated"],
                "extra": {"acme.com/project": ["x"], "scopes": ["view"]}}),
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:default:x")],
            json!({"username": "system:serviceaccount:default:x",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]}),
        ),
    ];
    for (headers, user) in cases {
        assert_eq!(as_other(&server, headers).await.expect_success()["status"]["userInfo"], user);
    }
    let message = as_other(&server, &[("Impersonate-Group", "devs")]).await.failed(400, "BadRequest");
    assert_eq!(
        message,
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"devs\"}, Extra:map[string][]string(nil)} \
         without impersonating a user name"
    );
    as_other(&server, &[("Impersonate-User", "system:anonymous")]).await.failed(403, "Forbidden");
}

#[tokio::test]
async fn others_can_be_only_whom_a_role_lets_them_be() {
    let server = Server::new();
    let clerk = server.as_user(Identity::new("clerk", []));
    let refused = as_other(&clerk, &[("Impersonate-User", "jane")]).await.failed(403, "Forbidden");
    assert_eq!(
        refused,
        "users \"jane\" is forbidden: User \"clerk\" cannot impersonate resource \"users\" in API group \"\" at the \
         cluster scope"
    );
    let role = json!({"metadata": {"name": "be-jane"}, "rules": [
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"],
            "resourceNames": ["view"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "be-jane"}, "subjects": [{"kind": "User", "name": "clerk",
        "apiGroup": "rbac.authorization.k8s.io"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole", "name": "be-jane"}});
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect_success();
    let jane = as_other(&clerk, &[("Impersonate-User", "jane"), ("Impersonate-Extra-Scopes", "view")])
        .await
        .expect_success();
    assert_eq!(jane["status"]["userInfo"]["username"], "jane");
    for (headers, resource) in [
        (
            [("Impersonate-User", "jane"), ("Impersonate-Group", "system:masters")],
            "groups \"system:masters\"",
        ),
        ([("Impersonate-User", "jane"), ("Impersonate-Uid", "1")], "uids.authentication.k8s.io \"1\""),
        (
            [("Impersonate-User", "jane"), ("Impersonate-Extra-Scopes", "edit")],
            "userextras.authentication.k8s.io \"edit\"",
        ),
        ([("Impersonate-User", "system:serviceaccount:a:b"), ("Accept", "*/*")], "serviceaccounts \"b\""),
    ] {
        let message = as_other(&clerk, &headers).await.failed(403, "Forbidden");
        assert!(
            message.starts_with(&format!("{resource} is forbidden: User \"clerk\" cannot impersonate")),
            "{message}"
        );
    }
}
