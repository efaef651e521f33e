//! A webhook server with TLS on loopback, whose answers a test scripts.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server answers to a review, as the recorded cases write it: `review` (the response, whose uid is
/// filled in) or `body`, with `status`, `headers`, `delay` in seconds, or `hangup`.
pub(crate) type Script = Value;

type Answers = Arc<dyn Fn(&Value) -> Script + Send + Sync>;

pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    /// The authority's certificate, as `caBundle` wants it.
    pub(crate) bundle: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    /// A server for these names that answers by the function.
    pub(crate) async fn start(
        names: &[&str],
        answers: impl Fn(&Value) -> Script + Send + Sync + 'static,
    ) -> Self {
        let (tls, bundle) = certificates(names);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(socket, tls, Arc::new(answers), Arc::clone(&seen)));
        Self { address, bundle, seen, task }
    }

    /// A server on 127.0.0.1 that always answers with these fields of a response.
    pub(crate) async fn responding(response: Value) -> Self {
        Self::start(&["127.0.0.1"], move |_| json!({"review": response})).await
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}/hook", self.address)
    }

    pub(crate) fn client_config(&self) -> Value {
        json!({"url": self.url(), "caBundle": self.bundle})
    }

    /// The bodies that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    /// The paths that were asked for so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

pub(crate) fn certificates(names: &[&str]) -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), STANDARD.encode(issuer.pem()))
}

async fn serve(
    socket: TcpListener,
    tls: TlsAcceptor,
    answers: Answers,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = socket.accept().await {
        let (tls, answers, seen) = (tls.clone(), Arc::clone(&answers), Arc::clone(&seen));
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                async move { respond(request, answers, seen).await }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the script says to hang up")]
struct HangUp;

async fn respond(
    request: Request<Incoming>,
    answers: Answers,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, HangUp> {
    let path = request.uri().to_string();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push((path, review.clone()));
    let script = answers(&review);
    if script["hangup"] == json!(true) {
        return Err(HangUp);
    }
    if let Some(seconds) = script["delay"].as_u64() {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    let (media, body) = match script.get("review") {
        Some(response) => ("application/json", answer(&review, &script, response)),
        None => ("text/plain; charset=utf-8", script["body"].as_str().unwrap_or_default().to_owned()),
    };
    let status = script["status"].as_u64().unwrap_or(200);
    let mut response =
        Response::builder().status(u16::try_from(status).unwrap()).header("content-type", media);
    for (name, value) in script["headers"].as_object().into_iter().flatten() {
        response = response.header(name, value.as_str().unwrap());
    }
    Ok(response.body(Full::from(body)).unwrap())
}

fn answer(review: &Value, script: &Value, response: &Value) -> String {
    let mut full = json!({"uid": review["request"]["uid"]});
    for (field, value) in response.as_object().unwrap() {
        full[field] = value.clone();
    }
    let version = script["apiVersion"].as_str().unwrap_or("admission.k8s.io/v1");
    json!({"apiVersion": version, "kind": "AdmissionReview", "response": full}).to_string()
}
