//! Subresources with a life of their own: scale and binding.

use serde_json::{Value, json};

use super::{
    Attributes, GroupVersionKind, Operation, Registry, Resource, decode,
    metadata::{self, is_deleting},
    resource::text,
    scale,
    write::{Ownership, Target, Write, WriteOptions},
};
use crate::error::{Error, Result};

impl Registry {
    /// The scale of an object.
    pub async fn scale(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Value> {
        scale::of(resource, &self.get_value(resource, namespace, name).await?)
    }

    /// Replaces the scale of an object.
    pub async fn set_scale(
        &self,
        target: Target<'_>,
        wanted: &Value,
        options: &WriteOptions,
    ) -> Result<Value> {
        let resource = target.resource;
        let change = |old: &Value| scale::set(resource, old, wanted);
        let object = self.change(&Write::new(target, options).with(Ownership::Scale), &change).await?;
        scale::of(resource, &object.into_value())
    }

    /// What a request brings to a subresource that is a verb (a Binding, an Eviction, a TokenRequest), after everybody who
    /// may change it did. Such a request creates, so a namespace that is missing or ends refuses it.
    pub(super) async fn enter_act(&self, request: &Attributes<'_>, mut object: Value) -> Result<Value> {
        let Target { resource, namespace, name, .. } = request.target;
        let GroupVersionKind { group, version, kind } = request.kind();
        // Evictions may be said in the version in which they began.
        if kind == "Eviction" && object["apiVersion"] == "policy/v1beta1" {
            object["apiVersion"] = json!("policy/v1");
        }
        decode::match_kind(&mut object, resource, &group, &version, &kind)?;
        metadata::match_namespace(&mut object, resource, namespace)?;
        self.check_namespace(resource, namespace, name)?;
        self.mutate_by_admission(request, object, None).await
    }

    /// Puts a Pod on a node.
    pub async fn bind(&self, target: Target<'_>, binding: Value, options: &WriteOptions) -> Result<()> {
        let request = Attributes::of_write(Operation::Create, target, target.name, options);
        let binding = self.enter_act(&request, binding).await?;
        if text(&binding, "/metadata/name") != target.name {
            return Err(Error::bad_request("name in URL does not match name in Binding object"));
        }
        check_binding(&binding)?;
        self.validate_by_admission(&request, Some(&binding), None).await?;
        let now = self.environment().now_text();
        let change = |old: &Value| bound(old, &binding, &now);
        // Nobody owns what a binding writes.
        self.change(&Write::of_server(target, options).with(Ownership::Done), &change).await?;
        Ok(())
    }
}

/// A binding names a node.
fn check_binding(binding: &Value) -> Result<()> {
    let kind = text(binding, "/target/kind");
    if !matches!(kind, "" | "Node" | "Minion") {
        return Err(Error::bare(format!(
            "target.kind: Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\""
        )));
    }
    if text(binding, "/target/name").is_empty() {
        return Err(Error::bare("target.name: Required value"));
    }
    Ok(())
}

/// The Pod on the node of the binding, with what the binding says about it.
fn bound(old: &Value, binding: &Value, now: &str) -> Result<Value> {
    let name = text(old, "/metadata/name");
    for (field, word) in [("/metadata/uid", "UID"), ("/metadata/resourceVersion", "ResourceVersion")] {
        let (wanted, there) = (text(binding, field), text(old, field));
        if !wanted.is_empty() && wanted != there {
            let key = format!("/registry/pods/{}/{name}", text(old, "/metadata/namespace"));
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: {word} in precondition: {wanted}, {word} in object meta: {there}"
            );
            return Err(Error::conflict(super::catalog_named("pods"), name, why));
        }
    }
    let node = text(old, "/spec/nodeName");
    let refused = if is_deleting(old) {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if !node.is_empty() {
        Some(format!("pod {name} is already assigned to node \"{node}\""))
    } else if old
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty())
    {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    };
    if let Some(why) = refused {
        return Err(Error::conflict(super::catalog_named("pods/binding"), name, why));
    }
    let mut pod = old.clone();
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for field in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
            pod["metadata"][field][key] = value.clone();
        }
    }
    set_condition(&mut pod, json!({"type": "PodScheduled", "status": "True"}), now);
    Ok(pod)
}

/// Sets a condition of a Pod. The time of its last transition stays where the status does.
pub(super) fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = json!(now);
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(list) = pod["status"]["conditions"].as_array_mut() else { return };
    match list.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(there) => {
            if there["status"] == condition["status"] {
                condition["lastTransitionTime"] = there["lastTransitionTime"].clone();
            }
            *there = condition;
        }
        None => list.push(condition),
    }
}
