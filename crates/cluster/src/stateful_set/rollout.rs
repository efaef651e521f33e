//! Creating, removing and replacing the Pods of a StatefulSet, in their order.

use std::sync::Arc;

use windlass::k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{Places, Run, identity};
use crate::{amount, history, pod_control::BURST, pods};

/// Whether to go on with the next Pod.
enum Next {
    Go,
    Wait,
}

impl Run<'_> {
    /// Makes the Pods that should be there and removes those that should not. True when nothing is left to wait
    /// for, and Pods may be replaced.
    pub(super) async fn scale(&self, places: &Places) -> windlass::Result<bool> {
        let mut started = 0;
        for ordinal in places.wanted.clone() {
            let pod = places.replicas.get(&ordinal);
            started += usize::from(pod.is_none());
            if let Next::Wait = Box::pin(self.fill(ordinal, pod)).await?
                && (self.is_ordered() || started == BURST)
            {
                return Ok(false);
            }
        }
        for pod in &places.condemned {
            self.retain(pod).await?;
        }
        let unhealthy = self.first_unhealthy(places);
        for pod in &places.condemned {
            if let Next::Wait = self.condemn(pod, unhealthy).await?
                && self.is_ordered()
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The unhealthy Pod with the lowest ordinal, of those that stay and then of those that go.
    fn first_unhealthy<'p>(&self, places: &'p Places) -> Option<&'p Arc<Pod>> {
        let staying = places.replicas.values();
        staying.chain(places.condemned.iter().rev()).find(|pod| self.is_unavailable(pod))
    }

    /// One place that should have a Pod.
    async fn fill(&self, ordinal: i32, pod: Option<&Arc<Pod>>) -> windlass::Result<Next> {
        let Some(pod) = pod else { return Box::pin(self.start(ordinal)).await };
        if pods::is_finished(pod) {
            // Its successor comes when it is gone.
            if !pods::is_terminating(&pod.metadata) {
                self.delete(pod).await?;
            }
            return Ok(Next::Wait);
        }
        if pods::phase(pod) == "Pending" {
            self.ensure_claims(ordinal).await?;
        }
        let waits = pods::is_terminating(&pod.metadata) || !self.is_available(pod);
        if waits && self.is_ordered() {
            return Ok(Next::Wait);
        }
        if !identity::is_identified(pod) {
            let result = self.ctx.modify(&**pod, |pod| identity::identify(pod, ordinal)).await.map(drop);
            self.report("Update", pod.metadata.name.as_deref().unwrap_or_default(), &result);
            result?;
        }
        self.retain(pod).await?;
        Ok(Next::Go)
    }

    async fn start(&self, ordinal: i32) -> windlass::Result<Next> {
        if self.has_stale_claim(ordinal)? {
            return Ok(Next::Wait);
        }
        let (template, revision) = self.version(ordinal);
        let pod = identity::pod(&self.set, &self.spec, &template, &revision, ordinal);
        let name = pod.metadata.name.clone().unwrap_or_default();
        let created = match self.ensure_claims(ordinal).await {
            Ok(()) => self.ctx.create_child(pod).await,
            Err(error) => Err(error),
        };
        match created {
            Ok(pod) => {
                self.retain(&pod).await?;
                self.report("Create", &name, &Ok(()));
                Ok(Next::Wait)
            }
            Err(error) if crate::pod_control::namespace_is_terminating(&error) => Ok(Next::Wait),
            Err(error) => {
                let result = Err(error);
                // A Pod of that name is not news: it may be one of ours that the cache does not know yet.
                if !result.as_ref().is_err_and(windlass::Error::is_already_exists) {
                    self.report("Create", &name, &result);
                }
                result.map(|()| Next::Wait)
            }
        }
    }

    /// The template for a new Pod: below the partition it is the old one.
    fn version(&self, ordinal: i32) -> (PodTemplateSpec, String) {
        let start = identity::ordinals(&self.spec).start;
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let old = match rolling {
            Some(rolling) => ordinal < start.saturating_add(rolling.partition.unwrap_or(0)),
            None => {
                let current =
                    self.set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0);
                let rolls =
                    strategy.and_then(|s| s.type_.as_deref()).is_none_or(|type_| type_ == "RollingUpdate");
                rolls && ordinal < start.saturating_add(current)
            }
        };
        let revision = if old { &self.current } else { &self.update };
        let template = history::template(revision).unwrap_or_else(|| self.spec.template.clone());
        (template, revision.metadata.name.clone().unwrap_or_default())
    }

    /// One Pod that is too many.
    async fn condemn(&self, pod: &Arc<Pod>, unhealthy: Option<&Arc<Pod>>) -> windlass::Result<Next> {
        if pods::is_terminating(&pod.metadata) {
            return Ok(Next::Wait);
        }
        // Others are waited for to become healthy; a Pod that is itself the reason for waiting can go.
        let is_first = unhealthy.is_some_and(|first| pods::uid(first) == pods::uid(pod));
        if self.is_ordered() && !self.is_available(pod) && !is_first {
            return Ok(Next::Wait);
        }
        self.delete(pod).await?;
        Ok(Next::Wait)
    }

    async fn delete(&self, pod: &Arc<Pod>) -> windlass::Result<()> {
        let result = self.ctx.delete(&**pod).await;
        self.report("Delete", pod.metadata.name.as_deref().unwrap_or_default(), &result);
        result
    }

    /// Deletes Pods of the old revision, the highest first, as many as may be unavailable. Returns how many.
    pub(super) async fn roll(&self, places: &Places) -> (i32, windlass::Result<()>) {
        let mut deleted = 0;
        for pod in self.outdated(places) {
            if let Err(error) = self.delete(&pod).await {
                return (deleted, Err(error));
            }
            deleted += 1;
        }
        (deleted, Ok(()))
    }

    fn outdated(&self, places: &Places) -> Vec<Arc<Pod>> {
        let rolling =
            self.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        let limit = max_unavailable(
            rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
            self.spec.replicas.unwrap_or(1),
        );
        let update = self.update.metadata.name.as_deref().unwrap_or_default();
        let serving = places.replicas.values().filter(|pod| !self.is_unavailable(pod)).count();
        let down = places.wanted.len().saturating_sub(serving);
        let mut budget = limit.saturating_sub(i32::try_from(down).unwrap_or(i32::MAX));
        let lowest = places.wanted.start.saturating_add(partition);
        let above = places.replicas.range(lowest..).rev().map(|(_, pod)| pod);
        let outdated: Vec<&Arc<Pod>> = above
            .filter(|pod| identity::revision(pod) != update && !pods::is_terminating(&pod.metadata))
            .collect();
        let mut chosen = Vec::new();
        if !self.is_ordered() {
            // Those that do not serve anyway cost nothing.
            chosen.extend(outdated.iter().filter(|pod| !self.is_available(pod)).map(|pod| (*pod).clone()));
        }
        for pod in outdated {
            if budget > 0 && !chosen.iter().any(|one: &Arc<Pod>| Arc::ptr_eq(one, pod)) {
                chosen.push(pod.clone());
                budget -= 1;
            }
        }
        chosen
    }
}

/// How many Pods may be unavailable in an update: one unless told otherwise.
fn max_unavailable(value: Option<&IntOrString>, replicas: i32) -> i32 {
    let number = value.map_or(1, |value| amount::rounded_down(value, replicas));
    number.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_pod_may_be_unavailable() {
        assert_eq!(max_unavailable(None, 5), 1);
        assert_eq!(max_unavailable(Some(&IntOrString::Int(3)), 5), 3);
        assert_eq!(max_unavailable(Some(&IntOrString::String("50%".into())), 5), 2);
        assert_eq!(max_unavailable(Some(&IntOrString::String("10%".into())), 5), 1);
    }
}
