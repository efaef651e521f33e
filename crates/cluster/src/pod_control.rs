//! Creating and deleting the Pods of a workload, with the events that tell of it.

use std::sync::Arc;

use futures::future::join_all;
use windlass::{
    Context, Event, Object,
    k8s_openapi::{
        api::core::v1::{Pod, PodTemplateSpec},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};

/// The most Pods that one run of a controller creates or deletes.
pub(crate) const BURST: usize = 500;

/// The longest prefix to which the API server adds a random suffix.
pub(crate) const LONGEST_PREFIX: usize = 58;

/// A Pod as a template describes it, with a name that the API server completes.
pub(crate) fn from_template(template: &PodTemplateSpec, prefix: &str) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix.to_owned()),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Creates Pods in batches of 1, 2, 4, …, and stops after the first batch with a failure: Pods that cannot be
/// created cost one request, not five hundred. Returns how many were created.
pub(crate) async fn create_all<R: Object>(pods: Vec<Pod>, ctx: &Context<R>) -> (usize, windlass::Result<()>) {
    let mut created = 0;
    let mut pods = pods.into_iter();
    let mut batch = 1;
    loop {
        let now: Vec<Pod> = pods.by_ref().take(batch).collect();
        if now.is_empty() {
            return (created, Ok(()));
        }
        for result in join_all(now.into_iter().map(|pod| create(pod, ctx))).await {
            match result {
                Ok(pod) => created += usize::from(pod.is_some()),
                Err(error) => return (created, Err(error)),
            }
        }
        batch *= 2;
    }
}

/// Creates one Pod; `None` in a namespace that is being deleted.
pub(crate) async fn create<R: Object>(pod: Pod, ctx: &Context<R>) -> windlass::Result<Option<Arc<Pod>>> {
    match ctx.create_child(pod).await {
        Ok(pod) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            ctx.event(Event::normal("SuccessfulCreate", format!("Created pod: {name}")).action("CreatePod"));
            Ok(Some(pod))
        }
        // The namespace is going, and the workload with it.
        Err(error) if namespace_is_terminating(&error) => Ok(None),
        Err(error) => {
            let note = format!("Error creating: {}", reason(&error));
            ctx.event(Event::warning("FailedCreate", note).action("CreatePod"));
            Err(error)
        }
    }
}

/// Deletes one Pod.
pub(crate) async fn delete<R: Object>(pod: &Pod, ctx: &Context<R>) -> windlass::Result<()> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    match ctx.delete(pod).await {
        Ok(()) => {
            ctx.event(Event::normal("SuccessfulDelete", format!("Deleted pod: {name}")).action("DeletePod"));
            Ok(())
        }
        Err(error) => {
            let note = format!("Error deleting: {}", reason(&error));
            ctx.event(Event::warning("FailedDelete", note).action("DeletePod"));
            Err(error)
        }
    }
}

/// What the API server said, or what went wrong before it could.
pub(crate) fn reason(error: &windlass::Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

/// Whether nothing can be created because the namespace is being deleted.
pub(crate) fn namespace_is_terminating(error: &windlass::Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
}
