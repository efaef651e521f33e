//! Calls out of the server: to admission and conversion webhooks.
//!
//! A [`ClientConfig`] and a JSON body enter, the JSON body of the answer leaves, or a [`CallError`] that says
//! what happened in the words of the real server, because people search the web for these words.
//!
//! # Guarantees
//!
//! - A call ends when its timeout has passed, whatever the other side does.
//! - An answer is read up to a limit, and redirects are not followed: what a webhook sends cannot make the
//!   server read without end or call somebody else.
//! - Only an address that somebody means is dialled, and nothing that is simulated: see `outgoing`.
//! - Certificates are checked against the `caBundle`, or against the system's roots where there is none, for
//!   the name `<service>.<namespace>.svc` or the host of the URL.

mod connect;
mod decode;
mod outgoing;
mod pinned;
mod resolve;
mod tls;

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::Value;

use self::connect::Connection;
pub(crate) use self::decode::kind as go_kind;
pub use self::resolve::{EndpointSlices, Resolver, Routes, ServicePort};
use crate::{environment::Environment, store::Store};

/// How many connections to one webhook wait for the next call.
const IDLE: usize = 8;

/// How many webhooks have connections waiting.
const POOLS: usize = 64;

/// How long a document may be, and how long it may take.
const DOCUMENT: usize = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a webhook is, as both webhook configurations and definitions say it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConfig {
    /// A URL.
    pub url: Option<String>,
    /// Or a Service.
    pub service: Option<ServiceReference>,
    /// Who signed its certificate: PEM in base64.
    pub ca_bundle: Option<String>,
}

/// A Service and a path behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of the webhook.
    pub path: Option<String>,
    /// Its port; 443 unless said.
    pub port: Option<u16>,
}

/// A call that failed; the text is what the real server says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// One call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) config: &'a ClientConfig,
    pub(crate) body: &'a Value,
    pub(crate) timeout: Duration,
    /// The longest answer that is read.
    pub(crate) limit: usize,
    /// Who calls.
    pub(crate) agent: &'static str,
}

/// Calls webhooks and keeps connections to them.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    pools: Mutex<BTreeMap<ClientConfig, Pool>>,
}

/// What is kept for one webhook.
#[derive(Debug, Default)]
struct Pool {
    tls: Option<tls::Config>,
    idle: Vec<Connection>,
}

/// A webhook's address in all its forms.
#[derive(Debug)]
struct Destination {
    /// The URL as messages show it, with the timeout.
    url: String,
    /// The name in the certificate.
    name: String,
    /// `host:port`, as in the request.
    authority: String,
    /// Path and query.
    path: String,
}

impl Caller {
    /// Calls a webhook and decodes its answer.
    pub(crate) async fn call(
        &self,
        store: &Store,
        resolver: &dyn Resolver,
        environment: &Environment,
        call: &Call<'_>,
    ) -> Result<Value, CallError> {
        let destination = Destination::of(call)?;
        let failed = |why: String| CallError(format!("Post \"{}\": {why}", destination.url));
        let work = async {
            let (status, media, body) =
                self.exchange(store, resolver, environment, call, &destination).await.map_err(failed)?;
            decode::answer(status, &media, &body)
        };
        match tokio::time::timeout(call.timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(failed("context deadline exceeded".into())),
        }
    }

    /// Gets a JSON document.
    pub(crate) async fn get(
        &self,
        store: &Store,
        resolver: &dyn Resolver,
        environment: &Environment,
        url: String,
        authorities: Option<&str>,
    ) -> Result<Value, String> {
        let uri: http::Uri = url.parse().map_err(|error| format!("{url} is not a URL: {error}"))?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
        let host = host.ok_or_else(|| format!("{url} does not begin with https://"))?;
        let destination = Destination {
            name: host.trim_matches(['[', ']']).to_owned(),
            authority: format!("{host}:{}", uri.port_u16().unwrap_or(443)),
            path: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            url: url.clone(),
        };
        let ca_bundle = authorities.map(|pem| STANDARD.encode(pem));
        let config = ClientConfig { url: Some(url), service: None, ca_bundle };
        let work = async {
            let tls = self.tls(&config, environment)?;
            let mut connection = connect::open(store, resolver, &config, &destination, tls).await?;
            let request = Request::get(&destination.path)
                .header(header::HOST, &destination.authority)
                .header(header::USER_AGENT, "windlass")
                .header(header::ACCEPT, "application/json")
                .body(Full::new(Bytes::new()))
                .map_err(|error| error.to_string())?;
            let response = connection.send(request).await?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(format!("{} answered {status}", destination.url));
            }
            let body = Limited::new(response.into_body(), DOCUMENT).collect().await;
            let body =
                body.map_err(|_| format!("the answer of {} is too long or cut off", destination.url))?;
            serde_json::from_slice(&body.to_bytes())
                .map_err(|_| format!("the answer of {} is not JSON", destination.url))
        };
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("{} did not answer in time", destination.url)),
        }
    }

    async fn exchange(
        &self,
        store: &Store,
        resolver: &dyn Resolver,
        environment: &Environment,
        call: &Call<'_>,
        destination: &Destination,
    ) -> Result<(StatusCode, String, Bytes), String> {
        let body = Bytes::from(call.body.to_string());
        // A kept connection may have been closed by the other side: then the request was not read, and a
        // new connection is made.
        while let Some(mut kept) = self.take_idle(call.config) {
            if kept.is_alive().await
                && let Ok(response) = kept.send(request(call, destination, body.clone())?).await
            {
                return self.finish(call, kept, response).await;
            }
        }
        let tls = self.tls(call.config, environment)?;
        let mut connection = connect::open(store, resolver, call.config, destination, tls).await?;
        let response = connection.send(request(call, destination, body)?).await?;
        self.finish(call, connection, response).await
    }

    async fn finish(
        &self,
        call: &Call<'_>,
        connection: Connection,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<(StatusCode, String, Bytes), String> {
        let (parts, body) = response.into_parts();
        let bytes = match Limited::new(body, call.limit).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(format!("the answer is larger than {} bytes", call.limit));
            }
            Err(_) => return Err("unexpected EOF".into()),
        };
        self.keep_idle(call.config, connection);
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok((parts.status, media.unwrap_or_default().to_owned(), bytes))
    }

    fn with_pool<T>(&self, config: &ClientConfig, work: impl FnOnce(&mut Pool) -> T) -> T {
        let mut pools = self.pools.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !pools.contains_key(config) && pools.len() >= POOLS {
            pools.clear();
        }
        work(pools.entry(config.clone()).or_default())
    }

    fn take_idle(&self, config: &ClientConfig) -> Option<Connection> {
        self.with_pool(config, |pool| pool.idle.pop())
    }

    fn keep_idle(&self, config: &ClientConfig, connection: Connection) {
        self.with_pool(config, |pool| {
            if pool.idle.len() < IDLE {
                pool.idle.push(connection);
            }
        });
    }

    fn tls(&self, config: &ClientConfig, environment: &Environment) -> Result<tls::Config, String> {
        if let Some(known) = self.with_pool(config, |pool| pool.tls.clone()) {
            return Ok(known);
        }
        let made = tls::Config::new(config.ca_bundle.as_deref(), environment)?;
        self.with_pool(config, |pool| pool.tls = Some(made.clone()));
        Ok(made)
    }
}

fn request(call: &Call<'_>, destination: &Destination, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
    Request::post(&destination.path)
        .header(header::HOST, &destination.authority)
        .header(header::USER_AGENT, call.agent)
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| error.to_string())
}

/// A path as the real server asks for it, without empty steps and dots: Go's webhooks would answer those with a redirect.
fn cleaned(path: &str) -> String {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

impl Destination {
    fn of(call: &Call<'_>) -> Result<Self, CallError> {
        let timeout = format!("timeout={}s", call.timeout.as_secs());
        if let Some(service) = &call.config.service {
            let name = format!("{}.{}.svc", service.name, service.namespace);
            let authority = format!("{name}:{}", service.port.unwrap_or(443));
            let path = format!("{}?{timeout}", cleaned(service.path.as_deref().unwrap_or_default()));
            return Ok(Self { url: format!("https://{authority}{path}"), name, authority, path });
        }
        let text = call.config.url.as_deref().unwrap_or_default();
        let uri: http::Uri = text.parse().map_err(|error| CallError(format!("Unparsable URL: {error}")))?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
        let (Some(host), Some(shown)) = (host, uri.authority()) else {
            return Err(CallError("webhook configuration must have either service or URL".into()));
        };
        let name = host.trim_matches(['[', ']']).to_owned();
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(443));
        let path = format!("{}?{timeout}", cleaned(uri.path()));
        Ok(Self { url: format!("https://{shown}{path}"), name, authority, path })
    }
}

#[cfg(test)]
mod tests {
    use super::cleaned;

    #[test]
    fn a_path_has_no_empty_steps() {
        for (path, expected) in [
            ("", "/"),
            ("/", "/"),
            ("//failing", "/failing"),
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../../b", "/b"),
            ("convert", "/convert"),
        ] {
            assert_eq!(cleaned(path), expected, "{path}");
        }
    }
}
