//! Who a request comes from, when it says so in a way that is odd.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::server::Server;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Who the server takes the sender for, or how it refuses.
async fn who(server: &Server, headers: &[(&str, &[u8])]) -> Result<Value, u16> {
    let mut request = Request::post(WHO).header("content-type", "application/json");
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        request = request.header(name, HeaderValue::from_bytes(value).unwrap());
    }
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let response = server.request(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await;
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    if status.is_success() { Ok(body["status"]["userInfo"].clone()) } else { Err(status.as_u16()) }
}

/// The ways to say a value: what it is called, the bytes, and the text that they are, if they are one.
fn values(plain: &str) -> Vec<(&'static str, Vec<Vec<u8>>, Option<Vec<String>>)> {
    let long = "x".repeat(100_000);
    let texts = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect());
    vec![
        ("plain", vec![plain.into()], texts(&[plain])),
        ("not ASCII", vec!["jürgen".into()], texts(&["jürgen"])),
        ("not UTF-8", vec![b"j\xfcrgen".to_vec()], None),
        ("half UTF-8", vec![b"j\xc3".to_vec()], None),
        ("empty", vec![Vec::new()], texts(&[""])),
        ("doubled", vec![plain.into(), "other".into()], texts(&[plain, "other"])),
        ("doubled, the second no text", vec![plain.into(), b"\xff".to_vec()], None),
        ("too long", vec![long.clone().into()], texts(&[&long])),
    ]
}

#[tokio::test]
async fn a_request_that_impersonates_is_never_taken_for_the_one_who_sent_it() {
    let server = Server::new();
    for header in ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"] {
        for (what, bytes, texts) in values("jane") {
            for with_user in [false, true] {
                let mut headers: Vec<(&str, &[u8])> = bytes.iter().map(|one| (header, &**one)).collect();
                if with_user && header != "Impersonate-User" {
                    headers.push(("Impersonate-User", b"jane"));
                }
                let known = who(&server, &headers).await;
                let case = format!("{header}, {what}, with a user: {with_user}: {known:?}");
                match known {
                    Err(code) => assert_eq!(code, 400, "{case}"),
                    Ok(user) => {
                        assert_ne!(user["username"], "kubernetes-admin", "{case}");
                        assert!(!user["groups"].to_string().contains("system:masters"), "{case}");
                        let texts = texts.clone().unwrap_or_else(|| panic!("{case}"));
                        match header {
                            "Impersonate-User" => assert_eq!(user["username"], texts[0], "{case}"),
                            "Impersonate-Uid" if texts[0].is_empty() => {
                                assert!(user["uid"].is_null(), "{case}")
                            }
                            "Impersonate-Uid" => assert_eq!(user["uid"], texts[0], "{case}"),
                            "Impersonate-Group" => {
                                assert_eq!(
                                    user["groups"].as_array().unwrap()[..texts.len()],
                                    texts,
                                    "{case}"
                                );
                            }
                            _ => assert_eq!(user["extra"]["scopes"], json!(texts), "{case}"),
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn nobody_becomes_more_than_they_may_by_a_name_that_is_hard_to_read() {
    let server = Server::new();
    let role = json!({"metadata": {"name": "clerk"}, "rules": [
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
    let binding = json!({"metadata": {"name": "clerk"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clerk"},
        "subjects": [{"kind": "User", "name": "clerk", "apiGroup": "rbac.authorization.k8s.io"}]});
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.ok();
    let clerk = server.as_user(Identity::new("clerk", []));
    for (what, bytes, _) in values("mary") {
        let headers: Vec<(&str, &[u8])> = bytes.iter().map(|one| ("Impersonate-User", &**one)).collect();
        let code = who(&clerk, &headers).await.unwrap_err();
        assert!([400, 403].contains(&code), "a user, {what}: {code}");
        for header in ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"] {
            let mut headers: Vec<(&str, &[u8])> = bytes.iter().map(|one| (header, &**one)).collect();
            headers.push(("Impersonate-User", b"jane"));
            let known = who(&clerk, &headers).await;
            if (header, what) == ("Impersonate-Uid", "empty") {
                assert_eq!(known.unwrap()["username"], "jane");
                continue;
            }
            let code = known.unwrap_err();
            assert!([400, 403].contains(&code), "{header}, {what}: {code}");
        }
    }
    assert_eq!(who(&clerk, &[("Impersonate-User", b"jane")]).await.unwrap()["username"], "jane");
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_no_token() {
    let nobody = Server::new().as_user(Identity::anonymous());
    for (what, bytes, _) in values("token") {
        let values: Vec<Vec<u8>> = bytes.iter().map(|one| [b"Bearer ", &**one].concat()).collect();
        let headers: Vec<(&str, &[u8])> = values.iter().map(|one| ("Authorization", &**one)).collect();
        let code = who(&nobody, &headers).await.unwrap_err();
        // Who shows no token at all is anonymous, and anonymous users may not ask who they are.
        assert_eq!(code, if what == "empty" { 403 } else { 401 }, "{what}");
    }
    for odd in [&b"Basic abc"[..], b"Bearer", b"\xff", b""] {
        assert_eq!(who(&nobody, &[("Authorization", odd)]).await, Err(403), "{odd:?}");
    }
}

#[tokio::test]
async fn keys_of_extras_are_read_as_they_are_written() {
    let server = Server::new();
    let extras = [
        ("Impersonate-Extra-acme.com%2Fproject", "acme.com/project"),
        ("Impersonate-Extra-%41bc", "Abc"),
        ("Impersonate-Extra-50%zz", "50%zz"),
        ("Impersonate-Extra-%", "%"),
    ];
    for (header, key) in extras {
        let user = who(&server, &[("Impersonate-User", b"jane"), (header, b"x")]).await.unwrap();
        assert_eq!(user["extra"], json!({key: ["x"]}), "{header}");
    }
    let same: [(&str, &[u8]); 3] =
        [("Impersonate-User", b"jane"), ("Impersonate-Extra-a", b"one"), ("Impersonate-Extra-%61", b"two")];
    let user = who(&server, &same).await.unwrap();
    let mut values: Vec<&str> =
        user["extra"]["a"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, ["one", "two"]);
    let odd: [(&str, &[u8]); 2] = [("Impersonate-User", b"jane"), ("Impersonate-Extra-%ff", b"x")];
    assert_eq!(who(&server, &odd).await, Err(400));
}
