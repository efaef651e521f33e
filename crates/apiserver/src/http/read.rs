//! GET of one object and of many.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::{Response, header};
use serde_json::{Map, Value, json};

use super::{
    Body, Call, Observed,
    accept::{Shape, is_beta, negotiate},
    answer, logs,
    path::Place,
    table,
};
use crate::{
    error::{Cause, Error, Named, Result},
    registry::{Presented, Resource},
};

/// Pieces of a list are joined until they are this long: fewer, larger writes.
const CHUNK: usize = 64 * 1024;

impl Call<'_> {
    pub(super) async fn get(&self, place: &Place, resource: &Arc<Resource>) -> Result<Response<Body>> {
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
    pub(super) fn one(&self, resource: &Resource, shape: Shape, object: Presented) -> Result<Response<Body>> {
        let revision = self.registry.store().is_durable().then(|| object.revision()).flatten();
        let mut response = match shape {
            Shape::Object => answer::bytes(object.into_bytes()),
            Shape::Metadata | Shape::MetadataList => answer::bytes(partial_bytes(object)),
            Shape::Table => {
                let object = object.into_value();
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let table = table::table(resource, &[object], metadata, self.row_object()?, self.now());
                answer::json(&self.aged(table))
            }
        };
        if let Some(revision) = revision {
            response.extensions_mut().insert(Observed(revision));
        }
        Ok(response)
    }

    pub(super) async fn list(&self, place: &Place, resource: &Arc<Resource>) -> Result<Response<Body>> {
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
        let shown = self.registry.present_all(resource, &list.objects).await?;
        if shape == Shape::Object {
            return Ok(objects(resource, shown, metadata));
        }
        if shape != Shape::Table {
            let head = list_head("PartialObjectMetadataList", "meta.k8s.io/v1", metadata);
            return Ok(joined(&head, shown.into_iter().map(|object| (None, partial_bytes(object)))));
        }
        let values: Vec<Value> = shown.into_iter().map(Presented::into_value).collect();
        let (metadata, include) = (Value::Object(metadata), self.row_object()?);
        Ok(answer::json(&self.aged(table::table(resource, &values, metadata, include, self.now()))))
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

    /// A table in the version that the client asks for; the two differ in name alone.
    fn aged(&self, mut table: Value) -> Value {
        if is_beta(self.header(header::ACCEPT)) {
            table["apiVersion"] = json!("meta.k8s.io/v1beta1");
            for row in table["rows"].as_array_mut().into_iter().flatten() {
                if row["object"]["apiVersion"] == json!("meta.k8s.io/v1") {
                    row["object"]["apiVersion"] = json!("meta.k8s.io/v1beta1");
                }
            }
        }
        table
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

/// A list whose items are the stored bytes, joined but not encoded again.
fn objects(resource: &Resource, items: Vec<Presented>, metadata: Map<String, Value>) -> Response<Body> {
    let head = list_head(&resource.list_kind, &resource.api_version(), metadata);
    // Items of built-in lists do not repeat kind and version, items of custom ones do.
    let typed = resource.custom().is_none();
    let pieces = items.into_iter().map(|object| match object {
        Presented::Stored(object) if typed => (Some(b'{'), object.untyped()),
        Presented::Converted(mut value) if typed => {
            if let Some(map) = value.as_object_mut() {
                map.retain(|key, _| key != "kind" && key != "apiVersion");
            }
            (None, value.to_string().into())
        }
        other => (None, other.into_bytes()),
    });
    joined(&head, pieces)
}

/// A list up to its first item.
fn list_head(kind: &str, api_version: &str, metadata: Map<String, Value>) -> String {
    let metadata = Value::Object(metadata);
    format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        json!(kind),
        json!(api_version)
    )
}

/// A list of encoded items, each perhaps without its opening brace.
fn joined(head: &str, items: impl Iterator<Item = (Option<u8>, Bytes)>) -> Response<Body> {
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut buffer = BytesMut::from(head.as_bytes());
    for (index, (brace, item)) in items.enumerate() {
        if index > 0 {
            buffer.put_u8(b',');
        }
        buffer.extend(brace);
        append(&mut buffer, &mut chunks, item);
    }
    buffer.put_slice(b"]}");
    chunks.push(buffer.freeze());
    answer::body(Body::chunks(chunks))
}

fn append(buffer: &mut BytesMut, chunks: &mut Vec<Bytes>, piece: Bytes) {
    if piece.len() >= CHUNK {
        chunks.push(buffer.split().freeze());
        chunks.push(piece);
        return;
    }
    buffer.put_slice(&piece);
    if buffer.len() >= CHUNK {
        chunks.push(buffer.split().freeze());
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

impl Place {
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}
