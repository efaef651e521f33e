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
mod body;
mod budget;
mod channels;
mod compress;
mod connect;
mod deadline;
mod discovery;
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
mod table;
mod watch;
mod write;
mod yaml;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, header, request::Parts};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::Service;

pub use self::{body::Body, guard::Limits};
use self::{
    connect::Closing,
    flow::{Kind, Seat},
    guard::{Guard, Incoming, Read},
    metrics::{Labels, Metrics},
    path::{Place, Route},
    query::Query,
};
use crate::{
    admission::Warnings,
    auth::{Identity, rbac::Action, token::ISSUER},
    containers::Containers,
    error::{Error, Named, Reason, Result},
    registry::{Registry, Resource},
    store::Key,
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
}

/// Why somebody whom the cluster cannot do without does not work; `None` if all is well.
#[derive(Clone)]
struct Readiness(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl std::fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Readiness")
    }
}

/// The connection that a request came by. A request without one is from this process.
pub(crate) trait Remote: Send + Sync {
    /// Notes who has shown itself on the connection by a token. Fails if there are too many connections of that user.
    fn shown(&self, who: &Identity) -> Result<(), String>;
}

/// The connection of a request, among its extensions.
#[derive(Clone)]
struct Origin(Arc<dyn Remote>);

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
        Self { registry, guard, metrics, containers: None, readiness: None, tokens: Arc::default() }
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

    /// The registry behind the server.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
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
        let (began, labels) = (Instant::now(), OnceLock::new());
        let warnings = Warnings::default();
        let answered = self.lasting(parts, &mut body, &warnings, &labels).await;
        let response = answered.unwrap_or_else(|error| answer::failure(&error));
        if let Some(unread) = &mut body {
            guard::discard(parts, unread).await;
        }
        let labels = labels.into_inner().unwrap_or_default();
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
        labels: &OnceLock<Labels>,
    ) -> Result<Response<Body>> {
        let store = self.registry.store();
        let mut again = if matches!(parts.method, Method::GET | Method::HEAD) { READS } else { 1 };
        loop {
            let losses = store.losses();
            self.registry.settle_losses(losses);
            let work = guard::unwound(Box::pin(self.dispatch(parts, body, warnings, labels)));
            let answered = deadline::within(parts.uri.query().unwrap_or_default(), work).await;
            let response = answered.unwrap_or_else(|error| answer::failure(&error));
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
        labels: &OnceLock<Labels>,
    ) -> Result<Response<Body>> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let identity = self.identify(parts)?;
        let warnings = warnings.clone();
        let (registry, guard, containers) = (&self.registry, &*self.guard, self.containers.as_ref());
        let (metrics, no_body) = (&*self.metrics, Bytes::new());
        let mut call =
            Call { registry, guard, metrics, containers, parts, query, identity, body: no_body, warnings };
        let route = Route::parse(parts.uri.path());
        let _ = labels.set(call.labels(&route));
        call.authorize(&route)?;
        let seat = call.seat(&route).await?;
        let _charges = call.read(&route, body).await?;
        let response = compress::for_client(parts, self.served(&call, route).await?);
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
        answer::metrics(self.metrics.page(self.registry, self.guard))
    }

    /// Leave to be answered. What lasts is counted apart, where it begins.
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

    /// Refuses what the user may not do.
    fn authorize(&self, route: &Route) -> Result<()> {
        match route {
            Route::Resource(place) => self.authorize_resource(place),
            _ => self.authorize_path(),
        }
    }

    fn authorize_resource(&self, place: &Place) -> Result<()> {
        self.authorize_verb(place, self.verb(place))
    }

    fn authorize_verb(&self, place: &Place, verb: &str) -> Result<()> {
        let resource = match &place.subresource {
            Some(subresource) => format!("{}/{subresource}", place.resource),
            None => place.resource.clone(),
        };
        // A list or a watch of one name asks about that name.
        let name = match verb {
            "list" | "watch" if place.name.is_none() => self.query.selected_name(),
            _ => place.name(),
        };
        // A namespace is within itself: a Role there may speak of it.
        let namespace = match place.name() {
            name if place.group.is_empty() && place.resource == "namespaces" => name,
            _ => place.namespace(),
        };
        let action = Action::Resource { verb, group: &place.group, resource: &resource, namespace, name };
        if self.registry.allows(&self.identity, action) {
            return Ok(());
        }
        let why = action.refusal(&self.identity.name);
        Err(Error::forbidden(Named { group: &place.group, resource: &place.resource }, name, why))
    }

    fn authorize_path(&self) -> Result<()> {
        let (verb, path) = (self.parts.method.as_str().to_lowercase(), self.parts.uri.path());
        let action = Action::Path { verb: &verb, path };
        if self.registry.allows(&self.identity, action) {
            return Ok(());
        }
        let why = action.refusal(&self.identity.name);
        Err(Error::forbidden(Named { group: "", resource: "" }, "", why))
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

    /// The API's word for what the request does.
    fn verb(&self, place: &Place) -> &'static str {
        let named = place.name.is_some();
        match self.parts.method {
            _ if place.watch => "watch",
            // One object is got, never watched: whoever wants that selects it by name.
            Method::GET | Method::HEAD if !named && self.query.flag("watch") => "watch",
            Method::GET | Method::HEAD if named => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        }
    }

    async fn resource(&self, place: &Place) -> Result<Response<Body>> {
        if self.registry.catalog().group(&place.group).is_none() {
            return Ok(answer::not_a_path());
        }
        let resource = self.registry.resource(&place.group, &place.version, &place.resource)?;
        if place.namespace.is_some() && !resource.namespaced {
            return Err(Error::no_such_path());
        }
        let verb = self.verb(place);
        if place.below {
            return Err(Error::no_such_path());
        }
        if place.watch && !matches!(self.parts.method, Method::GET | Method::HEAD) {
            return Err(not_allowed());
        }
        if let Some(subresource) = &place.subresource {
            let known = resource.subresources.iter().find(|known| &known.name == subresource);
            let known = known.ok_or_else(Error::no_such_path)?;
            if !known.verbs.iter().any(|allowed| allowed == verb) {
                return Err(not_allowed());
            }
        } else if verb.is_empty() || resource.allow(verb).is_err() {
            return Err(not_allowed());
        }
        if place.namespace.is_none() && resource.namespaced {
            if place.name.is_some() {
                return Err(Error::no_such_path());
            }
            if !matches!(verb, "list" | "watch") {
                return Err(not_allowed());
            }
        }
        let unnamed = place.name.is_none() && matches!(verb, "update" | "patch");
        if unnamed || (verb == "create" && place.name.is_some() && place.subresource.is_none()) {
            return Err(not_allowed());
        }
        if let Some(warning) = deprecation(&resource) {
            self.warnings.add(warning);
        }
        self.perform(verb, place, &resource).await
    }

    /// How many bytes the request makes the server look at, about.
    fn weight(&self, verb: &str, place: &Place, resource: &Resource) -> usize {
        let store = self.registry.store();
        self.body.len()
            + match verb {
                "list" | "watch" | "deletecollection" => store.count(&resource.table) * aside::LISTED,
                "update" | "patch" | "delete" => {
                    let object = store.get(&resource.table, &Key::new(place.namespace(), place.name()));
                    object.map_or(0, |object| object.bytes.len())
                }
                // An object that is got goes out as the bytes that are there.
                _ => 0,
            }
    }

    async fn perform(&self, verb: &str, place: &Place, resource: &Arc<Resource>) -> Result<Response<Body>> {
        if self.weight(verb, place, resource) < aside::HEAVY {
            return self.answer_verb(verb, place, resource).await;
        }
        aside::heavy(self.guard.heavy(), Box::pin(self.answer_verb(verb, place, resource))).await
    }

    async fn answer_verb(
        &self,
        verb: &str,
        place: &Place,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        match verb {
            _ if connects(place) => self.connect(place, resource).await,
            "get" => self.get(place, resource).await,
            "list" => self.list(place, resource).await,
            "watch" => self.watch(place, resource).await,
            "create" => self.create(place, resource).await,
            "update" => self.update(place, resource).await,
            "patch" => self.patch(place, resource).await,
            "delete" => self.delete(place, resource).await,
            "deletecollection" => self.delete_collection(place, resource).await,
            _ => Err(not_allowed()),
        }
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Whether the request enters a container.
fn connects(place: &Place) -> bool {
    matches!(place.subresource.as_deref(), Some("exec" | "attach"))
}

/// What Kubernetes says to whoever uses a kind that it would like to be rid of.
fn deprecation(resource: &Resource) -> Option<&'static str> {
    match (&*resource.group, &*resource.plural) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        _ => None,
    }
}

fn not_allowed() -> Error {
    let mut error = Error::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    error.details = Some(Box::default());
    error
}

/// What `/version` says. The API is that of the Kubernetes release that the tables were recorded from.
fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.1+windlass", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", os(), arch()),
        "emulationMajor": "1", "emulationMinor": "37", "minCompatibilityMajor": "1", "minCompatibilityMinor": "36",
    })
}

fn os() -> &'static str {
    if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS }
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}

/// An [`ApiServer`] whose requests all come from one user.
#[derive(Debug, Clone)]
pub struct AsUser {
    server: ApiServer,
    identity: Identity,
    closing: Option<Closing>,
    origin: Option<Origin>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Origin")
    }
}

impl AsUser {
    /// The same service for one connection.
    pub(crate) fn over(mut self, connection: Arc<dyn Remote>) -> Self {
        self.origin = Some(Origin(connection));
        self
    }

    /// The same service, whose sessions inside of containers end with `closing`.
    pub(crate) fn until(mut self, closing: CancellationToken) -> Self {
        self.closing = Some(Closing(closing));
        self
    }
}

impl<B> Service<Request<B>> for AsUser
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.identity.clone());
        if let Some(closing) = &self.closing {
            request.extensions_mut().insert(closing.clone());
        }
        if let Some(origin) = &self.origin {
            request.extensions_mut().insert(origin.clone());
        }
        self.server.call(request)
    }
}
