//! Putting an operator's objects into a cluster and taking them out again, and what would become of them.

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::wait::{await_condition, conditions},
};
use serde_json::Value;

use super::Operator;
use crate::error::chain;

/// A failed request of `install` or `uninstall`.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {kind} {name}")]
pub struct InstallError {
    verb: &'static str,
    kind: String,
    name: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// How long a new kind may take to be served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// How long the objects of a kind may take to be finalized.
const GONE: Duration = Duration::from_mins(2);

impl Operator {
    /// Installs the custom kinds, and waits until they are served. Returns what was applied.
    ///
    /// Server-side apply: what is there already stays, and running it again changes nothing.
    pub async fn install(&self, client: &Client) -> Result<Vec<String>, InstallError> {
        let client = &self.patient(client.clone());
        let manifests = self.crd_manifests();
        let done = apply(client, self.name(), &manifests).await?;
        await_served(client, &manifests, ESTABLISHED).await?;
        Ok(done)
    }
}

/// Applies manifests in order, by server-side apply: large CRDs fit, and running it again changes nothing.
pub(super) async fn apply(
    client: &Client,
    manager: &str,
    manifests: &[Value],
) -> Result<Vec<String>, InstallError> {
    let mut done = Vec::new();
    for manifest in manifests {
        let target = Target::of(manifest);
        let params = PatchParams::apply(manager).force();
        let sent = target.api(client).patch(&target.name, &params, &Patch::Apply(manifest)).await;
        sent.map_err(|source| target.failed("apply", source))?;
        done.push(format!("{} {}", target.resource.kind, target.name));
    }
    Ok(done)
}

/// Deletes manifests in reverse order; what is not there is no error.
pub(super) async fn delete(client: &Client, manifests: &[Value]) -> Result<Vec<String>, InstallError> {
    let mut done = Vec::new();
    for manifest in manifests.iter().rev() {
        let target = Target::of(manifest);
        match target.api(client).delete(&target.name, &DeleteParams::background()).await {
            Ok(_) => done.push(format!("{} {}", target.resource.kind, target.name)),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(target.failed("delete", source)),
        }
    }
    Ok(done)
}

/// How many objects each of these CRDs has in the cluster; those without any are left out.
pub(super) async fn count(client: &Client, crds: &[Value]) -> Result<Vec<(String, usize)>, InstallError> {
    let mut counted = Vec::new();
    for crd in crds {
        let target = Target::of(crd);
        let Some(live) = target.found(client).await? else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = live.data["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let served = |version: &&Value| version["served"] == true;
        let stored = versions.iter().filter(served).find(|version| version["storage"] == true);
        let Some(version) = stored.or_else(|| versions.iter().find(served)) else { continue };
        let spec = &live.data["spec"];
        let gvk = GroupVersionKind::gvk(
            &text(&spec["group"]),
            &text(&version["name"]),
            &text(&spec["names"]["kind"]),
        );
        let kind = ApiResource::from_gvk_with_plural(&gvk, &text(&spec["names"]["plural"]));
        let (api, mut count) = (Api::<DynamicObject>::all_with(client.clone(), &kind), 0);
        let mut params = ListParams::default().limit(500);
        loop {
            let page = api
                .list_metadata(&params)
                .await
                .map_err(|source| target.failed("count the objects of", source))?;
            count += page.items.len();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => break,
            }
        }
        if count > 0 {
            counted.push((target.name, count));
        }
    }
    Ok(counted)
}

/// Waits until CRDs that were deleted are gone, and with them their objects and what those left to clean up.
pub(super) async fn await_gone(client: &Client, crds: &[Value]) -> Result<(), InstallError> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds {
        let target = Target::of(crd);
        let gone = await_condition(api.clone(), &target.name, |crd: Option<&CustomResourceDefinition>| {
            crd.is_none()
        });
        match tokio::time::timeout(GONE, gone).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(target.failed("await the end of", error)),
            Err(_) => return Err(target.failed("await the end of", Finalizing)),
        }
    }
    Ok(())
}

/// What an apply would do, by the API server's own judgement: each object is new, changed or as it is.
pub(super) async fn preview(
    client: &Client,
    manager: &str,
    manifests: &[Value],
) -> Result<Vec<String>, InstallError> {
    let mut told = Vec::new();
    for manifest in manifests {
        let target = Target::of(manifest);
        let verb = match target.found(client).await? {
            None => "would create",
            Some(found) => {
                let params = PatchParams::apply(manager).force().dry_run();
                let sent = target.api(client).patch(&target.name, &params, &Patch::Apply(manifest)).await;
                let applied = sent.map_err(|source| target.failed("apply", source))?;
                if same(found, applied) { "unchanged" } else { "would change" }
            }
        };
        told.push(format!("{verb} {} {}", target.resource.kind, target.name));
    }
    Ok(told)
}

/// Those that are there to be deleted, in the order of their deletion.
pub(super) async fn present(client: &Client, manifests: &[Value]) -> Result<Vec<String>, InstallError> {
    let mut found = Vec::new();
    for manifest in manifests.iter().rev() {
        let target = Target::of(manifest);
        if target.found(client).await?.is_some() {
            found.push(format!("{} {}", target.resource.kind, target.name));
        }
    }
    Ok(found)
}

/// Whether two copies differ in nothing but the server's own books.
fn same(mut old: DynamicObject, mut new: DynamicObject) -> bool {
    for object in [&mut old, &mut new] {
        object.metadata.managed_fields = None;
        object.metadata.resource_version = None;
        object.metadata.generation = None;
    }
    old == new
}

/// Waits until the kinds of these manifests are served.
pub(super) async fn await_served(
    client: &Client,
    manifests: &[Value],
    limit: Duration,
) -> Result<(), InstallError> {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for manifest in manifests.iter().filter(|manifest| manifest["kind"] == "CustomResourceDefinition") {
        let target = Target::of(manifest);
        let served = await_condition(crds.clone(), &target.name, conditions::is_crd_established());
        match tokio::time::timeout(limit, served).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(target.failed("establish", error)),
            Err(late) => return Err(target.failed("establish", late)),
        }
    }
    Ok(())
}

/// Waits until the Deployment of these manifests has rolled out.
pub(super) async fn await_available(
    client: &Client,
    manifests: &[Value],
    limit: Duration,
) -> Result<(), InstallError> {
    for manifest in manifests.iter().filter(|manifest| manifest["kind"] == "Deployment") {
        let target = Target::of(manifest);
        let namespace = target.namespace.clone().unwrap_or_default();
        let deployments = Api::<Deployment>::namespaced(client.clone(), &namespace);
        let rolled_out = await_condition(deployments, &target.name, conditions::is_deployment_completed());
        match tokio::time::timeout(limit, rolled_out).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(target.failed("await", error)),
            Err(_) => return Err(target.failed("await", Unavailable { limit, namespace })),
        }
    }
    Ok(())
}

/// Pods that do not come up.
#[derive(Debug, thiserror::Error)]
#[error("it is not available after {limit:?}; `kubectl get pods -n {namespace}` says more")]
struct Unavailable {
    limit: Duration,
    namespace: String,
}

/// Objects that are not let go.
#[derive(Debug, thiserror::Error)]
#[error(
    "its objects still wait for their finalizers after {GONE:?}; is the operator running? \
     nothing else was deleted, so that it can go on"
)]
struct Finalizing;

struct Target {
    resource: ApiResource,
    namespace: Option<String>,
    name: String,
}

impl Target {
    fn of(manifest: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&manifest["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&manifest["kind"]));
        Self {
            // Every kind in this module has a regular plural.
            resource: ApiResource::from_gvk(&gvk),
            namespace: manifest["metadata"]["namespace"].as_str().map(ToOwned::to_owned),
            name: text(&manifest["metadata"]["name"]),
        }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    async fn found(&self, client: &Client) -> Result<Option<DynamicObject>, InstallError> {
        self.api(client).get_opt(&self.name).await.map_err(|source| self.failed("read", source))
    }

    fn failed(
        &self,
        verb: &'static str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> InstallError {
        tracing::debug!(error = chain(&source), "request failed");
        InstallError {
            verb,
            kind: self.resource.kind.clone(),
            name: self.name.clone(),
            source: Box::new(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};

    use super::*;
    use crate::operator::{Placement, manifests::tests::hooked};

    fn client() -> Client {
        let clock = environment::TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let environment = environment::Environment::new(clock, 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        Client::new(ApiServer::new(Arc::new(registry)).as_user(Identity::admin()), "default")
    }

    fn verbs(told: &[String]) -> Vec<&str> {
        let mut verbs: Vec<&str> = told.iter().map(|line| line.rsplitn(3, ' ').last().unwrap()).collect();
        verbs.dedup();
        verbs
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_tells_what_would_be_done_and_does_nothing() {
        let (client, operator) = (client(), hooked());
        let manifests = |image: &str| operator.manifests(&Placement::new("boxes", image));
        let told = preview(&client, "box-operator", &manifests("a:1")).await.unwrap();
        assert_eq!(verbs(&told), ["would create"]);
        assert_eq!(present(&client, &manifests("a:1")).await.unwrap(), Vec::<String>::new());

        let done = apply(&client, "box-operator", &manifests("a:1")).await.unwrap();
        let told = preview(&client, "box-operator", &manifests("a:1")).await.unwrap();
        assert_eq!(verbs(&told), ["unchanged"], "{told:#?}");
        let told = preview(&client, "box-operator", &manifests("a:2")).await.unwrap();
        let changed: Vec<&String> = told.iter().filter(|line| !line.starts_with("unchanged")).collect();
        assert_eq!(changed, ["would change Deployment box-operator"]);
        assert_eq!(present(&client, &manifests("a:1")).await.unwrap().len(), done.len());
    }

    #[tokio::test(start_paused = true)]
    async fn the_objects_of_a_kind_are_counted_before_it_goes() {
        let (client, operator) = (client(), hooked());
        let mut crds = operator.crd_manifests();
        // Nobody converts here.
        crds[0]["spec"].as_object_mut().unwrap().remove("conversion");
        apply(&client, "box-operator", &crds).await.unwrap();
        assert_eq!(count(&client, &crds).await.unwrap(), Vec::new());
        let gvk = GroupVersionKind::gvk("example.com", "v2", "Box");
        let boxes: Api<DynamicObject> = Api::namespaced_with(
            client.clone(),
            "default",
            &ApiResource::from_gvk_with_plural(&gvk, "boxes"),
        );
        for name in ["a", "b", "c"] {
            let object = serde_json::json!({
                "apiVersion": "example.com/v2", "kind": "Box", "metadata": {"name": name}, "spec": {"size": 1},
            });
            boxes.patch(name, &PatchParams::apply("user"), &Patch::Apply(&object)).await.unwrap();
        }
        assert_eq!(count(&client, &crds).await.unwrap(), [("boxes.example.com".to_owned(), 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deployment_that_does_not_come_up_is_an_error_with_advice() {
        let (client, operator) = (client(), hooked());
        let manifests = operator.manifests(&Placement::new("boxes", "a:1"));
        apply(&client, "box-operator", &manifests).await.unwrap();
        await_served(&client, &manifests, ESTABLISHED).await.unwrap();
        let error = await_available(&client, &manifests, Duration::from_mins(5)).await.unwrap_err();
        let text = chain(&error);
        assert!(text.contains("not available after 300s") && text.contains("-n boxes"), "{text}");
    }
}
