//! Where a request meets the audit log: what is known of it enters, its events leave.

use std::sync::{Arc, OnceLock};

use http::{HeaderName, HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{
    Body, Call, Origin,
    metrics::Labels,
    path::{RequestInfo, Route},
    verbs::connects,
};
use crate::{
    audit::{Attributes, AuditLog, Ending, Level, Notes, Received, Record, Stage, Target},
    auth::Identity,
};

/// The name of a request in the log, which its client may choose.
const ID: HeaderName = HeaderName::from_static("audit-id");

/// A known answer of at most this length may be a `Status`.
const STATUS: usize = 64 * 1024;

/// What others are told of a request: those who count, and the audit log.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) labels: OnceLock<Labels>,
    record: OnceLock<Option<Arc<Record>>>,
    /// Whether it is known who asks.
    known: OnceLock<bool>,
}

impl Told {
    /// Begins a record, if the policy wants one. A request that is answered a second time has its record already.
    pub(super) fn begin(&self, log: &Arc<AuditLog>, call: &Call<'_>, route: &Route, known: bool) -> Notes {
        let record = self.record.get_or_init(|| {
            let _ = self.known.set(known);
            let record = call.record(log, route, known);
            if let Some(record) = record.as_ref().filter(|_| known) {
                record.write(Stage::RequestReceived);
            }
            record
        });
        Notes::of(record.clone())
    }

    fn record(&self) -> Option<&Arc<Record>> {
        self.record.get()?.as_ref()
    }

    /// Notes who the request is answered as.
    pub(super) fn impersonated(&self, requester: &Identity, wanted: &Identity) {
        if let Some(record) = self.record() {
            record.impersonated(wanted.to_json(), requester.is_master());
        }
    }

    /// Notes what is answered.
    pub(super) fn captured(&self, response: Response<Body>) -> Response<Body> {
        let Some(record) = self.record() else { return response };
        let (parts, body) = response.into_parts();
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_json = media.unwrap_or_default().starts_with("application/json");
        let (body, bytes) = if !is_json {
            (body, None)
        } else if record.has(Level::RequestResponse) {
            body.gathered()
        } else {
            let small = body.known().filter(|bytes| bytes.len() <= STATUS).cloned();
            (body, small)
        };
        let object: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        record.response(parts.status.as_u16(), object);
        Response::from_parts(parts, body)
    }

    /// Writes what is left to write, now or when the answer ends.
    pub(super) fn written(&self, response: Response<Body>) -> Response<Body> {
        let Some(record) = self.record() else { return response };
        let (mut parts, mut body) = response.into_parts();
        if let Ok(id) = HeaderValue::from_str(record.id()) {
            parts.headers.insert(ID, id);
        }
        if self.known.get() == Some(&false) {
            record.write(Stage::ResponseStarted);
        } else if record.lasts() {
            record.write(Stage::ResponseStarted);
            body = body.ending(Ending(Arc::clone(record)));
        } else {
            record.complete();
        }
        Response::from_parts(parts, body)
    }
}

impl Call<'_> {
    fn record(&self, log: &Arc<AuditLog>, route: &Route, known: bool) -> Option<Arc<Record>> {
        let place = match route {
            Route::Resource(place) => Some(place),
            _ => None,
        };
        let verb = match place {
            Some(place) => self.verb(place).to_owned(),
            None => self.parts.method.as_str().to_lowercase(),
        };
        let target = match place {
            Some(place) => Target::Resource {
                group: &place.group,
                resource: &place.resource,
                subresource: place.subresource.as_deref().unwrap_or_default(),
                namespace: within(place),
                name: place.name(),
            },
            None => Target::Path(self.parts.uri.path()),
        };
        let user = known.then_some(&self.identity);
        let decision = log.decide(&Attributes { user, verb: &verb, target });
        let environment = self.registry.environment();
        if decision.level == Level::None {
            return None;
        }
        let chosen = self.parts.headers.get(ID).and_then(|id| id.to_str().ok());
        let chosen = chosen.filter(|id| !id.is_empty() && id.len() <= 64);
        let received = Received {
            id: chosen.map_or_else(|| environment.uid(), str::to_owned),
            uri: self.parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            lasts: place.is_some_and(|place| lasts(place, &verb)),
            verb,
            user: user.map_or_else(|| json!({}), Identity::to_json),
            source: self.source(),
            agent: self.header(header::USER_AGENT).to_owned(),
            target: place.map(reference),
            at: environment.now(),
        };
        Record::begin(log, environment, decision, received)
    }

    /// Where the request comes from: what proxies say, and the connection itself.
    fn source(&self) -> Vec<String> {
        let said = self.parts.headers.get("x-forwarded-for").and_then(|value| value.to_str().ok());
        let said = said.unwrap_or_default().split(',').map(str::trim);
        let mut source: Vec<String> =
            said.filter(|text| text.parse::<std::net::IpAddr>().is_ok()).map(str::to_owned).collect();
        let own = match self.parts.extensions.get::<Origin>() {
            Some(Origin(connection)) => connection.address().map(|address| address.to_string()),
            // It comes from this process.
            None => Some("127.0.0.1".to_owned()),
        };
        source.extend(own.filter(|own| source.last() != Some(own)));
        source
    }
}

/// A namespace is within itself.
fn within(place: &RequestInfo) -> &str {
    match place.name() {
        name if place.group.is_empty() && place.resource == "namespaces" => name,
        _ => place.namespace(),
    }
}

fn lasts(place: &RequestInfo, verb: &str) -> bool {
    verb == "watch"
        || connects(place)
        || matches!(place.subresource.as_deref(), Some("log" | "portforward" | "proxy"))
}

/// What the request is about, as events name it.
fn reference(place: &RequestInfo) -> Map<String, Value> {
    let fields = [
        ("resource", place.resource.as_str()),
        ("namespace", within(place)),
        ("name", place.name()),
        ("apiGroup", &place.group),
        ("apiVersion", &place.version),
        ("subresource", place.subresource.as_deref().unwrap_or_default()),
    ];
    let said = fields.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(field, value)| (field.to_owned(), json!(value))).collect()
}
