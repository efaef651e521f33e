//! Terms of leadership: what an outage, a cut and a theft do to it, and that two replicas never work at once.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tower::Layer;
use windlass::{
    Action, Context, Controller, LeaderElection, Operator, Reconciler, Task,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{Client, api::PostParams},
};

use crate::{
    fixture::{self, Cluster, Running, eventually, observed},
    gadget::{Gadget, Gadgets},
    outage::Outage,
    silence::Silence,
};

const LEASE: Duration = Duration::from_secs(15);

fn election(identity: &str) -> LeaderElection {
    LeaderElection::new("terms", "scenario", identity)
}

/// Who works, and whether two ever did at once.
#[derive(Clone, Default)]
struct Ledger {
    working: Arc<Mutex<Vec<String>>>,
    overlaps: Arc<AtomicUsize>,
    cut_off: Arc<Mutex<Vec<Instant>>>,
    runs: Arc<AtomicUsize>,
}

/// A run that is noted until it ends, however it does.
struct Run<'a>(&'a Ledger, String, bool);

impl Ledger {
    fn begin(&self, replica: &str) -> Run<'_> {
        let mut working = self.working.lock().unwrap();
        if working.iter().any(|other| other != replica) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        working.push(replica.to_owned());
        self.runs.fetch_add(1, Ordering::SeqCst);
        Run(self, replica.to_owned(), false)
    }

    fn last(&self) -> Option<String> {
        self.working.lock().unwrap().last().cloned()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let mut working = self.0.working.lock().unwrap();
        let at = working.iter().position(|replica| *replica == self.1).unwrap();
        working.remove(at);
        if !self.2 {
            self.0.cut_off.lock().unwrap().push(Instant::now());
        }
    }
}

/// Works on an object for a second, over and over.
struct Busy {
    replica: String,
    ledger: Ledger,
    long: Duration,
}

impl Reconciler for Busy {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context<ConfigMap>) -> windlass::Result<Action> {
        let mut run = self.ledger.begin(&self.replica);
        tokio::time::sleep(self.long).await;
        run.2 = true;
        Ok(Action::requeue(Duration::from_millis(10)))
    }
}

fn replica(cluster: &Cluster, client: Client, name: &str, ledger: &Ledger, long: Duration) -> Running {
    let busy = Busy { replica: name.to_owned(), ledger: ledger.clone(), long };
    let controller = Controller::new(busy).namespace(&cluster.namespace).concurrency(2);
    let cluster = cluster.with_operator(client);
    cluster.run(Operator::new(name).controller(controller).leader_election(election(name)))
}

async fn with_maps(cluster: &Cluster) {
    for name in ["a", "b", "c"] {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        cluster.api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_leader_that_is_cut_off_ends_before_another_can_have_the_lease() {
    let (server, start) = fixture::server();
    let silence = Silence::default();
    let client = Client::new(silence.layer(server.clone()), "default");
    let cluster = fixture::cluster(server, client.clone(), start).await;
    with_maps(&cluster).await;
    let ledger = Ledger::default();
    let running = replica(&cluster, client, "one", &ledger, Duration::from_hours(1));
    eventually("two workers are busy", || async { ledger.working.lock().unwrap().len() == 2 }).await;
    silence.fall();
    let cut = Instant::now();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let ends = ledger.cut_off.lock().unwrap().clone();
    assert_eq!(ends.len(), 2, "both runs were cut off");
    assert!(ends.iter().all(|end| *end < cut + LEASE), "{:?}", ends.iter().map(|end| *end - cut));
    assert!(!running.task.is_finished(), "it stands by");
    silence.end();
    eventually("what was cut off runs again", || async { ledger.working.lock().unwrap().len() == 2 }).await;
    running.task.abort();
}

#[tokio::test(start_paused = true)]
async fn two_replicas_never_work_at_once_whoever_is_cut_off() {
    let (server, start) = fixture::server();
    let (silences, outages) =
        ([Silence::default(), Silence::default()], [Outage::default(), Outage::default()]);
    let client =
        |which: usize| Client::new(outages[which].layer(silences[which].layer(server.clone())), "default");
    let cluster = fixture::cluster(server.clone(), client(0), start).await;
    with_maps(&cluster).await;
    let ledger = Ledger::default();
    let long = Duration::from_secs(1);
    let running =
        [replica(&cluster, client(0), "0", &ledger, long), replica(&cluster, client(1), "1", &ledger, long)];
    for round in 0..12_u64 {
        eventually("somebody works", || async { ledger.last().is_some() }).await;
        // The one that works, as a rule; in some rounds both.
        let worker: usize = ledger.last().map_or(0, |replica| replica.parse().unwrap());
        let both = round % 4 == 3;
        let chosen: Vec<usize> = (0..2).filter(|which| both || *which == worker).collect();
        for which in &chosen {
            if round % 2 == 0 { silences[*which].fall() } else { outages[*which].begin() }
        }
        tokio::time::sleep(Duration::from_secs(7 + 5 * (round % 5))).await;
        for which in chosen {
            silences[which].end();
            outages[which].end();
        }
        tokio::time::sleep(Duration::from_secs(3 * (round % 3))).await;
    }
    assert_eq!(ledger.overlaps.load(Ordering::SeqCst), 0, "two worked at once");
    assert!(ledger.runs.load(Ordering::SeqCst) > 100, "they did work");
    for running in running {
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_minutes_ends_no_process_and_work_goes_on_after_it() {
    let (server, start) = fixture::server();
    let outage = Outage::default();
    let client = Client::new(outage.layer(server.clone()), "default");
    let cluster = fixture::cluster(server, client, start).await;
    let gadgets = Gadgets::default();
    let controller = gadgets.controller().namespace(&cluster.namespace);
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let task = Task::new("beside", move |ctx| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            ctx.stopping().await;
            Ok::<_, windlass::Error>(())
        }
    });
    let operator = Operator::new("op").controller(controller).leader_election(election("one")).task(task);
    let (probes, metrics) = (operator.probes(), operator.metrics().clone());
    let running = cluster.run(operator);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    for round in 1..3 {
        outage.begin();
        tokio::time::sleep(Duration::from_mins(20)).await;
        assert!(!running.task.is_finished(), "it goes on trying");
        assert!(!probes.is_ready());
        let page = metrics.encode().unwrap();
        assert!(page.contains("leader_election_master_status{name=\"terms\"} 0"), "{page}");
        let runs = gadgets.runs();
        api.create(&PostParams::default(), &Gadget::test(&format!("during-{round}"))).await.unwrap();
        outage.end();
        let ended = Instant::now();
        observed(&api, &format!("during-{round}")).await;
        // The watches ask again every 30 s at the rarest.
        assert!(ended.elapsed() < Duration::from_secs(40), "{:?}", ended.elapsed());
        eventually("every object is looked at again", || async { gadgets.runs() >= runs + 1 + round }).await;
        assert_eq!(started.load(Ordering::SeqCst), 1 + round, "the task began anew");
    }
    eventually("it is ready again", || async { probes.is_ready() }).await;
    running.stop().await;
}
