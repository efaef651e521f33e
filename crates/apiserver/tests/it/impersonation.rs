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

/// A way to say a value.
struct Said {
    what: &'static str,
    bytes: Vec<Vec<u8>>,
    /// What the bytes say, if they say anything.
    texts: Option<Vec<String>>,
}

impl Said {
    fn headers<'a>(&'a self, name: &'a str) -> Vec<(&'a str, &'a [u8])> {
        self.bytes.iter().map(|one| (name, &**one)).collect()
    }
}

fn ways(plain: &str) -> Vec<Said> {
    let long = "x".repeat(100_000);
    let readable = |what, texts: &[&str]| Said {
        what,
        bytes: texts.iter().map(|one| one.as_bytes().to_vec()).collect(),
        texts: Some(texts.iter().map(|one| (*one).to_owned()).collect()),
    };
    let unreadable = |what, bytes: &[&[u8]]| Said {
        what,
        bytes: bytes.iter().map(|one| one.to_vec()).collect(),
        texts: None,
    };
    vec![
        readable("plain", &[plain]),
        readable("not ASCII", &["jürgen"]),
        readable("empty", &[""]),
        readable("doubled", &[plain, "other"]),
        readable("doubled, the first empty", &["", plain]),
        readable("too long", &[&long]),
        unreadable("not UTF-8", &[b"j\xfcrgen"]),
        unreadable("half UTF-8", &[b"j\xc3"]),
        unreadable("doubled, the second not UTF-8", &[plain.as_bytes(), b"\xff"]),
    ]
}

/// Fails unless the user is the one that the header asks for.
fn is_as_said(user: &Value, header: &str, texts: &[String], case: &str) {
    assert_ne!(user["username"], "kubernetes-admin", "{case}");
    assert!(!user["groups"].to_string().contains("system:masters"), "{case}");
    match header {
        "Impersonate-User" => assert_eq!(user["username"], texts[0], "{case}"),
        "Impersonate-Uid" => assert_eq!(user["uid"].as_str().unwrap_or_default(), texts[0], "{case}"),
        "Impersonate-Group" => {
            assert_eq!(user["groups"].as_array().unwrap()[..texts.len()], *texts, "{case}");
        }
        _ => assert_eq!(user["extra"]["scopes"], json!(texts), "{case}"),
    }
}

#[tokio::test]
async fn a_request_that_impersonates_is_never_taken_for_the_one_who_sent_it() {
    let server = Server::new();
    for header in ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"] {
        for said in ways("jane") {
            for with_user in [false, true] {
                let mut headers = said.headers(header);
                if with_user && header != "Impersonate-User" {
                    headers.push(("Impersonate-User", b"jane"));
                }
                let known = who(&server, &headers).await;
                let case = format!("{header}, {}, with a user: {with_user}: {known:?}", said.what);
                match (known, &said.texts) {
                    (Err(code), _) => assert_eq!(code, 400, "{case}"),
                    (Ok(user), Some(texts)) => is_as_said(&user, header, texts, &case),
                    (Ok(_), None) => panic!("{case}"),
                }
            }
        }
    }
    let plain = who(&server, &[("Impersonate-User", "jürgen".as_bytes())]).await.unwrap();
    assert_eq!(plain["username"], "jürgen");
}

#[tokio::test]
async fn nobody_becomes_more_than_they_may_by_a_name_that_is_hard_to_read() {
    let server = Server::new();
    let role = json!({"metadata": {"name": "clerk"}, "rules": [
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "clerk"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clerk"},
        "subjects": [{"kind": "User", "name": "clerk", "apiGroup": "rbac.authorization.k8s.io"}]});
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect_success();
    let clerk = server.as_user(Identity::new("clerk", []));
    for said in ways("mary") {
        let code = who(&clerk, &said.headers("Impersonate-User")).await.unwrap_err();
        assert!([400, 403].contains(&code), "a user, {}: {code}", said.what);
        for header in ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"] {
            let mut headers = said.headers(header);
            headers.push(("Impersonate-User", b"jane"));
            match who(&clerk, &headers).await {
                Err(code) => assert!([400, 403].contains(&code), "{header}, {}: {code}", said.what),
                // An empty uid is none.
                Ok(user) => assert_eq!(
                    (header, &user),
                    ("Impersonate-Uid", &json!({"username": "jane", "groups": ["system:authenticated"]})),
                    "{}",
                    said.what
                ),
            }
        }
    }
    assert_eq!(who(&clerk, &[("Impersonate-User", b"jane")]).await.unwrap()["username"], "jane");
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_no_token() {
    let nobody = Server::new().as_user(Identity::anonymous());
    for mut said in ways("token") {
        let shown = !said.bytes[0].is_empty();
        said.bytes.iter_mut().for_each(|one| *one = [b"Bearer ", &**one].concat());
        let code = who(&nobody, &said.headers("Authorization")).await.unwrap_err();
        // Who shows no token at all is anonymous, and anonymous users may not ask who they are.
        assert_eq!(code, if shown { 401 } else { 403 }, "{}", said.what);
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

#[tokio::test]
async fn the_headers_of_a_front_proxy_say_nothing_to_a_server_without_one() {
    let server = Server::new();
    let (eve, nobody) = (server.as_user(Identity::new("eve", [])), server.as_user(Identity::anonymous()));
    for header in ["X-Remote-User", "X-Remote-Group", "X-Remote-Uid", "X-Remote-Extra-Scopes"] {
        for said in ways("system:masters") {
            let mut headers = said.headers(header);
            headers.push(("X-Remote-User", b"admin"));
            headers.push(("X-Remote-Group", b"system:masters"));
            let user = who(&eve, &headers).await.unwrap();
            assert_eq!(user, json!({"username": "eve", "groups": ["system:authenticated"]}), "{}", said.what);
            assert_eq!(who(&nobody, &headers).await, Err(403), "{header}, {}", said.what);
        }
    }
}

#[tokio::test]
async fn no_way_to_write_a_path_leads_past_what_its_sender_may_do() {
    let server = Server::new();
    for name in ["one", "two"] {
        let object = json!({"metadata": {"name": name}, "data": {"secret": name}});
        server.post("/api/v1/namespaces/default/configmaps", &object).await.expect_success();
    }
    let role = json!({"metadata": {"name": "one"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"]},
        {"nonResourceURLs": ["/healthz/*", "/version/*"], "verbs": ["get"]}]});
    server.post(&format!("{RBAC}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one"},
        "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]});
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect_success();
    let eve = server.as_user(Identity::new("eve", []));
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(eve.get(&format!("{maps}/one")).await.expect_success()["data"]["secret"], "one");
    let mut paths: Vec<String> = [
        "/two",
        "//two",
        "/one/../two",
        "/one%2f..%2ftwo",
        "/one%2F..%2Ftwo",
        "/one/%2e%2e/two",
        "/./two",
        "/%2e/two",
        "/two%00",
        "/one%00/../two",
        "/%ff",
        "/%c3",
        "/two?name=one",
        "/two;one",
        "/two%3Fone",
        "/two%23one",
        "/two%20",
        "/%74wo",
        "/t%77o",
        "/two/",
        "/two/status",
        "/one%2fstatus/../../two",
        "/two%252f..%252fone",
        "/TWO",
        "/two%0a",
        "/two%5c..%5cone",
        "?fieldSelector=metadata.name%3Dtwo",
    ]
    .iter()
    .map(|end| format!("{maps}{end}"))
    .collect();
    paths.extend(
        [
            "//api/v1/namespaces/default/configmaps/two",
            "/api/v1/namespaces/default%2fconfigmaps%2ftwo",
            "/api/v1/namespaces/x%2f..%2fdefault/configmaps/two",
            "/api/v1/watch/namespaces/default/configmaps/two?timeoutSeconds=1",
            "/healthz/../api/v1/namespaces/default/configmaps/two",
            "/healthz/%2e%2e/api/v1/configmaps",
            "/healthz/..%2fapi%2fv1%2fconfigmaps",
            "/version/../metrics",
            "/version/%2e%2e/metrics",
            "/%6detrics",
            "/metrics/",
            "//metrics",
            "/healthz/../metrics",
            "/version/..%2fmetrics",
        ]
        .map(str::to_owned),
    );
    for path in paths {
        let answer = eve.get(&path).await;
        let code = answer.status.as_u16();
        assert!([400, 403, 404].contains(&code), "{path}: {code} {}", answer.body);
        assert!(!answer.body.to_string().contains(r#""secret":"two""#), "{path}: {}", answer.body);
        let admin = server.get(&path).await;
        assert!(admin.status.as_u16() < 500, "{path}: {}", admin.body);
    }
}
