//! The audit log beside what a real kube-apiserver wrote about the same requests.
//!
//! `fixtures/audit/events.jsonl` is the audit log of Kubernetes 1.37.1 with `policy.yaml` while `requests.txt` was played at
//! it, as users of a token file and with the user agent `audit`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use windlass_apiserver::{
    ApiServer,
    audit::{AuditLog, AuditOptions, Policy},
    auth::Identity,
    environment::{Environment, TokioClock},
    registry::Registry,
    store::Store,
};

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/audit").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// A server with an audit log.
struct Audited {
    server: ApiServer,
    folder: tempfile::TempDir,
}

impl Audited {
    fn new(policy: &str) -> Self {
        let environment =
            Environment::new(TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()), 7);
        Self::of(Registry::new(Arc::new(Store::default()), environment).unwrap(), policy)
    }

    fn of(registry: Registry, policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::new(Policy::parse(policy).unwrap(), folder.path().join("audit.log"));
        let user = |name: &str, uid: &str, group: &str| Identity {
            uid: uid.into(),
            ..Identity::new(name, [group.to_owned()])
        };
        let tokens = BTreeMap::from([
            ("admin-token".to_owned(), user("admin", "1", "system:masters")),
            ("ann-token".to_owned(), user("ann", "2", "shop")),
        ]);
        let registry = registry.without_plugins(["ServiceAccount".to_owned()]);
        let server = ApiServer::new(Arc::new(registry))
            .with_tokens(tokens)
            .with_audit(AuditLog::open(options).unwrap());
        Self { server, folder }
    }

    /// Plays a line of the script, and reads the answer to its end.
    async fn play(&self, line: &str) -> (u16, Bytes) {
        let mut words = line.splitn(4, ' ');
        let (who, method, path) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let mut rest = words.next().unwrap_or_default();
        let mut request = Request::builder()
            .method(method.parse::<Method>().unwrap())
            .uri(path)
            .header(header::USER_AGENT, "audit");
        if who != "anonymous" {
            request = request.header(header::AUTHORIZATION, format!("Bearer {who}-token"));
        }
        let mut media = "application/json";
        loop {
            let (word, tail) = rest.split_once(' ').unwrap_or((rest, ""));
            request = match word.split_once('=') {
                Some(("as", name)) => request.header("impersonate-user", name),
                Some(("group", name)) => request.header("impersonate-group", name),
                Some(("type", kind)) => {
                    media = kind;
                    request
                }
                _ => break,
            };
            rest = tail;
        }
        if !rest.is_empty() {
            request = request.header(header::CONTENT_TYPE, media);
        }
        let request = request.body(Full::new(Bytes::from(rest.to_owned()))).unwrap();
        let answer = self.server.answer(request).await;
        let status = answer.status().as_u16();
        (status, answer.into_body().collect().await.unwrap().to_bytes())
    }

    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["userAgent"] == "audit").collect()
    }
}

/// What an event says that is not nothing, place by place. What no two servers have in common is left out, but it must be
/// there.
fn said(event: &Value) -> BTreeMap<String, Value> {
    for field in ["auditID", "requestReceivedTimestamp", "stageTimestamp"] {
        assert!(event[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {event}");
    }
    let time = event["stageTimestamp"].as_str().unwrap();
    assert_eq!(time.len(), "2026-11-18T12:44:08.123456Z".len(), "{time}");
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    let mut said = BTreeMap::new();
    gather(event, String::new(), &mut said);
    said
}

fn gather(value: &Value, place: String, out: &mut BTreeMap<String, Value>) {
    const VOLATILE: [&str; 9] = [
        "auditID",
        "requestReceivedTimestamp",
        "stageTimestamp",
        "creationTimestamp",
        "resourceVersion",
        "time",
        "selfLink",
        "sourceIPs",
        "managedFields",
    ];
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str())) {
                gather(value, format!("{place}.{key}"), out);
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                gather(value, format!("{place}[{number}]"), out);
            }
        }
        Value::Null | Value::Bool(false) => {}
        Value::String(text) if text.is_empty() => {}
        Value::Number(number) if number.as_i64() == Some(0) => {}
        // A uid of a user is chosen, that of an object is not.
        Value::String(_) if place.rsplit('.').next() == Some("uid") && !place.starts_with(".user") => {
            out.insert(place, json!("a uid"));
        }
        Value::String(text) if text.starts_with("try-") => {
            out.insert(place, json!(text.len()));
        }
        other => {
            out.insert(place, other.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_is_the_one_that_the_real_server_wrote() {
    let audited = Audited::new(&fixture("policy.yaml"));
    let script = fixture("requests.txt");
    for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        audited.play(line).await;
    }
    let recorded: Vec<Value> =
        fixture("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ours = audited.events();
    let title = |event: &Value| {
        let part = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {}", part("stage"), part("level"), part("verb"), part("requestURI"))
    };
    let titles = |events: &[Value]| events.iter().map(title).collect::<Vec<_>>();
    assert_eq!(titles(&ours), titles(&recorded));
    let mut different = Vec::new();
    for (ours, recorded) in ours.iter().zip(&recorded) {
        let (one, other) = (said(ours), said(recorded));
        let places: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for place in places.into_iter().filter(|place| one.get(*place) != other.get(*place)) {
            different.push(format!(
                "{}: {place}: {:?}, recorded {:?}",
                title(recorded),
                one.get(place),
                other.get(place)
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

const EVERYTHING: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}";

#[tokio::test(start_paused = true)]
async fn an_answer_is_the_same_with_an_audit_log_and_has_the_name_that_its_client_chose() {
    let audited = Audited::new(EVERYTHING);
    audited.play("admin POST /api/v1/namespaces {\"metadata\":{\"name\":\"shop\"}}").await;
    for number in 0..300 {
        let body = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": "v".repeat(2000)}});
        audited.play(&format!("admin POST /api/v1/namespaces/shop/configmaps {body}")).await;
    }
    // Longer than what is made before it is asked for.
    let (status, list) = audited.play("admin GET /api/v1/namespaces/shop/configmaps").await;
    let list: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!((status, list["items"].as_array().unwrap().len()), (200, 300));
    assert_eq!(audited.events().last().unwrap()["responseObject"], list);
    let request = Request::get("/api/v1/namespaces/shop")
        .header(header::AUTHORIZATION, "Bearer admin-token")
        .header(header::USER_AGENT, "audit")
        .header("Audit-ID", "mine");
    let answer = audited.server.answer(request.body(Full::new(Bytes::new())).unwrap()).await;
    assert_eq!(answer.headers()["audit-id"], "mine");
    assert_eq!(audited.events().last().unwrap()["auditID"], "mine");
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_admission_speaks_to_the_audit_log() {
    let audited = Audited::new(EVERYTHING);
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "count.example.com"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "object.metadata.name != 'bad'", "message": "it is bad"}],
            "auditAnnotations": [{"key": "name", "valueExpression": "'named ' + object.metadata.name"},
                {"key": "none", "valueExpression": "null"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "all"},
        "spec": {"policyName": "count.example.com", "validationActions": ["Audit"]}});
    let place = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    assert_eq!(audited.play(&format!("admin POST {place}ies {policy}")).await.0, 201);
    assert_eq!(audited.play(&format!("admin POST {place}ybindings {binding}")).await.0, 201);
    let made = audited
        .play("admin POST /api/v1/namespaces/default/configmaps {\"metadata\":{\"name\":\"bad\"}}")
        .await;
    assert_eq!(made.0, 201, "{made:?}");
    let events = audited.events();
    let annotations = &events.last().unwrap()["annotations"];
    assert_eq!(annotations["count.example.com/name"], "named bad");
    assert!(annotations.get("count.example.com/none").is_none());
    let failures: Value = serde_json::from_str(
        annotations["validation.policy.admission.k8s.io/validation_failure"].as_str().unwrap(),
    )
    .unwrap();
    assert_eq!(
        failures,
        json!([{"message": "it is bad", "policy": "count.example.com", "binding": "all",
        "validationActions": ["Audit"]}])
    );
}
