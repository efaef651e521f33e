//! Creating Pods from a template, slowly at first: one that fails costs one request, not five hundred.

use futures::future::join_all;
use windlass::{
    Context, Event,
    k8s_openapi::{
        api::{
            apps::v1::{ReplicaSet, ReplicaSetSpec},
            core::v1::Pod,
        },
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};

/// Creates `missing` Pods in batches of 1, 2, 4, …; stops after the first batch with a failure.
pub(super) async fn create(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    missing: usize,
    ctx: &Context<ReplicaSet>,
) -> windlass::Result<()> {
    let mut remaining = missing;
    let mut batch = remaining.min(1);
    while batch > 0 {
        let results = join_all((0..batch).map(|_| create_one(set, spec, ctx))).await;
        results.into_iter().collect::<windlass::Result<Vec<()>>>()?;
        remaining -= batch;
        batch = (2 * batch).min(remaining);
    }
    Ok(())
}

async fn create_one(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    ctx: &Context<ReplicaSet>,
) -> windlass::Result<()> {
    match ctx.create_child(pod(set, spec)).await {
        Ok(pod) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            ctx.event(Event::normal("SuccessfulCreate", format!("Created pod: {name}")).action("CreatePod"));
            Ok(())
        }
        // The namespace is going, and this set with it.
        Err(error) if namespace_is_terminating(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", reason(&error));
            ctx.event(Event::warning("FailedCreate", note).action("CreatePod"));
            Err(error)
        }
    }
}

fn pod(set: &ReplicaSet, spec: &ReplicaSetSpec) -> Pod {
    let template = spec.template.clone().unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// What the API server said, or what went wrong before it could.
pub(super) fn reason(error: &windlass::Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

fn namespace_is_terminating(error: &windlass::Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
}
