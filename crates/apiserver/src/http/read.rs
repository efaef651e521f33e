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
            None | Some("status") => {
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
            Shape::Metadata | Shape::MetadataList => answer::json(&partial(object.into_value())),
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
        let values: Vec<Value> = shown.into_iter().map(Presented::into_value).collect();
        Ok(answer::json(&match shape {
            Shape::Table => {
                let include = self.row_object()?;
                self.aged(table::table(resource, &values, Value::Object(metadata), include, self.now()))
            }
            _ => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "items": values.into_iter().map(partial).collect::<Vec<_>>(),
            }),
        }))
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
        let pod = self.registry.get_value(resource, namespace, name).await?;
        let options = logs::Options {
            container: self.query.get("container"),
            previous: self.query.flag("previous"),
            timestamps: self.query.flag("timestamps"),
            tail: self.query.number("tailLines")?.and_then(|lines| usize::try_from(lines).ok()),
        };
        Ok(answer::text(&logs::text(&pod, &options)?))
    }
}

/// A list whose items are the stored bytes, joined but not encoded again.
fn objects(resource: &Resource, items: Vec<Presented>, metadata: Map<String, Value>) -> Response<Body> {
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
        json!(resource.list_kind),
        json!(resource.api_version()),
        Value::Object(metadata)
    );
    // Items of built-in lists do not repeat kind and version, items of custom ones do.
    let typed = resource.custom().is_none();
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut buffer = BytesMut::from(head.as_bytes());
    for (index, object) in items.into_iter().enumerate() {
        if index > 0 {
            buffer.put_u8(b',');
        }
        match object {
            Presented::Stored(object) if typed => {
                buffer.put_u8(b'{');
                append(&mut buffer, &mut chunks, object.untyped());
            }
            Presented::Converted(mut value) if typed => {
                if let Some(map) = value.as_object_mut() {
                    map.retain(|key, _| key != "kind" && key != "apiVersion");
                }
                append(&mut buffer, &mut chunks, value.to_string().into());
            }
            other => append(&mut buffer, &mut chunks, other.into_bytes()),
        }
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

/// The metadata of an object and nothing else.
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
