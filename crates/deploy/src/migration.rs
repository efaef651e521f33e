//! Stored objects in another version: every one is written again, and then the API server is told that none is left in
//! the old one. What storage version migration is to Kubernetes.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::kube::{
    self, Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};

use crate::{
    Tell, count,
    definitions::storing,
    error::Error,
    objects::{PAGE, resource},
    target::Target,
};

/// How long an API server may take to store by a definition that has changed.
const SETTLED: Duration = Duration::from_secs(5);

/// Writes every object of a kind again, so that it is stored in the version of now, and forgets the others.
pub(crate) async fn rewrite(
    client: &Client,
    target: &Target,
    version: &str,
    tell: Tell<'_>,
) -> Result<(), Error> {
    let Some(live) = target.found(client).await? else { return Ok(()) };
    let seen = live.metadata.resource_version.clone();
    let live = serde_json::to_value(live).unwrap_or_default();
    let Some(kind) = resource(&live) else { return Ok(()) };
    // What is written before the API server has taken in a changed definition is stored as before.
    tokio::time::sleep(SETTLED).await;
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let failed = |verb: &'static str, what: String| {
        move |error: kube::Error| Error::Request { verb, what, source: error.into() }
    };
    let (mut count, mut next) = (0, None::<String>);
    loop {
        let mut params = ListParams::default().limit(PAGE);
        params.continue_token = next.take();
        let page = api.list(&params).await.map_err(failed("list", kind.plural.clone()))?;
        next = page.metadata.continue_.clone().filter(|token| !token.is_empty());
        for object in page.items {
            let one =
                Target { resource: kind.clone(), namespace: object.namespace(), name: object.name_any() };
            let written = one.api(client).replace(&one.name, &PostParams::default(), &object).await;
            match written {
                Ok(_) => count += 1,
                // Whoever has changed it since has written it in the version of now; or it is gone.
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                Err(error) => return Err(one.failed("store anew", error)),
            }
        }
        if next.is_none() {
            break;
        }
    }
    // With what was seen before: if somebody has changed the definition since, objects may be in another version again.
    let status = json!({"metadata": {"resourceVersion": seen}, "status": {"storedVersions": [version]}});
    let patched =
        target.api(client).patch_status(&target.name, &PatchParams::default(), &Patch::Merge(status)).await;
    patched.map_err(|error| target.failed("change what is stored of", error))?;
    tell(&format!("stored {} of {} as {version}", count::objects(count), target.name));
    Ok(())
}

/// Makes a definition store objects in another of its versions.
pub(crate) async fn store_as(
    client: &Client,
    target: &Target,
    live: &Value,
    version: &str,
    manager: &str,
) -> Result<(), Error> {
    let changed = storing(live, version);
    let patch = json!({
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
        "spec": {"versions": changed["spec"]["versions"]},
    });
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let patched = target.api(client).patch(&target.name, &params, &Patch::Merge(patch)).await;
    patched.map_err(|error| target.failed("change the stored version of", error))?;
    Ok(())
}
