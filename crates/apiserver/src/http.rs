//! The API over HTTP, as a `tower` service that needs no socket.
//!
//! A request enters as HTTP and leaves as a call of the registry; objects, lists, watch streams and
//! failures come back as HTTP. Routing is data, not code: which paths exist follows from the catalogue.
//!
//! ```text
//! path -> Route -> verb -> registry -> representation (object | Table | PartialObjectMetadata)
//! ```

mod accept;
mod answer;
mod aside;
mod audit;
mod authorize;
mod body;
mod budget;
mod channels;
mod compress;
mod connect;
mod deadline;
mod discovery;
mod faults;
mod flow;
mod guard;
mod health;
mod identity;
mod logs;
mod metrics;
mod openapi;
mod path;
mod query;
mod read;
mod service;
mod table;
mod verbs;
mod version;
mod watch;
mod write;
mod yaml;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, header, request::Parts};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;

pub(crate) use self::service::Remote;
use self::{
    audit::Told,
    flow::{Kind, Seat},
    guard::{Guard, Incoming, Read},
    metrics::{Labels, Metrics},
    path::Route,
    query::Query,
    service::Origin,
    verbs::connects,
    version::version,
};
pub use self::{
    body::Body,
    faults::{Fault, Faults},
    guard::Limits,
    service::AsUser,
};
use crate::{
    audit::AuditLog,
    auth::{
        Identity,
        oidc::{Oidc, OidcOptions},
        token::ISSUER,
    },
    containers::Containers,
    error::{Error, Result},
    registry::{Registry, Warnings},
};

/// The API server: cheap to clone, and every clone is the same server.
#[derive(Debug, Clone)]
pub struct ApiServer {
    registry: Arc<Registry>,
    guard: Arc<Guard>,
    metrics: Arc<Metrics>,
    containers: Option<Arc<dyn Containers>>,
    readiness: Option<Readiness>,
    tokens: Arc<BTreeMap<String, Identity>>,
    audit: Option<Arc<AuditLog>>,
    oidc: Option<Arc<Oidc>>,
    faults: Faults,
}

/// Why somebody whom the cluster cannot do without does not work; `None` if all is well.
#[derive(Clone)]
struct Readiness(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl std::fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Readiness")
    }
}

/// The revision of the one object that an answer shows. An answer without it may show anything.
#[derive(Debug, Clone, Copy)]
struct Observed(u64);

/// So often a read is made when the disk fails while it is answered.
const READS: usize = 4;

/// One request while it is being answered.
#[derive(Debug)]
struct Call<'a> {
    registry: &'a Arc<Registry>,
    guard: &'a Guard,
    metrics: &'a Metrics,
    audit: Option<&'a AuditLog>,
    containers: Option<&'a Arc<dyn Containers>>,
    parts: &'a Parts,
    query: Query,
    identity: Identity,
    body: Bytes,
    warnings: Warnings,
}

impl ApiServer {
    /// Serves what `registry` holds.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self::with_limits(registry, Limits::default())
    }

    /// The same, within other limits.
    pub fn with_limits(registry: Arc<Registry>, limits: Limits) -> Self {
        let (guard, metrics) = (Arc::new(Guard::new(limits)), Arc::default());
        Self {
            registry,
            guard,
            metrics,
            containers: None,
            readiness: None,
            tokens: Arc::default(),
            audit: None,
            oidc: None,
            faults: Faults::default(),
        }
    }

    /// The same server, whose clients can enter the containers that somebody runs.
    #[must_use]
    pub fn with_containers(mut self, containers: Arc<dyn Containers>) -> Self {
        self.containers = Some(containers);
        self
    }

    /// The same server, which is not ready for as long as `failing` gives a reason: its controllers have failed.
    #[must_use]
    pub fn with_readiness(mut self, failing: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.readiness = Some(Readiness(Arc::new(failing)));
        self
    }

    /// The same server, which knows these tokens beside those that it has signed.
    #[must_use]
    pub fn with_tokens(mut self, tokens: BTreeMap<String, Identity>) -> Self {
        self.tokens = Arc::new(tokens);
        self
    }

    /// The same server, which knows the tokens of an issuer of OpenID Connect.
    #[must_use]
    pub fn with_oidc(mut self, options: OidcOptions) -> Self {
        self.oidc = Some(Arc::new(Oidc::new(options)));
        self
    }

    /// The same server, which writes down what it is asked for.
    #[must_use]
    pub fn with_audit(mut self, log: AuditLog) -> Self {
        self.audit = Some(Arc::new(log));
        self
    }

    /// The registry behind the server.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Whose requests are slow or fail on purpose.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The same server as one user sees it: a service for an in-process client or for one connection.
    pub fn as_user(&self, identity: Identity) -> AsUser {
        AsUser { server: self.clone(), identity, closing: None, origin: None }
    }

    /// Answers one request. Failures are answers too.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        self.respond(&parts, Box::pin(body.map_err(Into::into))).await
    }

    /// Boxed, and for no particular body: so the server is compiled here, once, and not again by every crate that has
    /// one.
    fn respond<'a>(&'a self, parts: &'a Parts, body: Incoming<'a>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(self.response(parts, body))
    }

    async fn response(&self, parts: &Parts, body: Incoming<'_>) -> Response<Body> {
        let mut body = Some(body);
        let (began, told) = (Instant::now(), Told::default());
        let warnings = Warnings::default();
        let answered = self.lasting(parts, &mut body, &warnings, &told).await;
        let response = answered.unwrap_or_else(|error| told.captured(answer::failure(&error)));
        if let Some(unread) = &mut body {
            guard::discard(parts, unread).await;
        }
        let response = told.written(response);
        let labels = told.labels.into_inner().unwrap_or_default();
        self.metrics.answered(&labels, response.status().as_u16(), began.elapsed());
        answer::with_warnings(response, &warnings.take())
    }

    /// An answer that no crash can take back. What a disk that fails takes back may have been read in the meantime: then
    /// it is read again.
    async fn lasting(
        &self,
        parts: &Parts,
        body: &mut Option<Incoming<'_>>,
        warnings: &Warnings,
        told: &Told,
    ) -> Result<Response<Body>> {
        let store = self.registry.store();
        let mut again = if matches!(parts.method, Method::GET | Method::HEAD) { READS } else { 1 };
        loop {
            let losses = store.losses();
            self.registry.settle_losses(losses);
            let work = guard::unwound(Box::pin(self.dispatch(parts, body, warnings, told)));
            let answered = deadline::within(parts.uri.query().unwrap_or_default(), work).await;
            let response = answered.unwrap_or_else(|error| told.captured(answer::failure(&error)));
            let shown = response.extensions().get::<Observed>().copied();
            again -= 1;
            match self.settled(shown, losses).await {
                Err(_) if again > 0 && store.losses() != losses => {
                    warnings.take();
                }
                outcome => return outcome.map(|()| response),
            }
        }
    }

    /// Waits until everything that an answer tells of is on the disk, so that no crash can take it back.
    async fn settled(&self, shown: Option<Observed>, losses: u64) -> Result<()> {
        let store = self.registry.store();
        if !store.is_durable() {
            return Ok(());
        }
        let revision = match shown {
            Some(Observed(revision)) => revision,
            None => {
                let revision = store.revision();
                if store.losses() != losses {
                    let why =
                        "the disk of the data directory failed while the request was answered; try again";
                    return Err(Error::bare(why));
                }
                revision
            }
        };
        Ok(store.durable(revision).await?)
    }

    /// Who asks is known before anything is done for them, and what they may do before their body is read.
    async fn dispatch(
        &self,
        parts: &Parts,
        body: &mut Option<Incoming<'_>>,
        warnings: &Warnings,
        told: &Told,
    ) -> Result<Response<Body>> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let (identity, unknown) = match self.authenticate(parts).await {
            Ok(identity) => (identity, None),
            Err(error) => (Identity::default(), Some(error)),
        };
        let warnings = warnings.clone();
        let (registry, guard, containers) = (&self.registry, &*self.guard, self.containers.as_ref());
        let (metrics, no_body) = (&*self.metrics, Bytes::new());
        let audit = self.audit.as_deref();
        let mut call = Call {
            registry,
            guard,
            metrics,
            audit,
            containers,
            parts,
            query,
            identity,
            body: no_body,
            warnings,
        };
        let route = Route::parse(parts.uri.path());
        if let Some(log) = &self.audit {
            call.warnings = call.warnings.with_audit(told.begin(log, &call, &route, unknown.is_none()));
        }
        if let Some(error) = unknown {
            return Err(error);
        }
        if let Some(wanted) = self.impersonate(parts, &call.identity)? {
            told.impersonated(&call.identity, &wanted);
            call.identity = wanted;
        }
        self.faults.meet(&call.identity.name).await?;
        let _ = told.labels.set(call.labels(&route));
        call.authorize(&route)?;
        let seat = call.seat(&route).await?;
        let _charges = call.read(&route, body).await?;
        let response = told.captured(self.served(&call, route).await?);
        let response = compress::for_client(parts, response);
        Ok(response.map(|body| body.holding(seat, !call.is_in_process())))
    }

    async fn served(&self, call: &Call<'_>, route: Route) -> Result<Response<Body>> {
        match route {
            Route::Health(endpoint, check) => {
                let disk = self.registry.store().check_disk();
                let failing = match &self.readiness {
                    Some(Readiness(failing)) if endpoint == "readyz" && check.is_none() => failing(),
                    _ => None,
                };
                let mut response = match failing {
                    Some(why) => answer::health_failure(&health::controllers_failed(&why)),
                    None => health::answer(disk.is_ok(), &endpoint, check.as_deref(), &call.query),
                };
                // It tells of nothing that is stored, so it waits for no disk.
                response.extensions_mut().insert(Observed(0));
                Ok(response)
            }
            Route::Version => {
                let mut response = answer::json(&version());
                response.extensions_mut().insert(Observed(0));
                Ok(response)
            }
            Route::Metrics => Ok(call.metrics_page()),
            Route::Issuer => Ok(answer::json(&call.issuer())),
            Route::Keys => Ok(answer::key_set(&self.registry.key_set())),
            Route::Discovery(part) => call.discover(&part),
            Route::OpenApi(part) => Ok(call.open_api(part.as_deref())),
            Route::OpenApiV2 => Ok(call.open_api_v2()),
            Route::Resource(place) => call.resource(&place).await,
            Route::Unknown if call.parts.uri.path().starts_with("/api/v1/") => Err(Error::no_such_path()),
            Route::Unknown => Ok(answer::not_a_path()),
        }
    }
}

impl Call<'_> {
    /// Whether the user is held to what is said of a user.
    fn is_limited(&self) -> bool {
        !self.is_in_process() && !self.identity.is_master()
    }

    fn is_in_process(&self) -> bool {
        self.parts.extensions.get::<Origin>().is_none()
    }

    fn labels(&self, route: &Route) -> Labels {
        let Route::Resource(place) = route else {
            let verb = match self.parts.method {
                Method::GET => "GET",
                Method::HEAD => "HEAD",
                _ => "other",
            };
            return Labels { verb, ..Labels::default() };
        };
        let applies = self.header(header::CONTENT_TYPE).starts_with("application/apply-patch");
        let dry_run = self.query.get("dryRun") == "All";
        Labels::of(self.registry, place, self.verb(place), applies, dry_run)
    }

    fn metrics_page(&self) -> Response<Body> {
        answer::metrics(self.metrics.page(self.registry, self.guard, self.audit))
    }

    /// Permission to be answered. What lasts is counted apart, where it begins.
    async fn seat(&self, route: &Route) -> Result<Option<Seat>> {
        let kind = match self.parts.method {
            Method::GET | Method::HEAD => Kind::ReadOnly,
            _ => Kind::Mutating,
        };
        match route {
            Route::Resource(place) if self.verb(place) == "watch" || connects(place) => Ok(None),
            Route::Health(..) => Ok(Some(self.guard.flow.exempt(kind))),
            _ if !self.is_limited() => Ok(Some(self.guard.flow.exempt(kind))),
            _ => self.guard.flow.seat(kind, &self.identity.name).await.map(Some),
        }
    }

    /// Reads the body, if the request is one that has any. What it takes is given back when the request is answered.
    async fn read(
        &mut self,
        route: &Route,
        body: &mut Option<Incoming<'_>>,
    ) -> Result<[Option<budget::Charge>; 2]> {
        let reads = matches!(self.parts.method, Method::GET | Method::HEAD);
        let Some(incoming) =
            body.as_mut().filter(|_| !reads && matches!(route, Route::Resource(place) if !connects(place)))
        else {
            return Ok([None, None]);
        };
        let in_process = self.is_in_process();
        let Read { bytes, charge } =
            self.guard.read_body(self.parts, incoming, &self.identity, in_process).await?;
        *body = None;
        let work = if self.is_limited() && !bytes.is_empty() {
            Some(self.guard.work_memory(&self.identity, bytes.len()).await?)
        } else {
            None
        };
        self.body = bytes;
        Ok([charge, work])
    }

    /// What clients of tokens are told about their issuer.
    fn issuer(&self) -> serde_json::Value {
        let host = match self.header(header::HOST) {
            "" => "kubernetes.default.svc",
            host => host,
        };
        json!({
            "issuer": ISSUER, "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
