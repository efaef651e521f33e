//! Starting and stopping Pods, so that as many run as the Job allows and still needs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::{
    Run, TRACKING, backoff,
    indexes::{self, Indexes},
    policy::{self, Failure},
    verdict::{self, Facts, INDEX_FAILURES},
};
use crate::{
    pod_control::{self, BURST},
    pods,
    replica_set::victims,
};

/// The annotation that counts the failures of an index that its policy ignores.
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

impl Run<'_> {
    /// Deletes Pods; their finalizers stay until they are counted.
    pub(super) async fn delete_all(&self, pods: &[Arc<Pod>]) -> windlass::Result<()> {
        for pod in pods {
            pod_control::delete(pod, self.ctx).await?;
        }
        Ok(())
    }

    /// Creates Pods that are missing or deletes those that are too many. `facts.active` follows.
    pub(super) async fn manage(&mut self, facts: &mut Facts) -> windlass::Result<()> {
        if pods::is_terminating(&self.job.metadata) {
            return Ok(());
        }
        if self.spec.suspend == Some(true) {
            let all = std::mem::take(&mut facts.active);
            return self.remove(&all).await;
        }
        let active = i32::try_from(facts.active.len()).unwrap_or(i32::MAX);
        let wanted = self.wanted(facts, active);
        let surplus =
            self.surplus(&facts.active, usize::try_from(active.saturating_sub(wanted)).unwrap_or(0));
        if !surplus.is_empty() {
            facts.active.retain(|pod| !surplus.iter().any(|gone| pods::uid(gone) == pods::uid(pod)));
            return self.remove(&surplus).await;
        }
        let mut missing = wanted.saturating_sub(active);
        if !verdict::replaces_early(&self.spec) {
            let stopping = self.pods.iter().filter(|pod| pods::is_stopping(pod)).count();
            missing = missing.saturating_sub(i32::try_from(stopping).unwrap_or(i32::MAX));
        }
        match usize::try_from(missing) {
            Ok(missing) if missing > 0 => self.start(missing.min(BURST), facts).await,
            _ => Ok(()),
        }
    }

    /// How many Pods should run.
    fn wanted(&self, facts: &Facts, active: i32) -> i32 {
        let parallelism = self.spec.parallelism.unwrap_or(1);
        match self.spec.completions {
            // After the first success the others may end, and no new ones start.
            None if facts.succeeded > 0 => active,
            None => parallelism,
            Some(completions) => completions.saturating_sub(facts.succeeded).clamp(0, parallelism.max(0)),
        }
    }

    /// Pods that must go: those whose index nobody needs or another Pod has, then as many as are too many.
    fn surplus(&self, active: &[Arc<Pod>], at_least: usize) -> Vec<Arc<Pod>> {
        let mut going = Vec::new();
        let mut kept = active.to_vec();
        if self.spec.completion_mode.as_deref() == Some("Indexed") {
            let mut by_index: BTreeMap<i32, Vec<Arc<Pod>>> = BTreeMap::new();
            for pod in active {
                match indexes::of(pod, &self.spec) {
                    Some(index) => by_index.entry(index).or_default().push(pod.clone()),
                    None => going.push(pod.clone()),
                }
            }
            kept.clear();
            for same in by_index.into_values() {
                let extra = victims::choose(&same, &same, same.len() - 1, self.ctx.now());
                kept.extend(same.into_iter().filter(|pod| !extra.iter().any(|one| Arc::ptr_eq(one, pod))));
                going.extend(extra);
            }
        }
        let more = at_least.saturating_sub(going.len());
        going.extend(victims::choose(&kept, &kept, more, self.ctx.now()));
        going.truncate(BURST);
        going
    }

    /// Deletes Pods that are not to be counted.
    async fn remove(&self, pods: &[Arc<Pod>]) -> windlass::Result<()> {
        for pod in pods {
            let pod = self.release(pod).await?;
            pod_control::delete(&pod, self.ctx).await?;
        }
        Ok(())
    }

    /// Takes the finalizer off a Pod.
    pub(super) async fn release(&self, pod: &Arc<Pod>) -> windlass::Result<Arc<Pod>> {
        if !verdict::is_tracked(pod) {
            return Ok(pod.clone());
        }
        let released = self.ctx.modify(&**pod, |pod| {
            pod.metadata.finalizers.iter_mut().for_each(|all| all.retain(|one| one != TRACKING));
        });
        match released.await {
            Err(error) if error.is_not_found() => Ok(pod.clone()),
            other => other,
        }
    }

    async fn start(&mut self, missing: usize, facts: &mut Facts) -> windlass::Result<()> {
        let per_index = self.spec.backoff_limit_per_index.is_some();
        if !per_index {
            let left = backoff::left(&self.pods, |pod| verdict::is_failed(&self.spec, pod), self.ctx.now());
            if left > Duration::ZERO {
                self.look_again(left);
                return Ok(());
            }
        }
        let template = self.template();
        let name = self.job.metadata.name.clone().unwrap_or_default();
        let new: Vec<Pod> = if facts.indexed {
            let replaced = self.delayed(facts);
            let free = self.free_indexes(facts, missing);
            let ready = self.ready_indexes(free, &replaced);
            ready
                .into_iter()
                .map(|index| self.pod_for(index, &template, &name, replaced.get(&index)))
                .collect()
        } else {
            let prefix: String = name.chars().take(pod_control::LONGEST_PREFIX - 1).collect();
            (0..missing).map(|_| pod_control::from_template(&template, &format!("{prefix}-"))).collect()
        };
        pod_control::create_all(new, self.ctx).await.1?;
        // What was created is in the cache; only whether anything is active matters from here on.
        facts.active = self.ctx.owned::<Pod>()?.into_iter().filter(|pod| pods::is_active(pod)).collect();
        Ok(())
    }

    /// The template with the labels and the finalizer that every Pod of the Job has.
    fn template(&self) -> PodTemplateSpec {
        let mut template = self.spec.template.clone();
        let meta = template.metadata.get_or_insert_default();
        let uid = self.job.metadata.uid.clone().unwrap_or_default();
        let name = self.job.metadata.name.clone().unwrap_or_default();
        let labels = meta.labels.get_or_insert_default();
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            if self.spec.manual_selector != Some(true) {
                labels.entry(key.to_owned()).or_insert_with(|| value.clone());
            }
        }
        let finalizers = meta.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
            finalizers.push(TRACKING.to_owned());
        }
        template
    }

    /// The first indexes that have neither ended nor a Pod.
    fn free_indexes(&self, facts: &Facts, count: usize) -> Vec<i32> {
        let mut taken = Indexes::default();
        let counts = |pod: &&Arc<Pod>| {
            pods::is_active(pod) || !verdict::replaces_early(&self.spec) && pods::is_stopping(pod)
        };
        taken.extend(self.pods.iter().filter(counts).filter_map(|pod| indexes::of(pod, &self.spec)));
        taken.join(&facts.succeeded_indexes);
        if let Some(failed) = &facts.failed_indexes {
            taken.join(failed);
        }
        taken.missing(self.spec.completions.unwrap_or(0)).take(count).collect()
    }

    /// The last failed Pod of every index that has no other: it knows how often the index has failed.
    pub(super) fn delayed(&self, facts: &Facts) -> BTreeMap<i32, Arc<Pod>> {
        let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        if self.spec.backoff_limit_per_index.is_none() {
            return last;
        }
        let mut busy = facts.succeeded_indexes.clone();
        busy.extend(facts.active.iter().filter_map(|pod| indexes::of(pod, &self.spec)));
        for pod in
            self.pods.iter().filter(|pod| verdict::is_tracked(pod) && verdict::is_failed(&self.spec, pod))
        {
            let Some(index) = indexes::of(pod, &self.spec) else { continue };
            if busy.has(index) || facts.failed_indexes.as_ref().is_some_and(|failed| failed.has(index)) {
                continue;
            }
            let newer = last.get(&index).is_none_or(|old| {
                (failures(old), backoff::finished_at(old)) <= (failures(pod), backoff::finished_at(pod))
            });
            if newer {
                last.insert(index, pod.clone());
            }
        }
        last
    }

    /// Those indexes that need not wait after a failure. The others are looked at again in time.
    fn ready_indexes(&mut self, free: Vec<i32>, replaced: &BTreeMap<i32, Arc<Pod>>) -> Vec<i32> {
        let mut ready = Vec::new();
        for index in free {
            let left = replaced.get(&index).map_or(Duration::ZERO, |pod| {
                backoff::remaining(failures(pod) + 1, backoff::finished_at(pod), self.ctx.now())
            });
            if left == Duration::ZERO {
                ready.push(index);
            } else {
                self.look_again(left);
            }
        }
        ready
    }

    fn pod_for(&self, index: i32, template: &PodTemplateSpec, job: &str, replaced: Option<&Arc<Pod>>) -> Pod {
        let mut pod = pod_control::from_template(template, "");
        indexes::assign(&mut pod, job, index);
        if self.spec.backoff_limit_per_index.is_some() {
            let (mut failed, mut ignored) = (0_i32, 0_i32);
            if let Some(old) = replaced {
                (failed, ignored) = (verdict::index_failures(old), ignored_failures(old));
                let counts = policy::of_failure(&self.spec, old) != Failure::Ignored;
                let count = if counts { &mut failed } else { &mut ignored };
                *count = count.saturating_add(1);
            }
            let annotations = pod.metadata.annotations.get_or_insert_default();
            annotations.insert(INDEX_FAILURES.to_owned(), failed.to_string());
            if ignored > 0 {
                annotations.insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
            }
        }
        pod
    }
}

fn ignored_failures(pod: &Pod) -> i32 {
    pods::annotation(pod, IGNORED_FAILURES).and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn failures(pod: &Pod) -> usize {
    usize::try_from(verdict::index_failures(pod).saturating_add(ignored_failures(pod))).unwrap_or(0)
}
