//! Jobs are made, and never changed: what a Job runs cannot be. What is asked of them may change all the same, and then
//! one that could not begin or has failed makes room for another; one that works is left to finish.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Resource, ResourceExt, core::object::HasStatus};
use windlass::{Children, Context, Object};

use super::{build, status};
use crate::workload::pods;

/// The most that is repeated of what a Pod said.
const WORDS: usize = 1000;

/// The Job that is wanted, made if there is none. None while an earlier one is on its way out.
///
/// `beside` are the other children that are wanted; the rest goes.
pub(super) async fn ensure<R>(
    ctx: &Context<R>,
    wanted: Job,
    beside: Children,
) -> windlass::Result<Option<Arc<Job>>>
where
    R: Object + HasStatus,
{
    let name = wanted.name_any();
    let found = ctx.owned::<Job>()?.into_iter().find(|job| job.name_any() == name);
    match found {
        None => {
            let applied = ctx.apply(beside.with(wanted)).await?;
            tracing::info!(key = %ctx.key(), job = name, "created the Job");
            Ok(applied.get::<Job>(&name))
        }
        Some(job) => {
            ctx.apply(beside.without_pruning()).await?;
            if job.meta().deletion_timestamp.is_some() {
                return Ok(None);
            }
            if is_to_be_replaced(ctx, &job, &wanted)? {
                tracing::info!(key = %ctx.key(), job = name, "replacing a Job that was made for something else");
                ctx.delete(&*job).await?;
                return Ok(None);
            }
            Ok(Some(job))
        }
    }
}

/// Whether a Job was made from another wish and has nothing to lose: it has failed, or none of its Pods has begun.
fn is_to_be_replaced<R: Object>(ctx: &Context<R>, job: &Job, wanted: &Job) -> windlass::Result<bool> {
    let made_from = |job: &Job| job.annotations().get(build::MADE_FROM).cloned();
    if made_from(job) == made_from(wanted) || status::is_complete(job) {
        return Ok(false);
    }
    if status::job_failure(job).is_some() {
        return Ok(true);
    }
    // Earlier operators left no note: nobody knows what such a Job was made from.
    let idle = of_job(ctx, job)?.iter().all(|pod| pods::phase(pod) == "Pending");
    Ok(made_from(job).is_some() && idle)
}

/// The Pods of a Job, the oldest first.
pub(super) fn of_job<R: Object>(ctx: &Context<R>, job: &Job) -> windlass::Result<Vec<Arc<Pod>>> {
    let name = job.name_any();
    let mut all = ctx.list::<Pod>(ctx.key().namespace())?;
    all.retain(|pod| pod.labels().get("batch.kubernetes.io/job-name") == Some(&name));
    all.sort_by_key(|pod| (pods::finished_at(pod), pod.name_any()));
    Ok(all)
}

/// What the last Pod of a Job said at its end.
pub(super) fn last_word<R: Object>(ctx: &Context<R>, job: &Job) -> windlass::Result<Option<String>> {
    Ok(of_job(ctx, job)?.iter().rev().find_map(|pod| word(pod)))
}

fn word(pod: &Pod) -> Option<String> {
    let mut ended =
        pods::container_statuses(pod).filter_map(|status| status.state.as_ref()?.terminated.as_ref());
    let said = ended.find_map(|ended| {
        let said = ended.message.as_deref().map(str::trim).filter(|said| !said.is_empty());
        let killed = || {
            (ended.reason.as_deref() == Some("OOMKilled")).then_some("it needed more memory than its limit")
        };
        said.or_else(killed)
    })?;
    // The end tells why; a letter is not cut in two.
    let from = said.char_indices().rev().nth(WORDS - 1).map_or(0, |(at, _)| at);
    Some(said[from..].to_owned())
}

/// Why a Job failed: what Kubernetes says of it, and what its Pod said last.
pub(super) fn why<R: Object>(ctx: &Context<R>, job: &Job, why: String) -> windlass::Result<String> {
    let Some(word) = last_word(ctx, job)? else { return Ok(why) };
    let full = word.contains("No space left on device");
    let hint =
        if full { "; the volume is full: grow it by spec.backup.target, or keep fewer backups" } else { "" };
    Ok(format!("{why}; its Pod said: {word}{hint}"))
}
