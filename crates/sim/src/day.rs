//! One day: a cluster of its own, the operator on it, what happens, and what the end is like.
//!
//! A day has two disturbed parts: from the creation of the objects on, and after their deletion. Each is followed by a calm in
//! which nothing is disturbed any more; there everything must come to rest, at the state of the undisturbed day.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use windlass::{
    Kind, Placement, jiff::Timestamp, k8s_openapi::api::core::v1::Pod, kube::Client, serde_json::Value,
};
use windlass_cluster::{
    Cluster,
    testing::{apply, standing},
};

use crate::{
    fault::Fault,
    network::{Entry, Network},
    observer::Observer,
    oracle::{self, Broken},
    plan::{DISTURBED, Plan},
    replica::{Replica, system, webhook_service},
    setup::Setup,
    story::{Line, Story},
    user::{NAMESPACE, User},
};

/// Every day begins at this time: a Monday morning, with no scheduled backup in sight.
const MORNING: i64 = 1_767_603_600;
/// How long nothing may be written until everything is at rest.
const CALM: Duration = Duration::from_secs(10);
/// The same where nobody knows what the end should be: what takes its time has happened by then.
const LONG_CALM: Duration = Duration::from_mins(6);
/// How long it may take until everything is at rest.
const LIMIT: Duration = Duration::from_mins(30);
/// How long it is watched whether everything stays at rest.
const QUIET: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_secs(1);

/// What stood at rest, before and after the deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) standing: Vec<Vec<String>>,
}

/// How a day went.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was broken, if anything was.
    pub(crate) broken: Option<Broken>,
    pub(crate) ends: Ends,
    pub(crate) story: Vec<Line>,
    pub(crate) log: Vec<Entry>,
    /// The faults that came to pass.
    pub(crate) hits: BTreeMap<u64, Fault>,
    /// The number of changes of objects, and a digest of all of them.
    pub(crate) history: (usize, String),
}

/// Lives a day. Without `expected` it is the undisturbed one, which nothing is compared with.
pub(crate) fn live(setup: &Arc<Setup>, plan: &Plan, expected: Option<&Ends>, kinds: &[Kind]) -> Outcome {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("failed to start a runtime: {error}"));
    let day = async {
        let story = Story::begin();
        let network = Network::new(story.clone(), Arc::new(plan.clone()));
        let mut ends = Ends::default();
        let mut history = (0, String::new());
        let lived = Day {
            setup,
            plan,
            story: &story,
            network: &network,
            expected,
            ends: &mut ends,
            history: &mut history,
        };
        let broken = lived.run(kinds).await.err();
        Outcome { broken, ends, story: story.lines(), log: network.log(), hits: network.hits(), history }
    };
    let lived = catch_unwind(AssertUnwindSafe(|| runtime.block_on(day)));
    // What is left of the day must not run on while the next is lived.
    runtime.shutdown_background();
    lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let broken = Some(Broken::new("panic", text.unwrap_or_else(|| "a panic without words".into())));
        let ends = Ends::default();
        Outcome {
            broken,
            ends,
            story: vec![],
            log: vec![],
            hits: BTreeMap::new(),
            history: (0, String::new()),
        }
    })
}

struct Day<'a> {
    setup: &'a Arc<Setup>,
    plan: &'a Plan,
    story: &'a Story,
    network: &'a Network,
    expected: Option<&'a Ends>,
    ends: &'a mut Ends,
    history: &'a mut (usize, String),
}

/// What runs on a day.
struct Running {
    cluster: Cluster,
    replica: Replica,
    observer: Observer,
}

impl Day<'_> {
    async fn run(mut self, kinds: &[Kind]) -> Result<(), Broken> {
        let running = self.start(kinds).await.map_err(|why| Broken::new("start", why))?;
        let outcome = self.live(&running).await;
        *self.history = running.observer.history();
        let (panics, violations) = (running.replica.panics(), running.observer.violations());
        // What was broken under way says more than that the end differs.
        oracle::endless(&running.replica.runs())?;
        oracle::at_the_end(&self.network.log(), &panics, &violations).and(outcome)
    }

    async fn start(&self, kinds: &[Kind]) -> Result<Running, String> {
        let start = Timestamp::from_second(MORNING).map_err(|error| error.to_string())?;
        let builder = (self.setup.cluster)().nodes(2).heartbeat(None).start_time(start).seed(self.plan.seed);
        // Keys come from the system, never from a seed: what is made with them must not be seen on a day.
        let builder = builder.root_ca("the certificate of a simulated cluster");
        let cluster =
            builder.start().await.map_err(|error| format!("the cluster has not started: {error}"))?;
        install(&cluster.client(), self.setup).await?;
        let observer =
            Observer::start(self.setup, &cluster.client(), self.story, kinds, &observed(self.setup)).await?;
        let leader = self.setup.scope.leader;
        let operator = self.setup.operator.clone();
        let replica = Replica::start(operator, &cluster, self.network, self.story, leader);
        Ok(Running { cluster, replica, observer })
    }

    async fn live(&mut self, running: &Running) -> Result<(), Broken> {
        let Running { cluster, replica, .. } = running;
        let mut user = User {
            setup: self.setup,
            client: cluster.client(),
            server: cluster.server().clone(),
            replica: replica.clone(),
            story: self.story.clone(),
            wanted: self.setup.objects[0].clone(),
            webhooks: webhook_service(&mut (self.setup.operator)()),
            until: Duration::ZERO,
        };
        let user_error = |why| Broken::new("user", why);
        if user.webhooks.is_some() {
            self.at_rest(running, None, CALM).await?;
        }
        self.network.disturb(Some(0));
        let began = self.story.now();
        user.create().await.map_err(user_error)?;
        for (_, step) in &self.plan.steps {
            tokio::time::sleep((began + step.at).saturating_sub(self.story.now())).await;
            user.act(step.act).await.map_err(user_error)?;
        }
        self.calm(running, 0, user.until.max(began + DISTURBED[0])).await?;
        oracle::honest(&cluster.client(), self.setup).await?;
        self.quiet(running).await?;

        self.network.disturb(Some(1));
        let began = self.story.now();
        user.delete().await.map_err(user_error)?;
        self.calm(running, 1, began + DISTURBED[1]).await?;
        oracle::nothing_left(&cluster.client(), self.setup).await
    }

    /// Waits for the end of a disturbed part, and then for rest.
    async fn calm(&mut self, running: &Running, part: usize, end: Duration) -> Result<(), Broken> {
        // Nobody disturbs the undisturbed day, so nobody has to wait for the end of it.
        if self.expected.is_some() {
            tokio::time::sleep(end.saturating_sub(self.story.now())).await;
        }
        self.network.disturb(None);
        self.story.tell("network", "is undisturbed from now on");
        let expected = self.expected.and_then(|ends| ends.standing.get(part)).cloned();
        let calm = if self.expected.is_some() { CALM } else { LONG_CALM };
        let stood = self.at_rest(running, expected.as_deref(), calm).await?;
        self.ends.standing.push(stood);
        Ok(())
    }

    /// Waits until nothing is written any more and everything is as expected. Returns what stands.
    async fn at_rest(
        &self,
        running: &Running,
        expected: Option<&[String]>,
        calm: Duration,
    ) -> Result<Vec<String>, Broken> {
        let (began, mut last, mut since) = (self.story.now(), 0, self.story.now());
        let mut looked = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let (now, revision) = (self.story.now(), running.observer.changes());
            if revision != last || !running.replica.is_idle() {
                (last, since) = (revision, now);
            }
            let late = now > began + LIMIT;
            if now >= since + calm && looked != Some(revision) || late {
                looked = Some(revision);
                let stood = self.standing(running).await;
                match expected {
                    Some(expected) if expected != stood && late => {
                        return Err(Broken::differs(expected, &stood, LIMIT));
                    }
                    Some(expected) if expected != stood => {}
                    _ if late && now < since + calm => {
                        return Err(Broken::new("rest", format!("things are still written after {LIMIT:?}")));
                    }
                    _ => return Ok(stood),
                }
            }
        }
    }

    async fn standing(&self, running: &Running) -> Vec<String> {
        let normalise = {
            let setup = self.setup.clone();
            move |object: &mut Value| setup.normalised(object)
        };
        standing(&running.cluster.client(), &self.setup.kinds, &normalise).await
    }

    /// Reconciles everything once more, and watches whether it stays at rest.
    async fn quiet(&self, running: &Running) -> Result<(), Broken> {
        let before = (self.network.count(), running.replica.runs().all);
        running.replica.requeue_all();
        tokio::time::sleep(QUIET).await;
        oracle::quiet(&self.network.log()[before.0..], running.replica.runs().all - before.1)
    }
}

/// Applies what `manifests` prints, but for the Deployment: the operator runs here.
async fn install(client: &Client, setup: &Setup) -> Result<(), String> {
    let operator = (setup.operator)();
    let placement = Placement::new(system(&operator), "none");
    for manifest in operator.manifests(&placement).iter().filter(|manifest| manifest["kind"] != "Deployment")
    {
        let applied = apply(client, NAMESPACE, manifest).await;
        applied.map_err(|error| format!("{} cannot be installed: {error}", crate::user::named(manifest)))?;
    }
    Ok(())
}

/// The kinds that are watched on an ordinary day: the operator's own, and Pods.
pub(crate) fn observed(setup: &Setup) -> Vec<Kind> {
    let (mut kinds, pods) = (setup.kinds.clone(), Kind::of::<Pod>());
    if !kinds.contains(&pods) {
        kinds.push(pods);
    }
    kinds
}
