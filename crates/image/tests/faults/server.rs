//! A server that plays what a real registry cannot be made to do: answers that are scripted, and behind them as much of a
//! registry as a push needs to come to its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};
use windlass_image::{
    Digest,
    registry::{Keyring, Options, Retry},
};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Bytes,
}

/// What the script says about a request.
pub(crate) enum Play {
    /// Answer as a registry.
    Registry,
    /// Answer this.
    Answer(StatusCode, Vec<(&'static str, String)>, &'static str),
    /// Close the connection without an answer.
    Close,
}

type Script = Box<dyn FnMut(&RecordedRequest) -> Play + Send>;

struct State {
    script: Script,
    seen: Vec<RecordedRequest>,
    blobs: BTreeSet<String>,
    manifests: BTreeMap<String, (String, Bytes)>,
}

/// A server on a free port, which ends with the value.
pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(script: impl FnMut(&RecordedRequest) -> Play + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State {
            script: Box::new(script),
            seen: Vec::new(),
            blobs: BTreeSet::new(),
            manifests: BTreeMap::new(),
        }));
        let serving = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = serving.clone();
                let service = service_fn(move |request| answer(state.clone(), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { address, state, task }
    }

    /// Requests that begin like this.
    pub(crate) fn seen(&self, begin: &str) -> Vec<RecordedRequest> {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|seen| seen.line.starts_with(begin)).cloned().collect()
    }

    pub(crate) fn tag(&self, tag: &str) -> Option<Digest> {
        let state = self.state.lock().unwrap();
        state.manifests.get(tag).map(|(_, content)| Digest::of(content))
    }
}

/// Options for a server without TLS, and without patience.
pub(crate) fn options(keyring: Keyring) -> Options {
    let pause = std::time::Duration::from_millis(1);
    Options { insecure: true, keyring, retry: Retry { pause, ..Retry::default() }, ..Options::default() }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let line = format!("{} {}", parts.method, parts.uri.path_and_query().unwrap());
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let seen = RecordedRequest { line, authorization: header("authorization"), body };
    let mut state = state.lock().unwrap();
    state.seen.push(seen.clone());
    let (status, headers, body) = match (state.script)(&seen) {
        Play::Close => return Err(std::io::Error::other("closed by the script")),
        Play::Answer(status, headers, body) => (status, headers, Bytes::from_static(body.as_bytes())),
        Play::Registry => registry(&mut state, &seen, header("content-type")),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(body)).unwrap())
}

type Reply = (StatusCode, Vec<(&'static str, String)>, Bytes);

/// A registry without the referrers API.
fn registry(state: &mut State, seen: &RecordedRequest, kind: Option<String>) -> Reply {
    let plain = |status| (status, Vec::new(), Bytes::new());
    let (method, path) = seen.line.split_once(' ').unwrap();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let last = path.rsplit('/').next().unwrap().to_owned();
    match method {
        "GET" if path == "/v2/" => plain(StatusCode::OK),
        "HEAD" if path.contains("/blobs/") && state.blobs.contains(&last) => plain(StatusCode::OK),
        "POST" => (StatusCode::ACCEPTED, vec![("location", format!("{path}1?state=a"))], Bytes::new()),
        "PUT" if path.contains("/blobs/") => {
            let digest = Digest::of(&seen.body).to_string();
            let named = query.split("digest=").nth(1).unwrap().replace("%3A", ":");
            if digest == named {
                state.blobs.insert(digest);
                plain(StatusCode::CREATED)
            } else {
                (StatusCode::BAD_REQUEST, Vec::new(), r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#.into())
            }
        }
        "PUT" => {
            let digest = Digest::of(&seen.body).to_string();
            let entry = (kind.unwrap_or_default(), seen.body.clone());
            state.manifests.insert(digest.clone(), entry.clone());
            state.manifests.insert(last, entry);
            (StatusCode::CREATED, vec![("docker-content-digest", digest)], Bytes::new())
        }
        "HEAD" | "GET" => match state.manifests.get(&last) {
            Some((kind, content)) => {
                let body = if method == "GET" { content.clone() } else { Bytes::new() };
                (
                    StatusCode::OK,
                    vec![
                        ("content-type", kind.clone()),
                        ("docker-content-digest", Digest::of(content).to_string()),
                    ],
                    body,
                )
            }
            None => plain(StatusCode::NOT_FOUND),
        },
        _ => plain(StatusCode::METHOD_NOT_ALLOWED),
    }
}
