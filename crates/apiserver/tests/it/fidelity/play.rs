//! Plays a script at a server: ours in this process, or a real one.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{Request as HttpRequest, header};
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    normal::Normal,
    script::{Request, Script},
};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const META: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const META_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// A normalised answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) request: String,
    pub(super) status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// The object, the list of events of a watch, or plain text.
    pub(super) body: Value,
}

/// Who answers.
pub(super) enum Server {
    Ours(crate::server::Server),
    Real(Box<kube::Client>),
}

impl Server {
    pub(super) fn ours() -> Self {
        Self::Ours(crate::server::Server::new())
    }

    pub(super) async fn real(kubeconfig: &Path) -> Self {
        let config = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default())
                .await
                .unwrap();
        Self::Real(Box::new(kube::Client::try_from(config).unwrap()))
    }

    pub(super) async fn send(&self, request: HttpRequest<Bytes>) -> (http::response::Parts, Bytes) {
        match self {
            Self::Ours(server) => {
                let (parts, body) = server.request(request.map(Full::new)).await.into_parts();
                (parts, body.collect().await.unwrap().to_bytes())
            }
            Self::Real(client) => {
                let request = request.map(kube::client::Body::from);
                let (parts, body) = client.send(request).await.unwrap().into_parts();
                (parts, body.collect().await.unwrap().to_bytes())
            }
        }
    }

    /// A name that this server has not seen: a testbed may have seen the script before.
    pub(super) fn fresh_name(&self, what: &str) -> String {
        match self {
            Self::Ours(_) => format!("{what}-ours"),
            Self::Real(_) => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a real server keeps objects between runs, so names must differ"
                )]
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                format!("{what}-{:x}", now.as_millis() & 0xfff_ffff)
            }
        }
    }

    /// How long to wait before asking again.
    fn patience(&self) -> Duration {
        match self {
            Self::Ours(_) => Duration::ZERO,
            Self::Real(_) => Duration::from_millis(200),
        }
    }
}

/// What a script's `$names` stand for.
struct Variables(Vec<(String, String)>);

impl Variables {
    fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in self.0.iter().rev() {
            out = out.replace(&format!("${name}"), value);
        }
        out
    }
}

/// Plays the script from its first request to its last.
pub(super) async fn play(script: &Script, server: &Server) -> Vec<Answer> {
    let id = server.fresh_name(&script.name);
    let mut variables = Variables(vec![("ns".into(), id.clone()), ("id".into(), id.clone())]);
    variables.0.extend(script.lets.iter().cloned());
    let mut normal = Normal::new(script, vec![(id.clone(), "$ns".into())]);
    prepare(server, &id).await;
    let mut answers = Vec::new();
    for request in &script.requests {
        let http = build(request, &variables);
        if request.verb == "WAIT" {
            Box::pin(wait(server, http)).await;
            continue;
        }
        let (parts, body) = server.send(http).await;
        let body = decode(request, &body);
        for (name, pointer) in &request.saves {
            let value = body
                .pointer(pointer)
                .unwrap_or_else(|| panic!("{}:{}: {pointer} is not in {body}", script.name, request.line));
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.0.push((name.clone(), text));
        }
        let warnings = parts.headers.get_all(header::WARNING).iter();
        answers.push(Answer {
            request: format!("{} {}", request.verb, request.path),
            status: parts.status.as_u16(),
            warnings: warnings.map(|one| normal.text(one.to_str().unwrap())).collect(),
            body: normal.value(body),
        });
    }
    answers
}

/// The namespace that a script works in, with what Pods need to be accepted there.
pub(super) async fn prepare(server: &Server, namespace: &str) {
    let post = |path: String, body: Value| {
        HttpRequest::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(body.to_string()))
            .unwrap()
    };
    let (answer, _) =
        server.send(post("/api/v1/namespaces".into(), json!({"metadata": {"name": namespace}}))).await;
    assert!(answer.status.is_success(), "failed to create the namespace {namespace}: {}", answer.status);
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let (answer, _) = server.send(post(path, json!({"metadata": {"name": "default"}}))).await;
    assert!(answer.status.is_success() || answer.status == http::StatusCode::CONFLICT, "{}", answer.status);
}

fn build(request: &Request, variables: &Variables) -> HttpRequest<Bytes> {
    let (method, media, accept) = match request.verb.as_str() {
        "JSON" => ("PATCH", "application/json-patch+json", "application/json"),
        "MERGE" => ("PATCH", "application/merge-patch+json", "application/json"),
        "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json", "application/json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml", "application/json"),
        "TABLE" => ("GET", "application/json", TABLE),
        "META" => ("GET", "application/json", meta_accept(request)),
        "WATCH" | "WAIT" => ("GET", "application/json", "application/json"),
        verb => (verb, "application/json", "application/json"),
    };
    let mut path = variables.fill(&request.path).replace(' ', "%20");
    if request.verb == "WATCH" {
        let joint = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{joint}watch=true&timeoutSeconds=1");
    }
    let body = variables.fill(&request.body);
    let body = if body.trim().is_empty() {
        Bytes::new()
    } else if request.raw {
        Bytes::from(body.trim_end().to_owned())
    } else {
        let value: Value =
            serde_saphyr::from_str(&body).unwrap_or_else(|error| panic!("line {}: {error}", request.line));
        Bytes::from(value.to_string())
    };
    let mut builder =
        HttpRequest::builder().method(method).uri(path).header(header::USER_AGENT, "fidelity/1.0");
    let given = |name: &str| request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !given("Accept") {
        builder = builder.header(header::ACCEPT, accept);
    }
    if !given("Content-Type") && method != "GET" {
        builder = builder.header(header::CONTENT_TYPE, media);
    }
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    builder.body(body).unwrap()
}

/// Lists have a shape of their own for metadata, and one object has another.
fn meta_accept(request: &Request) -> &'static str {
    let path = request.path.split('?').next().unwrap();
    let segments = path.trim_matches('/').split('/').collect::<Vec<_>>();
    let rest = if segments[0] == "api" { &segments[2..] } else { &segments[3..] };
    let named =
        if rest.first() == Some(&"namespaces") && rest.len() > 2 { rest.len() == 4 } else { rest.len() == 2 };
    if named { META } else { META_LIST }
}

async fn wait(server: &Server, request: HttpRequest<Bytes>) {
    for _ in 0..100 {
        let (parts, _) = server.send(request.clone()).await;
        if parts.status.is_success() {
            return;
        }
        tokio::time::sleep(server.patience()).await;
    }
    panic!("{} never succeeded", request.uri());
}

fn decode(request: &Request, body: &[u8]) -> Value {
    if request.verb == "WATCH" {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
        return lines.map_or_else(|_| json!(String::from_utf8_lossy(body)), Value::Array);
    }
    serde_json::from_slice(body).unwrap_or_else(|_| json!(String::from_utf8_lossy(body)))
}
