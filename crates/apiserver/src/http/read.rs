//! GET of one object and of many.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::{Response, header};
use serde_json::{Map, Value, json};

use super::{
    Body, Call, Observed,
    accept::{Shape, is_beta, negotiate},
    answer,
    budget::Charge,
    logs,
    path::RequestInfo,
    table,
};
use crate::{
    error::{Cause, Error, Named, Result},
    registry::{Presented, Resource},
    store::Object,
};

/// Pieces of a list are joined until they are this long: fewer, larger writes.
const CHUNK: usize = 64 * 1024;

/// The same for pieces that are more work than copying: others wait for one of them.
const SHORT_CHUNK: usize = 16 * 1024;

/// What a list is made from is charged to its reader beyond this.
const SMALL: usize = 1024 * 1024;

impl Call<'_> {
    pub(super) async fn get(&self, place: &RequestInfo, resource: &Arc<Resource>) -> Result<Response<Body>> {
        let shape = negotiate(self.header(header::ACCEPT))?;
        let (namespace, name) = (place.namespace(), place.name());
        match place.subresource.as_deref() {
            None | Some("status" | "approval" | "ephemeralcontainers" | "resize") => {
                let object = self.registry.get(resource, namespace, name)?;
                self.one(resource, shape, self.registry.present(resource, &object).await?)
            }
            Some("scale") => Ok(answer::json(&self.registry.scale(resource, namespace, name).await?)),
            Some("log") => self.logs(resource, namespace, name).await,
            Some(_) => Err(Error::no_such_path()),
        }
    }

    /// One object in the shape that the client wants.
    pub(super) fn one(
        &self,
        resource: &Arc<Resource>,
        shape: Shape,
        object: Presented,
    ) -> Result<Response<Body>> {
        let revision = self.registry.store().is_durable().then(|| object.revision()).flatten();
        let mut response = match shape {
            Shape::Object => answer::bytes(object.into_bytes()),
            Shape::Metadata | Shape::MetadataList => answer::bytes(partial_bytes(object)),
            Shape::Table => {
                let object = object.into_value();
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                answer::json(&self.rows(resource)?.table(object, metadata))
            }
        };
        if let Some(revision) = revision {
            response.extensions_mut().insert(Observed(revision));
        }
        Ok(response)
    }

    pub(super) async fn list(&self, place: &RequestInfo, resource: &Arc<Resource>) -> Result<Response<Body>> {
        let shape = negotiate(self.header(header::ACCEPT))?;
        if shape == Shape::Metadata {
            let group = match resource.group.split('.').next() {
                Some(group) if !group.is_empty() => group.to_owned(),
                _ => "core".to_owned(),
            };
            return Err(Error::new(
                crate::error::Reason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list (*{group}.{})",
                    resource.list_kind
                ),
            ));
        }
        if self.query.has("sendInitialEvents") {
            let cause = Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
            let what = Named { group: "meta.k8s.io", resource: "ListOptions" };
            return Err(Error::invalid(what, "", vec![cause]));
        }
        self.query.check_match()?;
        let options = self.query.list(resource, place.namespace.as_deref())?;
        let list = self.registry.list(resource, &options)?;
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), json!(list.revision.to_string()));
        if !list.continue_token.is_empty() || (resource.custom().is_some() && shape == Shape::Object) {
            metadata.insert("continue".into(), json!(list.continue_token));
        }
        if let Some(remaining) = list.remaining {
            metadata.insert("remainingItemCount".into(), json!(remaining));
        }
        let (is_empty, bytes) = (list.objects.is_empty(), stored_bytes(&list.objects));
        let rows = if shape == Shape::Table { Some(self.rows(resource)?) } else { None };
        // Where items are the stored bytes, it is known how long the list will be.
        let known = shape == Shape::Object && resource.is_stored_as_shown();
        let untyped: usize = list.objects.iter().map(|object| object.untyped().len() + 2).sum();
        let charge = if bytes > SMALL && self.is_limited() {
            Some(self.guard.answer_memory(&self.identity, bytes).await?)
        } else {
            None
        };
        let shown = self.registry.show_all(resource, list.objects).await?;
        if let Some(rows) = rows {
            let (head, close) = rows.frame(&Value::Object(metadata), is_empty);
            let items = shown.map(move |object| (None, rows.row(object.into_value()).to_string().into()));
            return Ok(joined(head, Box::new(items), close, None, charge));
        }
        if shape == Shape::MetadataList {
            let mut head = list_head("PartialObjectMetadataList", "meta.k8s.io/v1", metadata);
            if is_empty {
                // Go writes a list that was never made as null.
                head.truncate(head.len() - 1);
                return Ok(joined(head, Box::new(std::iter::empty()), "null}", None, charge));
            }
            let items = shown.map(|object| (None, partial_bytes(object)));
            return Ok(joined(head, Box::new(items), "]}", None, charge));
        }
        let head = list_head(&resource.list_kind, &resource.api_version(), metadata);
        // Every item has a brace and all but the first a comma.
        let length = (head.len() + untyped + 2).saturating_sub(usize::from(!is_empty));
        let length = known.then_some(length as u64);
        Ok(joined(head, objects(resource, shown), "]}", length, charge))
    }

    /// What a table shows of each object besides its cells.
    pub(super) fn row_object(&self) -> Result<table::RowObject> {
        match self.query.get("includeObject") {
            "" | "Metadata" => Ok(table::RowObject::Metadata),
            "None" => Ok(table::RowObject::Nothing),
            "Object" => Ok(table::RowObject::Whole),
            other => Err(Error::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \"{other}\": must be 'Metadata', \
                 'Object', 'None', or empty"
            ))),
        }
    }

    /// How the rows of a table are made for this client.
    pub(super) fn rows(&self, resource: &Arc<Resource>) -> Result<table::Rows> {
        let (include, beta) = (self.row_object()?, is_beta(self.header(header::ACCEPT)));
        Ok(table::Rows { resource: Arc::clone(resource), include, now: self.now(), beta })
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        self.registry.environment().now()
    }

    /// What the containers of a Pod have said: no process runs, so their states speak.
    async fn logs(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Response<Body>> {
        let tail = self.log_tail(name)?;
        let pod = self.registry.get_value(resource, namespace, name).await?;
        let options = logs::Options {
            container: self.query.get("container"),
            previous: self.query.flag("previous"),
            timestamps: self.query.flag("timestamps"),
            tail,
        };
        Ok(answer::text(&logs::text(&pod, &options)?))
    }

    /// How many of the last lines are wanted. What else a query limits is not simulated, but must make sense.
    fn log_tail(&self, pod: &str) -> Result<Option<usize>> {
        let mut causes = Vec::new();
        let fields = [
            ("tailLines", 0, "must be greater than or equal to 0"),
            ("limitBytes", 1, "must be greater than 0"),
            ("sinceSeconds", 1, "must be greater than 0"),
        ];
        for (field, least, why) in fields {
            let wrong = self.query.number(field)?.filter(|number| *number < least);
            causes.extend(wrong.map(|number| Cause::invalid(field, &json!(number), why)));
        }
        if !causes.is_empty() {
            return Err(Error::invalid(Named { group: "", resource: "PodLogOptions" }, pod, causes));
        }
        Ok(self.query.number("tailLines")?.and_then(|lines| usize::try_from(lines).ok()))
    }
}

/// An item of a list, encoded, perhaps without its opening brace.
type Item = (Option<u8>, Bytes);

/// The items of a list of whole objects: the stored bytes, not encoded again.
pub(super) fn objects(
    resource: &Resource,
    shown: impl Iterator<Item = Presented> + Send + 'static,
) -> Box<dyn Iterator<Item = Item> + Send> {
    // Items of built-in lists do not repeat kind and version, items of custom ones do.
    let typed = resource.custom().is_none();
    Box::new(shown.map(move |object| match object {
        Presented::Stored(object) if typed => (Some(b'{'), object.untyped()),
        Presented::Converted(mut value) if typed => {
            if let Some(map) = value.as_object_mut() {
                map.retain(|key, _| key != "kind" && key != "apiVersion");
            }
            (None, value.to_string().into())
        }
        other => (None, other.into_bytes()),
    }))
}

fn stored_bytes(objects: &[Arc<Object>]) -> usize {
    objects.iter().map(|object| object.bytes.len()).sum()
}

/// A list up to its first item.
pub(super) fn list_head(kind: &str, api_version: &str, metadata: Map<String, Value>) -> String {
    let metadata = Value::Object(metadata);
    format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        json!(kind),
        json!(api_version)
    )
}

/// A list of encoded items between its two ends.
pub(super) fn joined(
    head: String,
    items: Box<dyn Iterator<Item = Item> + Send>,
    close: &'static str,
    length: Option<u64>,
    charge: Option<Charge>,
) -> Response<Body> {
    let buffer = BytesMut::from(head.as_bytes());
    let chunk = if length.is_some() { CHUNK } else { SHORT_CHUNK };
    let pieces = Joined { buffer, items: Some(items), chunk, close, first: true, large: None };
    answer::body(Body::made(Box::new(pieces), length, charge))
}

/// The pieces of a list. Small items are joined, large ones go out as they are.
struct Joined {
    buffer: BytesMut,
    items: Option<Box<dyn Iterator<Item = Item> + Send>>,
    chunk: usize,
    close: &'static str,
    first: bool,
    large: Option<Bytes>,
}

impl Iterator for Joined {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if let Some(large) = self.large.take() {
            return Some(large);
        }
        let items = self.items.as_mut()?;
        self.buffer.reserve(self.chunk);
        for (brace, item) in items {
            if !std::mem::replace(&mut self.first, false) {
                self.buffer.put_u8(b',');
            }
            self.buffer.extend(brace);
            if item.len() >= self.chunk {
                self.large = Some(item);
            } else {
                self.buffer.put_slice(&item);
            }
            if self.large.is_some() || self.buffer.len() >= self.chunk {
                return Some(self.buffer.split().freeze());
            }
        }
        self.items = None;
        self.buffer.put_slice(self.close.as_bytes());
        Some(self.buffer.split().freeze())
    }
}

/// The metadata of an object and nothing else: of a stored one, a piece of its bytes.
pub(super) fn partial_bytes(object: Presented) -> Bytes {
    match object {
        Presented::Stored(object) => {
            let metadata = object.metadata();
            let mut bytes = BytesMut::with_capacity(metadata.len() + 80);
            bytes.put_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#);
            bytes.put_slice(&metadata);
            bytes.put_u8(b'}');
            bytes.freeze()
        }
        Presented::Converted(object) => partial(object).to_string().into(),
    }
}

/// The same of a decoded object.
pub(super) fn partial(mut object: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"].take(),
    })
}

impl RequestInfo {
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}
