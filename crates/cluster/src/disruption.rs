//! The controller of PodDisruptionBudgets: how many Pods may be evicted now.
//!
//! Enters: a budget, the Pods that it selects and what controls them. Leaves: its status, which the API server asks
//! before it lets a Pod be evicted.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Reader, Reconciler, conditions,
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            apps::v1::{Deployment, ReplicaSet, StatefulSet},
            core::v1::{Pod, ReplicationController},
            policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
        },
        apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString},
    },
    kube::{self, Api, api::PostParams},
    rbac,
};

use crate::{amount, pods, selector};

mod scale;

use scale::Scales;

const CONDITION: &str = "DisruptionAllowed";

/// So long a Pod whose eviction was allowed may take until it is being deleted.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// How soon the size of controllers is asked for again that did not tell it: nothing else would.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Budgets> {
    Controller::new(Budgets::default())
        .name("disruption-controller")
        .core_events("controllermanager")
        .watches::<Pod, _>(budgets_of)
        .reads::<Deployment>()
        .reads::<ReplicaSet>()
        .reads::<StatefulSet>()
        .reads::<ReplicationController>()
        .permits([
            rbac::rule("policy", ["poddisruptionbudgets/status"], ["update"]),
            rbac::rule("*", ["*/scale"], ["get"]),
        ])
}

fn budgets_of(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    let budgets = cache.list::<PodDisruptionBudget>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    let selecting =
        budgets.iter().filter(|budget| budget.spec.as_ref().is_some_and(|spec| selects(spec, pod)));
    selecting.map(|budget| ObjectKey::of(&**budget)).collect()
}

fn selects(spec: &PodDisruptionBudgetSpec, pod: &Pod) -> bool {
    spec.selector.as_ref().is_some_and(|selector| selector::matches(selector, pod.metadata.labels.as_ref()))
}

/// Reconciles PodDisruptionBudgets.
#[derive(Default)]
pub(crate) struct Budgets {
    scales: Scales,
}

impl Reconciler for Budgets {
    type Resource = PodDisruptionBudget;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        budget: Arc<PodDisruptionBudget>,
        ctx: &Context<PodDisruptionBudget>,
    ) -> Result<Action, windlass::Error> {
        let Some(spec) = &budget.spec else { return Ok(Action::await_change()) };
        let mut selected = ctx.list::<Pod>(budget.metadata.namespace.as_deref())?;
        selected.retain(|pod| selects(spec, pod));
        if selected.is_empty() {
            ctx.event(Event::normal("NoPods", "No matching pods found").action("Sync"));
        }
        let (expected, desired) = match self.expected(spec, &selected, ctx).await? {
            Ok(expectation) => expectation,
            Err(why) => return fail(&budget, &why, ctx).await,
        };
        let (disrupted, next) = disrupted(&budget, &selected, ctx.now());
        let healthy = healthy(&selected, &disrupted);
        let status = observed(&budget, &Counts { expected, desired, healthy }, disrupted, ctx.now());
        let written = write(&budget, &status, ctx).await;
        crate::retry_conflicts(written.map(|()| next.map_or_else(Action::await_change, Action::requeue)))
    }
}

impl Budgets {
    /// How many Pods are expected and how many must be healthy, or why that cannot be told.
    async fn expected(
        &self,
        spec: &PodDisruptionBudgetSpec,
        selected: &[Arc<Pod>],
        ctx: &Context<PodDisruptionBudget>,
    ) -> windlass::Result<Result<(i32, i32), String>> {
        let count = i32::try_from(selected.len()).unwrap_or(i32::MAX);
        if !needs_scale(spec) {
            return Ok(Ok(expectation(spec, count, 0)));
        }
        let scale = match self.scales.of(selected, ctx).await? {
            Ok(scale) => scale,
            Err(why) => return Ok(Err(why)),
        };
        if scale.unmanaged {
            ctx.event(Event::warning("UnmanagedPods", unmanaged(spec)).action("Sync"));
        }
        Ok(Ok(expectation(spec, count, scale.replicas)))
    }
}

/// Nothing may be disrupted as long as nobody knows how many Pods there should be.
async fn fail(
    budget: &PodDisruptionBudget,
    why: &str,
    ctx: &Context<PodDisruptionBudget>,
) -> windlass::Result<Action> {
    let mut status = budget.status.clone().unwrap_or_default();
    let told = status.conditions.iter().flatten().any(|old| old.type_ == CONDITION && old.message == why);
    if !told {
        let note = format!("Failed to calculate the number of expected pods: {why}");
        ctx.event(Event::warning("CalculateExpectedPodCountFailed", note).action("Sync"));
    }
    status.disruptions_allowed = Some(0);
    let condition = conditions::is_false(CONDITION, "SyncFailed", why);
    conditions::set(status.conditions.get_or_insert_default(), condition, budget, ctx.now());
    let written = write(budget, &status, ctx).await;
    crate::retry_conflicts(written.map(|()| Action::requeue(LOOK_AGAIN)))
}

/// Writes the status onto the version of the budget that it was made from: an eviction that was allowed meanwhile has
/// used some of what is allowed, and must not be given it back.
async fn write(
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
    ctx: &Context<PodDisruptionBudget>,
) -> windlass::Result<()> {
    if budget.status.as_ref() == Some(status) {
        return Ok(());
    }
    let new = PodDisruptionBudget { status: Some(status.clone()), ..budget.clone() };
    let (namespace, name) = (ctx.key().namespace().unwrap_or_default(), ctx.key().name());
    let api = Api::<PodDisruptionBudget>::namespaced(ctx.client().clone(), namespace);
    let params = PostParams { field_manager: Some(ctx.field_manager().to_owned()), ..PostParams::default() };
    match api.replace_status(name, &params, &new).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(refusal)) if refusal.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn unmanaged(spec: &PodDisruptionBudgetSpec) -> String {
    let labels = spec.selector.iter().flat_map(|selector| selector.match_labels.iter().flatten());
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status \
         of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods \
         please set \".spec.minAvailable\" field of the PDB to an integer value.",
        labels.join(",")
    )
}

/// Whether the budget depends on how many Pods there should be.
fn needs_scale(spec: &PodDisruptionBudgetSpec) -> bool {
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// How many Pods are expected, and how many of them must be healthy.
fn expectation(spec: &PodDisruptionBudgetSpec, selected: i32, scale: i32) -> (i32, i32) {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => (scale, scale.saturating_sub(amount::rounded_up(most, scale)).max(0)),
        (None, Some(IntOrString::Int(least))) => (selected, *least),
        (None, Some(least)) => (scale, amount::rounded_up(least, scale)),
        (None, None) => (selected, 0),
    }
}

/// Pods whose eviction was allowed and that are not being deleted yet; and when the first of them is given up.
fn disrupted(
    budget: &PodDisruptionBudget,
    selected: &[Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Time>, Option<Duration>) {
    let noted = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
    let mut kept = BTreeMap::new();
    let mut next: Option<Duration> = None;
    for pod in selected.iter().filter(|pod| !pods::is_terminating(&pod.metadata)) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let Some(since) = noted.get(&name) else { continue };
        let passed = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
        // Whoever waits for no time at all is given up now: asking again at once would go on for ever.
        if let Some(left) = DELETION_TIMEOUT.checked_sub(passed).filter(|left| *left > Duration::ZERO) {
            next = Some(next.map_or(left, |next| next.min(left)));
            kept.insert(name, since.clone());
        }
    }
    (kept, next)
}

fn healthy(selected: &[Arc<Pod>], disrupted: &BTreeMap<String, Time>) -> i32 {
    let counts = |pod: &&Arc<Pod>| {
        !pods::is_terminating(&pod.metadata)
            && pods::is_ready(pod)
            && !disrupted.contains_key(pod.metadata.name.as_deref().unwrap_or_default())
    };
    selected.iter().filter(counts).count() as i32
}

struct Counts {
    expected: i32,
    desired: i32,
    healthy: i32,
}

fn observed(
    budget: &PodDisruptionBudget,
    counts: &Counts,
    disrupted: BTreeMap<String, Time>,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    // As long as no Pods are expected nothing may be disrupted: the first ones may be on their way.
    let allowed = if counts.expected <= 0 { 0 } else { counts.healthy.saturating_sub(counts.desired).max(0) };
    let condition = if allowed > 0 {
        conditions::is_true(CONDITION, "SufficientPods", "")
    } else {
        conditions::is_false(CONDITION, "InsufficientPods", "")
    };
    let mut all = budget.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    conditions::set(&mut all, condition, budget, now);
    PodDisruptionBudgetStatus {
        current_healthy: Some(counts.healthy),
        desired_healthy: Some(counts.desired),
        expected_pods: Some(counts.expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        observed_generation: budget.metadata.generation,
        conditions: Some(all),
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn expect(spec: Value, selected: i32, scale: i32) -> (i32, i32) {
        expectation(&from_value(spec).unwrap(), selected, scale)
    }

    #[test]
    fn numbers_and_percentages_become_pods() {
        assert_eq!(expect(json!({"minAvailable": 2}), 3, 5), (3, 2));
        assert_eq!(expect(json!({"minAvailable": "50%"}), 3, 5), (5, 3));
        assert_eq!(expect(json!({"maxUnavailable": 1}), 3, 5), (5, 4));
        assert_eq!(expect(json!({"maxUnavailable": "25%"}), 3, 5), (5, 3));
        assert_eq!(expect(json!({"maxUnavailable": 9}), 3, 5), (5, 0));
    }

    #[test]
    fn what_was_allowed_to_go_is_not_counted_until_it_is_given_up() {
        let budget: PodDisruptionBudget =
            from_value(json!({"status": {"disruptedPods": {"a": "1970-01-01T00:01:40Z"}}})).unwrap();
        let selected = [Arc::new(Pod::test("a").ready_at(1)), Arc::new(Pod::test("b").ready_at(1))];
        let (kept, next) = disrupted(&budget, &selected, at(110));
        assert_eq!((healthy(&selected, &kept), next), (1, Some(Duration::from_secs(110))));
        let (kept, next) = disrupted(&budget, &selected, at(220));
        assert_eq!((healthy(&selected, &kept), next), (2, None), "two minutes to the second");
        let (kept, next) = disrupted(&budget, &selected, at(300));
        assert_eq!((healthy(&selected, &kept), next), (2, None));
    }

    #[test]
    fn nothing_is_allowed_while_nothing_is_expected() {
        let budget = PodDisruptionBudget::default();
        let status = |expected| {
            observed(&budget, &Counts { expected, desired: 1, healthy: 3 }, BTreeMap::new(), at(1))
        };
        assert_eq!(status(0).disruptions_allowed, Some(0));
        let allowed = status(3);
        assert_eq!(allowed.disruptions_allowed, Some(2));
        assert_eq!(allowed.conditions.unwrap()[0].reason, "SufficientPods");
    }
}
