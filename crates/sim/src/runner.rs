//! Day after day: what the undisturbed day is like is found out once for all days with the same wishes.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use windlass::{
    Kind,
    k8s_openapi::api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        coordination::v1::Lease,
        core::v1::{
            ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret,
            Service, ServiceAccount,
        },
        discovery::v1::EndpointSlice,
        events::v1::Event,
        networking::v1::Ingress,
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
};

use crate::{
    day::{self, Ends, Outcome, live},
    found::Found,
    plan::{Plan, Written},
    setup::Setup,
    shrink::shrink,
    story,
};

/// Lives days of one simulation.
pub(crate) struct Runner {
    setup: Arc<Setup>,
    kinds: Vec<Kind>,
    /// The ends of undisturbed days, by what the user wants.
    known: BTreeMap<String, Ends>,
    /// How many days have been lived, undisturbed ones apart.
    pub(crate) lived: u64,
}

impl Runner {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        let why = "a simulation needs an object of a kind that the operator reconciles: .objects(\"…\")";
        assert!(!setup.objects.is_empty(), "{why}");
        let kinds = day::observed(&setup);
        Self { setup, kinds, known: BTreeMap::new(), lived: 0 }
    }

    /// Lives old days, then new ones, until one is bad. That one is made shorter.
    pub(crate) fn search(&mut self, old: &[Written], first: u64, days: u64) -> Option<Found> {
        let scope = self.setup.scope.clone();
        let old = old.iter().map(|day| day.plan(&scope));
        let new = (first..first.saturating_add(days)).map(|seed| Plan::of(seed, &scope));
        for plan in old.chain(new) {
            let outcome = self.live(&plan);
            if outcome.broken.is_some() {
                let after = self.lived - 1;
                let (plan, outcome) = shrink(plan, outcome, |plan| self.live(plan));
                return Some(found(&plan, outcome, after));
            }
        }
        None
    }

    /// The story of one day, if nothing was broken on it.
    pub(crate) fn replay(&mut self, day: &Written) -> Result<String, Found> {
        let plan = day.plan(&self.setup.scope);
        let outcome = self.live(&plan);
        if outcome.broken.is_some() {
            Err(found(&plan, outcome, 0))
        } else {
            Ok(story::printed(&outcome.story))
        }
    }

    /// Everything that happened on one day.
    pub(crate) fn record(&mut self, seed: u64) -> String {
        self.kinds.extend(usual().into_iter().filter(|kind| !self.kinds.contains(kind)).collect::<Vec<_>>());
        let outcome = self.live(&Plan::of(seed, &self.setup.scope));
        let mut text = String::new();
        for entry in &outcome.log {
            let fault = entry.fault.map_or(String::new(), |fault| format!(" {fault}"));
            let (at, life, method) = (entry.at.as_micros(), entry.life, &entry.method);
            let _ =
                writeln!(text, "{at} {life} {method} {}?{} {}{fault}", entry.path, entry.query, entry.status);
        }
        let (changes, digest) = &outcome.history;
        let _ = writeln!(text, "{changes} changes {digest}");
        for line in outcome.ends.standing.iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        let _ = write!(text, "{}{:?}", story::printed(&outcome.story), outcome.broken);
        text
    }

    fn live(&mut self, plan: &Plan) -> Outcome {
        let wishes = format!("{:?}", plan.wishes());
        if !self.known.contains_key(&wishes) {
            let undisturbed = live(&self.setup, &plan.undisturbed(), None, &self.kinds);
            // An operator that cannot even live an undisturbed day has no other.
            if undisturbed.broken.is_some() {
                self.lived += 1;
                return undisturbed;
            }
            self.known.insert(wishes.clone(), undisturbed.ends);
        }
        self.lived += 1;
        live(&self.setup, plan, self.known.get(&wishes), &self.kinds)
    }
}

fn found(plan: &Plan, outcome: Outcome, after: u64) -> Found {
    let broken = outcome.broken.unwrap_or_else(|| unreachable!("a bad day must have something broken"));
    Found {
        day: Written::from(plan).to_string(),
        oracle: broken.oracle,
        detail: broken.detail,
        story: story::printed(&outcome.story),
        after,
    }
}

/// The kinds of nearly everything that there is in a cluster.
fn usual() -> Vec<Kind> {
    vec![
        Kind::of::<ClusterRole>(),
        Kind::of::<ClusterRoleBinding>(),
        Kind::of::<ConfigMap>(),
        Kind::of::<ControllerRevision>(),
        Kind::of::<CronJob>(),
        Kind::of::<DaemonSet>(),
        Kind::of::<Deployment>(),
        Kind::of::<Endpoints>(),
        Kind::of::<EndpointSlice>(),
        Kind::of::<Event>(),
        Kind::of::<HorizontalPodAutoscaler>(),
        Kind::of::<Ingress>(),
        Kind::of::<Job>(),
        Kind::of::<Lease>(),
        Kind::of::<Namespace>(),
        Kind::of::<Node>(),
        Kind::of::<PersistentVolume>(),
        Kind::of::<PersistentVolumeClaim>(),
        Kind::of::<Pod>(),
        Kind::of::<PodDisruptionBudget>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<Role>(),
        Kind::of::<RoleBinding>(),
        Kind::of::<Secret>(),
        Kind::of::<Service>(),
        Kind::of::<ServiceAccount>(),
        Kind::of::<StatefulSet>(),
    ]
}
