//! What the page changes in a cluster, where it may: an object of its query enters, what the server said leaves.

use serde::Serialize;
use serde_json::{Value, json};
use windlass::kube::{
    self,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};

use crate::{
    App,
    api_faults::{self, ApiFault},
    history,
    query::Query,
    target::Target,
};

/// Under this name the page writes.
const MANAGER: &str = "windlass-page";

/// The annotation by which simulated nodes and Pods are told what goes wrong.
const SIMULATE: &str = "windlass.dev/simulate";

/// What can go wrong in a simulated Pod.
pub(crate) const POD_FAULTS: [&str; 6] =
    ["crash-loop", "fail", "oom-kill", "never-ready", "image-pull-error", "evict"];
/// What can go wrong with a simulated node.
pub(crate) const NODE_FAULTS: [&str; 3] = ["down", "memory-pressure", "disk-pressure"];

/// What came of a change.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    /// What the server said, in its own words.
    pub(crate) message: String,
    /// The object's revision afterwards.
    pub(crate) revision: String,
}

impl Outcome {
    fn refused(message: impl Into<String>) -> Self {
        Self { ok: false, message: message.into(), revision: String::new() }
    }

    fn done(object: &Value) -> Self {
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        Self { ok: true, message: String::new(), revision }
    }
}

impl From<kube::Error> for Outcome {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::refused(status.message),
            error => Self::refused(error.to_string()),
        }
    }
}

fn editable(app: &App, query: &Query) -> Result<Target, Outcome> {
    if !app.options.edit {
        return Err(Outcome::refused("this page is read-only; start it with --edit"));
    }
    Target::of(query).ok_or_else(|| Outcome::refused("the request names no object"))
}

/// Puts a whole object in the place of the one that is there, or only asks whether that would do.
pub(crate) async fn apply(app: &App, query: &Query, body: &str) -> Outcome {
    let target = match editable(app, query) {
        Ok(target) => target,
        Err(outcome) => return outcome,
    };
    let object: Value = match serde_saphyr::from_str(body) {
        Ok(object) => object,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let metadata = &object["metadata"];
    let same = metadata["name"] == target.name.as_str()
        && metadata["namespace"].as_str().unwrap_or_default() == target.namespace
        && object["kind"] == target.kind.kind.as_str();
    if !same {
        return Outcome::refused(
            "kind, name and namespace are what they are; make a new object with kubectl",
        );
    }
    match put(app, &target, &object, query.contains_key("dry")).await {
        Ok(object) => Outcome::done(&object),
        Err(error) => error.into(),
    }
}

/// The server checks as for anybody, and unknown fields are errors.
async fn put(app: &App, target: &Target, object: &Value, dry: bool) -> Result<Value, kube::Error> {
    let api = target.api(&app.client);
    let dry = if dry { "&dryRun=All" } else { "" };
    let path =
        format!("{}/{}?fieldManager={MANAGER}&fieldValidation=Strict{dry}", api.resource_url(), target.name);
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = http::Request::put(path).header("content-type", "application/json").body(body);
    app.client.request(request.map_err(kube::Error::HttpError)?).await
}

/// Deletes an object, and none that has taken its name since.
pub(crate) async fn delete(app: &App, query: &Query) -> Outcome {
    let target = match editable(app, query) {
        Ok(target) => target,
        Err(outcome) => return outcome,
    };
    let uid = query.get("uid").filter(|uid| !uid.is_empty()).cloned();
    let preconditions = uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::background() };
    match target.api(&app.client).delete(&target.name, &params).await {
        Ok(_) => Outcome { ok: true, message: String::new(), revision: String::new() },
        Err(error) => error.into(),
    }
}

/// Makes an object what it was at an earlier revision; one that is gone is created.
pub(crate) async fn restore(app: &App, query: &Query) -> Outcome {
    let target = match editable(app, query) {
        Ok(target) => target,
        Err(outcome) => return outcome,
    };
    let Some(revision) = query.get("revision").and_then(|text| text.parse().ok()) else {
        return Outcome::refused("a revision is a number");
    };
    let namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let known = match history::history(&app.client, &target.kind, namespace, &target.name).await {
        Ok(known) => known,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let Some(version) = known.version(revision) else {
        return Outcome::refused(format!("revision {revision} is no longer kept by the cluster"));
    };
    let now = match target.get(&app.client).await {
        Ok(now) => now,
        Err(error) => return error.into(),
    };
    let object = restored(&version.object, now.as_ref());
    let written = match &now {
        Some(_) => put(app, &target, &object, false).await,
        None => create(app, &target, &object).await,
    };
    match written {
        Ok(object) => Outcome::done(&object),
        Err(error) => error.into(),
    }
}

async fn create(app: &App, target: &Target, object: &Value) -> Result<Value, kube::Error> {
    let path = format!("{}?fieldManager={MANAGER}", target.api(&app.client).resource_url());
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = http::Request::post(path).header("content-type", "application/json").body(body);
    app.client.request(request.map_err(kube::Error::HttpError)?).await
}

/// What is to be written so that an object is again what it was: without what only the server says.
fn restored(then: &Value, now: Option<&Value>) -> Value {
    let mut object = then.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in [
            "uid",
            "resourceVersion",
            "managedFields",
            "creationTimestamp",
            "generation",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata.remove(name);
        }
        if let Some(now) = now {
            metadata.insert("resourceVersion".into(), now["metadata"]["resourceVersion"].clone());
            metadata.insert("uid".into(), now["metadata"]["uid"].clone());
        }
    }
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    object
}

/// Makes a simulated Pod or node fail, or well again; expires a Lease.
pub(crate) async fn fault(app: &App, query: &Query) -> Outcome {
    let target = match editable(app, query) {
        Ok(target) => target,
        Err(outcome) => return outcome,
    };
    if !app.options.faults {
        return Outcome::refused("only the nodes of an embedded cluster can be made to fail");
    }
    let fault = query.get("fault").map(String::as_str).unwrap_or_default();
    let api = target.api(&app.client);
    if target.kind.plural == "leases" && fault == "expire" {
        // Whoever held it finds it gone, as after an expiry, and has to win it anew.
        return match api.delete(&target.name, &DeleteParams::default()).await {
            Ok(_) => Outcome { ok: true, message: String::new(), revision: String::new() },
            Err(error) => error.into(),
        };
    }
    if target.kind.plural == "serviceaccounts" && target.kind.group.is_empty() {
        return api_fault(app, &target, fault);
    }
    let known: &[&str] = match target.kind.plural.as_str() {
        "pods" => &POD_FAULTS,
        "nodes" => &NODE_FAULTS,
        _ => &[],
    };
    if !fault.is_empty() && !known.contains(&fault) {
        return Outcome::refused(format!("{fault:?} cannot happen to {}", target.kind.plural));
    }
    let value = if fault.is_empty() { Value::Null } else { fault.into() };
    let patch = json!({"metadata": {"annotations": {SIMULATE: value}}});
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    match api.patch(&target.name, &params, &Patch::Merge(&patch)).await {
        Ok(object) => Outcome::done(&serde_json::to_value(object).unwrap_or_default()),
        Err(error) => error.into(),
    }
}

/// Makes the API slow or unavailable for an account, or well again.
fn api_fault(app: &App, target: &Target, fault: &str) -> Outcome {
    let Some(faults) = &app.options.api_faults else {
        return Outcome::refused("only the API server of an embedded cluster can be made to fail");
    };
    let known = ApiFault::ALL.into_iter().find(|(word, _)| *word == fault).map(|(_, fault)| fault);
    if known.is_none() && !fault.is_empty() {
        return Outcome::refused(format!("{fault:?} cannot happen to {}", target.kind.plural));
    }
    faults.set(&api_faults::user(&target.namespace, &target.name), known);
    Outcome { ok: true, message: String::new(), revision: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_restored_says_nothing_that_only_the_server_says() {
        let then = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "2", "managedFields": []}, "spec": {"x": 1}, "status": {}});
        assert_eq!(restored(&then, None), json!({"metadata": {"name": "a"}, "spec": {"x": 1}}));
        let now = json!({"metadata": {"resourceVersion": "9", "uid": "7"}});
        assert_eq!(
            restored(&then, Some(&now))["metadata"],
            json!({"name": "a", "uid": "7", "resourceVersion": "9"})
        );
    }
}
