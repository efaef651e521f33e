//! POST, PUT, PATCH and DELETE.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::{
    Body, Call,
    accept::{Shape, negotiate, not_acceptable},
    answer,
    path::RequestInfo,
    read::{joined, list_head, objects},
    yaml,
};
use crate::{
    error::{Cause, Error, Named, Result},
    protobuf,
    registry::{
        DecodedBody, DeleteOptions, Deleted, Patch, PatchKind, Propagation, Resource, Target, WriteOptions,
        Written, decode_json,
    },
};

impl Call<'_> {
    fn options(&self) -> Result<WriteOptions> {
        // What cannot be answered is not done.
        negotiate(self.header(header::ACCEPT))?;
        let kind = match self.parts.method {
            http::Method::POST => "CreateOptions",
            http::Method::PUT => "UpdateOptions",
            _ => "PatchOptions",
        };
        let options = self.query.write(self.header(header::USER_AGENT), kind)?;
        Ok(WriteOptions { user: self.identity.clone(), warnings: self.warnings.clone(), ..options })
    }

    fn target<'a>(place: &'a RequestInfo, resource: &'a Resource) -> Target<'a> {
        Target {
            resource,
            namespace: place.namespace(),
            name: place.name(),
            subresource: place.subresource.as_deref().unwrap_or_default(),
        }
    }

    /// The body as JSON; YAML is taken where the client says so.
    fn decoded(&self, kind: &str) -> Result<DecodedBody> {
        let media = self.header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
        match media {
            "application/json" | "" => decode_json(&self.body, kind),
            "application/vnd.kubernetes.protobuf" => {
                let value =
                    protobuf::decode(&self.body).map_err(|error| Error::bad_request(error.to_string()))?;
                Ok(value.into())
            }
            "application/yaml" => self.yaml().map(DecodedBody::from),
            _ => Err(Error::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, application/vnd.kubernetes.protobuf",
            )),
        }
    }

    fn yaml(&self) -> Result<Value> {
        let value = yaml::decode(&self.body)
            .map_err(|error| Error::bad_request(format!("error decoding YAML: {error}")))?;
        if !value.is_object() {
            return Err(Error::bad_request("error decoding YAML: the body must be an object"));
        }
        Ok(value)
    }

    fn written(&self, resource: &Arc<Resource>, written: Written) -> Result<Response<Body>> {
        let shape = negotiate(self.header(header::ACCEPT))?;
        let response = self.one(resource, shape, written.object)?;
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(answer::with_status(response, code))
    }

    pub(super) async fn create(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let options = self.options()?;
        let target = Self::target(place, resource);
        if let Some(subresource) = place.subresource.as_deref() {
            return self.act(subresource, target, &options).await;
        }
        let body = self.decoded(&resource.kind)?;
        self.note(resource, &body.value);
        if resource.is_review() {
            self.refuse_shape()?;
            let answer = self.registry.review(resource, &self.identity, body.value)?;
            return Ok(answer::with_status(answer::json(&answer), StatusCode::CREATED));
        }
        if resource.is_binding() {
            let name = body.value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let pods = self.registry.resource("", "v1", "pods")?;
            let target = Target { resource: &pods, name: &name, subresource: "binding", ..target };
            self.registry.bind(target, body.value, &options).await?;
            return Ok(succeeded());
        }
        let written = self.registry.create(target, body, &options).await?;
        self.written(resource, written)
    }

    /// Tells the audit log what was sent: the object with its defaults, before anybody has changed it.
    fn note(&self, resource: &Resource, sent: &Value) {
        self.warnings.audit().request(true, || {
            let mut object = sent.clone();
            if !object.is_object() {
                return None;
            }
            for (field, own) in
                [("kind", json!(resource.kind)), ("apiVersion", json!(resource.api_version()))]
            {
                if object[field].as_str().is_none_or(str::is_empty) {
                    object[field] = own;
                }
            }
            if object["kind"] == json!(resource.kind) {
                resource.settle_patched(&mut object).ok()?;
                without_admission(resource, sent, &mut object);
            }
            Some(object)
        });
    }

    /// A review is an answer, not an object that could be shown as a row.
    fn refuse_shape(&self) -> Result<()> {
        match negotiate(self.header(header::ACCEPT))? {
            Shape::Object => Ok(()),
            _ => Err(not_acceptable()),
        }
    }

    /// Subresources that are verbs rather than parts of an object.
    async fn act(
        &self,
        subresource: &str,
        target: Target<'_>,
        options: &WriteOptions,
    ) -> Result<Response<Body>> {
        match subresource {
            "binding" => {
                let body = self.decoded("Binding")?;
                self.registry.bind(target, body.value, options).await?;
                Ok(succeeded())
            }
            "token" => {
                let body = self.decoded("TokenRequest")?;
                let answer = self.registry.request_token(target, body.value, options).await?;
                Ok(answer::with_status(answer::json(&answer), StatusCode::CREATED))
            }
            "eviction" => {
                let body = self.decoded("Eviction")?;
                self.registry.evict(target, body.value, options).await?;
                Ok(succeeded())
            }
            other => {
                let why = "containers here are simulated and run no process that could be reached";
                Err(Error::bad_request(format!(
                    "the subresource {other} is not served by this cluster: {why}"
                )))
            }
        }
    }

    pub(super) async fn update(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let options = self.options()?;
        let target = Self::target(place, resource);
        if target.subresource == "scale" {
            let body = self.decoded("Scale")?;
            self.note(resource, &body.value);
            let scale = self.registry.set_scale(target, &body.value, &options).await?;
            return Ok(answer::json(&scale));
        }
        let body = self.decoded(&resource.kind)?;
        self.note(resource, &body.value);
        let written = self.registry.update(target, body, &options).await?;
        self.written(resource, written)
    }

    pub(super) async fn patch(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let options = self.options()?;
        let patch = self.read_patch()?;
        self.warnings.audit().request(false, || {
            let sent = serde_json::from_slice(&self.body).ok();
            sent.or_else(|| yaml::decode(&self.body).ok())
        });
        let refuse = |cause| {
            let what = Named { group: "meta.k8s.io", resource: "PatchOptions" };
            Err(Error::invalid(what, "", vec![cause]))
        };
        match patch.kind {
            PatchKind::Apply if self.query.get("fieldManager").is_empty() => {
                return refuse(Cause::required("fieldManager", "is required for apply patch"));
            }
            PatchKind::Apply => {}
            _ if self.query.has("force") => {
                return refuse(Cause::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        let written = self.registry.patch(Self::target(place, resource), &patch, &options).await?;
        if place.subresource.as_deref() == Some("scale") {
            return Ok(answer::json(&written.object.into_value()));
        }
        self.written(resource, written)
    }

    fn read_patch(&self) -> Result<Patch> {
        let media = self.header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned();
        let force = self.query.flag("force");
        let patch =
            |kind, body: DecodedBody| Patch { kind, body: body.value, duplicates: body.duplicates, force };
        match media.as_str() {
            "application/json-patch+json" => {
                let body: Value = serde_json::from_slice(&self.body)
                    .map_err(|error| Error::bad_request(format!("error decoding patch: {error}")))?;
                Ok(patch(PatchKind::Json, body.into()))
            }
            "application/merge-patch+json" => Ok(patch(PatchKind::Merge, self.merge_body())),
            "application/strategic-merge-patch+json" => Ok(patch(PatchKind::Strategic, self.merge_body())),
            "application/apply-patch+yaml" => {
                // JSON is YAML, and clients mostly send that.
                let value = match decode_json(&self.body, "") {
                    Ok(body) if body.duplicates.is_empty() => return Ok(patch(PatchKind::Apply, body)),
                    Ok(body) => body.value,
                    Err(_) => self.yaml()?,
                };
                let duplicates = yaml::repeated(&self.body);
                Ok(patch(PatchKind::Apply, DecodedBody { value, duplicates, ..DecodedBody::default() }))
            }
            _ => {
                let mut error = Error::unsupported_media_type("415: Unsupported Media Type");
                error.details = Some(Box::default());
                Err(error)
            }
        }
    }

    /// What cannot be read is no object, which is found when there is something to patch.
    fn merge_body(&self) -> DecodedBody {
        decode_json(&self.body, "").unwrap_or_default()
    }

    fn delete_options(&self) -> Result<(DeleteOptions, WriteOptions)> {
        negotiate(self.header(header::ACCEPT))?;
        let mut stated = Map::new();
        let mut options: DeleteOptions = if self.body.is_empty() {
            DeleteOptions::default()
        } else {
            let body = self.decoded("DeleteOptions")?.value;
            self.warnings.audit().request(false, || {
                let mut options = body.clone();
                options["kind"] = json!("DeleteOptions");
                options["apiVersion"] = json!("meta.k8s.io/__internal");
                Some(options)
            });
            stated = body.as_object().cloned().unwrap_or_default();
            if let Some(policy) = body.get("propagationPolicy").and_then(Value::as_str) {
                propagation(policy)?;
            }
            serde_json::from_value(body)
                .map_err(|error| Error::bad_request(format!("failed to read the delete options: {error}")))?
        };
        if let Some(seconds) = self.query.number("gracePeriodSeconds")? {
            options.grace_period_seconds = Some(seconds);
        }
        if let Some(policy) = propagation(self.query.get("propagationPolicy"))? {
            options.propagation_policy = Some(policy);
        }
        if let (Some(policy), Some(_)) = (options.propagation_policy, options.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return Err(invalid_delete(Cause::invalid("propagationPolicy", &json!(policy.name()), why)));
        }
        let dry_run = self.query.dry_run("DeleteOptions")? || options.dry_run.iter().any(|one| one == "All");
        if let Some(seconds) = options.grace_period_seconds {
            stated.insert("gracePeriodSeconds".into(), json!(seconds));
        }
        if let Some(policy) = options.propagation_policy {
            stated.insert("propagationPolicy".into(), json!(policy.name()));
        }
        if dry_run {
            stated.insert("dryRun".into(), json!(["All"]));
        }
        let (user, warnings) = (self.identity.clone(), self.warnings.clone());
        Ok((options, WriteOptions { dry_run, user, warnings, stated, ..WriteOptions::default() }))
    }

    pub(super) async fn delete(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let (options, write) = self.delete_options()?;
        let response = match self.registry.delete(Self::target(place, resource), &options, &write).await? {
            Deleted::Pending(object) => {
                self.one(resource, negotiate(self.header(header::ACCEPT))?, object)?
            }
            Deleted::Gone(last) if resource.strategy.returns_deleted => answer::json(&last),
            Deleted::Gone(last) => answer::json(&deleted_status(resource, &last)),
        };
        if options.propagation_policy.is_none() && options.orphan_dependents.is_none() {
            self.warnings.add_first(resource.strategy.orphan_warning.map(str::to_owned).as_slice());
        }
        Ok(response)
    }

    pub(super) async fn delete_collection(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let (options, write) = self.delete_options()?;
        let list = self.query.list(resource, place.namespace.as_deref())?;
        let gone = self.registry.delete_collection(resource, &list, &options, &write).await?;
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), json!(self.registry.store().revision().to_string()));
        if resource.custom().is_some() {
            metadata.insert("continue".into(), json!(""));
        }
        let head = list_head(&resource.list_kind, &resource.api_version(), metadata);
        Ok(joined(head, objects(resource, gone.into_iter()), "]}", None, None))
    }
}

/// Takes out of a Pod with its defaults what is put in later than the real server writes it down.
fn without_admission(resource: &Resource, sent: &Value, object: &mut Value) {
    if !resource.group.is_empty() || &*resource.plural != "pods" {
        return;
    }
    for (part, fields) in [
        ("spec", &["serviceAccount", "serviceAccountName", "tolerations"][..]),
        ("status", &["phase", "qosClass"]),
    ] {
        let Some(map) = object.get_mut(part).and_then(Value::as_object_mut) else { continue };
        map.retain(|field, _| !fields.contains(&field.as_str()) || sent[part].get(field).is_some());
    }
}

fn propagation(policy: &str) -> Result<Option<Propagation>> {
    match policy {
        "" => Ok(None),
        "Background" => Ok(Some(Propagation::Background)),
        "Foreground" => Ok(Some(Propagation::Foreground)),
        "Orphan" => Ok(Some(Propagation::Orphan)),
        other => {
            let allowed = ["Foreground", "Background", "Orphan", "nil"];
            Err(invalid_delete(Cause::not_supported("propagationPolicy", other, &allowed)))
        }
    }
}

/// The answer to a verb that leaves no object.
fn succeeded() -> Response<Body> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    answer::with_status(answer::json(&status), StatusCode::CREATED)
}

fn invalid_delete(cause: Cause) -> Error {
    Error::invalid(Named { group: "meta.k8s.io", resource: "DeleteOptions" }, "", vec![cause])
}

fn deleted_status(resource: &Resource, last: &Value) -> Value {
    let mut details = json!({
        "name": last["metadata"]["name"], "kind": &*resource.plural, "uid": last["metadata"]["uid"],
    });
    if !resource.group.is_empty() {
        details["group"] = json!(&*resource.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
