//! A server for one test, with a clock and a seed of its own.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::{
    ApiServer,
    auth::Identity,
    environment::{Environment, TokioClock},
    http::{Body, Limits},
    registry::Registry,
    store::Store,
};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[derive(Clone)]
pub(crate) struct Server(ApiServer, Identity);

/// An answer, decoded.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of an answer that must be a success.
    #[track_caller]
    pub(crate) fn expect_success(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.body);
        self.body
    }

    /// The message of an answer that must be this failure.
    #[track_caller]
    pub(crate) fn failed(self, status: u16, reason: &str) -> String {
        assert_eq!(
            (self.status.as_u16(), self.body["reason"].as_str()),
            (status, Some(reason)),
            "{}",
            self.body
        );
        self.body["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with_store(Store::default())
    }

    pub(crate) fn with_store(store: Store) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let environment = Environment::new(TokioClock::starting_at(start), 7);
        Self(
            ApiServer::new(Arc::new(Registry::new(Arc::new(store), environment).unwrap())),
            Identity::admin(),
        )
    }

    /// A server of a registry that somebody made.
    pub(crate) fn of(registry: Registry) -> Self {
        Self(ApiServer::new(Arc::new(registry)), Identity::admin())
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.0.registry()
    }

    /// A server that takes no more than so many watches.
    pub(crate) fn with_watches(watches: usize) -> Self {
        let Self(server, identity) = Self::new();
        let limits = Limits { watches, ..Limits::default() };
        Self(ApiServer::with_limits(Arc::clone(server.registry()), limits), identity)
    }

    /// The same server for somebody else.
    pub(crate) fn as_user(&self, identity: Identity) -> Self {
        Self(self.0.clone(), identity)
    }

    /// Sends any request, whatever its body.
    pub(crate) async fn answer<B>(&self, mut request: Request<B>) -> http::Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        request.extensions_mut().insert(self.1.clone());
        self.0.answer(request).await
    }

    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> http::Response<Body> {
        let mut request = request;
        request.extensions_mut().insert(self.1.clone());
        self.0.answer(request).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        accept: &str,
        body: &Value,
    ) -> Answer {
        let content = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, media)
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, "test/1.0")
            .body(Full::new(content))
            .unwrap();
        let response = self.request(request).await;
        let status = response.status();
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Answer { status, warnings, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    /// A request with headers of its own, as a client without a certificate sends it.
    pub(crate) async fn with_headers(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let content = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let response = self.request(request.body(Full::new(content)).unwrap()).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Answer { status, warnings: Vec::new(), body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", "application/json", &Value::Null).await
    }

    pub(crate) async fn table(&self, path: &str) -> Value {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        self.send(Method::GET, path, "", accept, &Value::Null).await.expect_success()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", "application/json", body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", "application/json", body).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Answer {
        self.send(Method::DELETE, path, "application/json", "application/json", options).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.send(Method::PATCH, path, "application/merge-patch+json", "application/json", patch).await
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, intent: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", "application/json", intent).await
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Lines {
        let request = Request::builder().uri(path).body(Full::default()).unwrap();
        Lines { body: self.request(request).await.into_body(), rest: Vec::new() }
    }
}

/// The lines of a watch.
pub(crate) struct Lines {
    body: Body,
    rest: Vec<u8>,
}

impl Lines {
    /// The next line, or nothing when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(frame.data_ref().unwrap());
        }
    }

    /// Type and name of the next line.
    pub(crate) async fn event(&mut self) -> (String, String) {
        let line = self.next().await.expect("the watch must go on");
        let text =
            |pointer: &str| line.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("/type"), text("/object/metadata/name"))
    }
}

pub(crate) fn config_map(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}}},
    })
}
