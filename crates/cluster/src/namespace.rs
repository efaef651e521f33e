//! Namespaces: what each has from the start, and what becomes of its content when it is deleted.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, ReconcileError, Reconciler,
    k8s_openapi::api::core::v1::Namespace,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, PostParams, PropagationPolicy},
        core::DynamicObject,
    },
    rbac,
};

use crate::{
    pods,
    resources::{self, Meta, Resource},
};

pub(crate) mod defaults;
mod status;
pub(crate) mod tokens;

use status::Content;

/// The finalizer in a namespace's spec that is ours.
const OWN_FINALIZER: &str = "kubernetes";

/// The shortest and the longest wait before a namespace is looked at again while content remains.
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Why a namespace could not be emptied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The status could not be written.
    #[error(transparent)]
    Context(#[from] windlass::Error),
    /// The kinds of the cluster could not be listed.
    #[error("failed to discover the kinds of the cluster")]
    Discover(#[source] windlass::kube::Error),
    /// The content could not be deleted.
    #[error("failed to delete the content of a namespace: {0}")]
    Content(String),
    /// The last step failed.
    #[error("failed to finalize a namespace")]
    Finalize(#[source] windlass::kube::Error),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Context(error) => error.category(),
            Self::Discover(_) => "DiscoveryFailed",
            Self::Content(_) => "ContentDeletionFailed",
            Self::Finalize(_) => "FinalizeFailed",
        }
    }
}

/// The controller that empties deleted namespaces, ready for an operator.
pub(crate) fn controller() -> Controller<Namespaces> {
    Controller::new(Namespaces).name("namespace-controller").concurrency(4).permits([
        rbac::rule("*", ["*"], ["list", "delete", "deletecollection"]),
        rbac::rule("", ["namespaces/finalize"], ["update"]),
    ])
}

/// Empties deleted namespaces.
pub(crate) struct Namespaces;

impl Reconciler for Namespaces {
    type Resource = Namespace;
    type Error = Error;

    async fn reconcile(&self, namespace: Arc<Namespace>, ctx: &Context<Namespace>) -> Result<Action, Error> {
        if !pods::is_terminating(&namespace.metadata) || !is_guarded(&namespace) {
            return Ok(Action::await_change());
        }
        let name = ctx.key().name();
        let kinds = resources::discover(ctx.client()).await.map_err(Error::Discover)?;
        let mut content = Content::default();
        // Pods go first, and while one is there nothing that it may need goes: no policy, no Secret, no address.
        let (pods, others): (Vec<_>, Vec<_>) =
            kinds.iter().filter(|kind| kind.namespaced).partition(|kind| is_pods(kind));
        drain(ctx.client(), name, &pods, &mut content).await;
        if content.is_empty() {
            drain(ctx.client(), name, &others, &mut content).await;
        }
        let status = status::observed(&namespace, &content, ctx.now());
        ctx.patch_status(&*namespace, &status).await?;
        if let Some(failure) = content.failure() {
            return Err(Error::Content(failure));
        }
        if content.is_empty() {
            finalize(&namespace, ctx.client()).await?;
            return Ok(Action::await_change());
        }
        // What remains ends within moments, or waits for somebody: the longer it takes, the less it is asked for.
        let since =
            namespace.metadata.deletion_timestamp.as_ref().map_or(Duration::ZERO, |time| ctx.since(time.0));
        Ok(Action::requeue((since / 4).clamp(SHORTEST_WAIT, LONGEST_WAIT)))
    }
}

fn is_pods(kind: &Resource) -> bool {
    kind.api.group.is_empty() && kind.api.kind == "Pod"
}

/// Deletes all objects of some kinds, and notes what remains.
async fn drain(client: &Client, namespace: &str, kinds: &[&Resource], content: &mut Content) {
    for kind in kinds {
        match empty(client, namespace, kind).await {
            Ok(left) => content.remain(kind, &left),
            Err(error) => content.fail(kind, &error),
        }
    }
}

fn is_guarded(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.iter().flat_map(|spec| spec.finalizers.iter().flatten());
    finalizers.into_iter().any(|finalizer| finalizer == OWN_FINALIZER)
}

/// Deletes all objects of a kind in a namespace, and returns those that are still there.
async fn empty(
    client: &Client,
    namespace: &str,
    kind: &Resource,
) -> Result<Vec<Meta>, windlass::kube::Error> {
    let all = ListParams::default();
    let metadata: Api<Meta> = Api::namespaced_with(client.clone(), namespace, &kind.api);
    let found = metadata.list(&all).await?.items;
    let staying = found.iter().filter(|object| !pods::is_terminating(&object.metadata));
    let staying: Vec<&str> = staying.filter_map(|object| object.metadata.name.as_deref()).collect();
    if staying.is_empty() {
        return Ok(found);
    }
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind.api);
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    if kind.collective {
        api.delete_collection(&params, &all).await?;
    } else {
        for name in staying {
            match api.delete(name, &params).await {
                Ok(_) => {}
                Err(windlass::kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(metadata.list(&all).await?.items)
}

/// Removes our finalizer: the namespace is gone when it was the last.
async fn finalize(namespace: &Namespace, client: &Client) -> Result<(), Error> {
    let mut finalized = namespace.clone();
    if let Some(finalizers) = finalized.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != OWN_FINALIZER);
    }
    // The status was just written: this copy's version is older, and the finalizers are all that is sent.
    finalized.metadata.resource_version = None;
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Namespace> = Api::all(client.clone());
    match api.replace_subresource("finalize", name, &PostParams::default(), &finalized).await {
        Ok(_) => Ok(()),
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(Error::Finalize(source)),
    }
}
