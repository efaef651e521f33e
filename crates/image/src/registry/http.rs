//! One repository of a registry over HTTP: TLS, who we are, and one request after another until it is answered.

mod connect;
mod tls;

use std::{sync::Mutex, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, LOCATION, PROXY_AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyExt, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;

use super::{
    Error, Keyring, Login, Proxies, Retry,
    body::{Watched, Watcher},
    retry::{Failure, after, is_passing},
};
use crate::Reference;

/// How large the text of a failure may be.
const LONGEST_TEXT: usize = 64 * 1024;
/// How long an answer may take, beside the time for the bytes of its request.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The slowest line that is waited for, in bytes per second.
const SLOWEST: u64 = 32 * 1024;

/// What is done with a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Pull,
    /// Reading and writing.
    Push,
}

/// How a registry is spoken to.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Trust any certificate, and speak plain HTTP where TLS is not served.
    pub insecure: bool,
    /// Authorities to trust beside the system's, in PEM.
    pub authorities: Option<std::path::PathBuf>,
    /// Who we are.
    pub keyring: Keyring,
    /// How patient we are.
    pub retry: Retry,
    /// Another repository of the registry, from which blobs are taken that are there.
    pub mount_from: Option<String>,
    /// The proxies on the way; none unless set.
    pub proxies: Proxies,
}

/// A repository that can be reached.
pub struct Repository {
    pub(super) reference: Reference,
    pub(super) host: String,
    pub(super) login: Option<Login>,
    pub(super) insecure: bool,
    pub(super) retry: Retry,
    pub(super) mount_from: Option<String>,
    access: Access,
    base: String,
    client: Client<HttpsConnector<connect::Connector>, Watched>,
    proxies: Proxies,
    /// The header that was last accepted.
    authorization: Mutex<Option<HeaderValue>>,
}

/// A request before anybody has asked who sends it.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    pub(super) watcher: Option<Watcher>,
    /// How large the answer may be.
    pub(super) longest: usize,
    /// What it is, for people.
    pub(super) what: String,
}

impl Call {
    pub(super) fn new(method: Method, uri: Uri, what: impl Into<String>) -> Self {
        Self {
            method,
            uri,
            headers: Vec::new(),
            body: Bytes::new(),
            watcher: None,
            longest: LONGEST_TEXT,
            what: what.into(),
        }
    }

    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the registry says in its own words, in one line.
    pub(super) fn said(&self) -> String {
        let document: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let first = &document["errors"][0];
        let text =
            |value: &serde_json::Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let said = match (text(&first["code"]), text(&first["message"])) {
            (Some(code), Some(message)) => Some(format!("{code}: {message}")),
            (code, message) => message.or(code).or_else(|| text(&document["details"])),
        };
        said.unwrap_or_else(|| self.status.to_string()).lines().collect::<Vec<_>>().join(" ")
    }
}

impl Repository {
    /// Finds out how the registry speaks, and who we are to it.
    pub async fn open(reference: &Reference, access: Access, options: &Options) -> Result<Self, Error> {
        let login = options.keyring.find(reference).await?;
        let mut repository = Self {
            reference: reference.clone(),
            host: reference.registry().to_owned(),
            login,
            insecure: options.insecure,
            retry: options.retry,
            mount_from: options.mount_from.clone(),
            access,
            base: format!("https://{}", reference.api_host()),
            client: tls::client(options)?,
            proxies: options.proxies.clone(),
            authorization: Mutex::new(None),
        };
        if options.insecure && !repository.speaks_tls().await {
            repository.base = format!("http://{}", reference.api_host());
        }
        repository.ping().await?;
        Ok(repository)
    }

    /// Whether TLS is served there, by whomever. What else is wrong is found by the next request.
    async fn speaks_tls(&self) -> bool {
        let Ok(request) = Request::get(format!("{}/v2/", self.base)).body(Bytes::new()) else { return true };
        match self.exchange(request, &self.host, None, LONGEST_TEXT).await {
            Ok(_) => true,
            Err(Failure::Passing { error: Error::Unreachable { why, .. }, .. }) => {
                !why.contains(tls::NOT_TLS) && !why.contains("eof")
            }
            Err(_) => true,
        }
    }

    /// A first question. Who cannot be reached now was not reached before either: that is said at once.
    async fn ping(&self) -> Result<(), Error> {
        let call = Call::new(Method::GET, self.uri("/v2/")?, "a first question");
        let attempt = || async {
            self.attempt(call.clone()).await.map_err(|failure| match failure {
                Failure::Passing { error: error @ Error::Unreachable { .. }, .. } => Failure::Final(error),
                failure => failure,
            })
        };
        let answer = self.retry.run(attempt).await?;
        match answer.status {
            StatusCode::OK => Ok(()),
            StatusCode::NOT_FOUND => {
                Err(self.protocol("a first question", "it is no registry (404 for /v2/)"))
            }
            _ => Err(self.unexpected("a first question", &answer).into_error()),
        }
    }

    /// The name that this was opened by.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    pub(super) fn uri(&self, path: &str) -> Result<Uri, Error> {
        format!("{}{path}", self.base).parse().map_err(|_| self.protocol(path, "it is no URL"))
    }

    /// A path of this repository.
    pub(super) fn path(&self, path: &str) -> Result<Uri, Error> {
        self.uri(&format!("/v2/{}/{path}", self.reference.repository()))
    }

    /// What a token must allow.
    pub(super) fn scope(&self) -> Vec<String> {
        let actions = match self.access {
            Access::Pull => "pull",
            Access::Push => "pull,push",
        };
        let own = format!("repository:{}:{actions}", self.reference.repository());
        std::iter::once(own)
            .chain(self.mount_from.iter().map(|from| format!("repository:{from}:pull")))
            .collect()
    }

    /// Sends a request until it is answered, or has been tried often enough.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, Error> {
        self.retry.run(|| self.attempt(call.clone())).await
    }

    /// Sends a request once; a second time if the registry asks who we are.
    pub(super) async fn attempt(&self, call: Call) -> Result<Answer, Failure> {
        let known = self.authorization.lock().map(|known| known.clone()).unwrap_or_default();
        let mut answer = self.once(&call, known.clone()).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            let authorization = self.authorize(&answer).await?;
            answer = self.once(&call, Some(authorization.clone())).await?;
            if answer.status == StatusCode::UNAUTHORIZED {
                return Err(self.denied(answer.said()).into());
            }
            if let Ok(mut known) = self.authorization.lock() {
                *known = Some(authorization);
            }
        }
        match answer.status {
            StatusCode::FORBIDDEN => Err(self.denied(answer.said()).into()),
            status if is_passing(status) => Err(self.unexpected(&call.what, &answer)),
            _ => Ok(answer),
        }
    }

    async fn once(&self, call: &Call, authorization: Option<HeaderValue>) -> Result<Answer, Failure> {
        let odd = || Failure::Final(self.protocol(&call.what, "it cannot be sent"));
        let mut request = Request::builder().method(call.method.clone()).uri(call.uri.clone());
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        // Whoever else stores the blobs of a registry has no business with its passwords.
        if let Some(value) = authorization.filter(|_| self.is_own(&call.uri)) {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(call.body.clone()).map_err(|_| odd())?;
        self.exchange(request, &self.host, call.watcher.clone(), call.longest).await
    }

    fn is_own(&self, uri: &Uri) -> bool {
        self.base.parse::<Uri>().is_ok_and(|base| base.authority() == uri.authority())
    }

    /// One request and its whole answer.
    pub(super) async fn exchange(
        &self,
        mut request: Request<Bytes>,
        host: &str,
        watcher: Option<Watcher>,
        longest: usize,
    ) -> Result<Answer, Failure> {
        let agent = concat!("windlass/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
        // Within TLS the proxy hears nothing: it was told when the connection was made.
        let proxy = self.proxies.of(request.uri()).filter(|_| request.uri().scheme_str() == Some("http"));
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.clone()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        let unreachable = |why: String| Failure::Passing {
            error: Error::Unreachable { host: host.to_owned(), why },
            after: None,
        };
        let size = request.body().len().max(longest) as u64;
        let patience = TIMEOUT + Duration::from_secs(size / SLOWEST);
        let exchange = async {
            let answer = self.client.request(request.map(|body| Watched::new(body, watcher))).await;
            let answer = answer.map_err(|error| match tls::distrust(&error) {
                Some(why) => Error::Untrusted { host: host.to_owned(), why }.into(),
                None => unreachable(tls::reason(&error)),
            })?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, longest).collect().await;
            let body =
                body.map_err(|error| unreachable(format!("the answer broke off: {error}")))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        let answered = tokio::time::timeout(patience, exchange).await;
        answered.unwrap_or_else(|_| Err(unreachable(format!("no answer within {} s", patience.as_secs()))))
    }

    /// Where an answer leads. A proxy that ends TLS may let a registry think that it speaks plain HTTP.
    pub(super) fn location(&self, answer: &Answer, what: &str) -> Result<Uri, Error> {
        let odd = || self.protocol(what, "it does not say where to go on");
        let text = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok()).ok_or_else(odd)?;
        let uri: Uri =
            if text.starts_with('/') { self.uri(text)? } else { text.parse().map_err(|_| odd())? };
        if uri.authority().is_none() {
            return Err(odd());
        }
        if self.is_own(&uri) {
            return self.uri(uri.path_and_query().map_or("/", |path| path.as_str()));
        }
        if uri.scheme_str() != Some("https") && !self.insecure {
            return Err(self.protocol(what, "it leads to another host over plain HTTP"));
        }
        Ok(uri)
    }

    pub(super) fn protocol(&self, what: &str, why: &str) -> Error {
        Error::Protocol { host: self.host.clone(), what: what.to_owned(), why: why.to_owned() }
    }

    /// An answer other than the one that was expected.
    pub(super) fn unexpected(&self, what: &str, answer: &Answer) -> Failure {
        let (host, status) = (self.host.clone(), answer.status);
        if is_passing(status) {
            let after = after(&answer.headers, jiff::Timestamp::now());
            return Failure::Passing { error: Error::Busy { host, status, attempts: 1, after: None }, after };
        }
        Failure::Final(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.denied(answer.said()),
            _ => Error::Refused { host, what: what.to_owned(), status, why: answer.said() },
        })
    }
}

impl Failure {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Passing { error, .. } => error,
        }
    }
}
