//! The loop: exact counts of writes, drift, conflicts, failures, pause and leader election.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use windlass::{
    Action, Context, Controller, LeaderElection, Metrics, Operator, PAUSED, Predicate, ReconcileError,
    Reconciler,
    k8s_openapi::api::{
        apps::v1::Deployment,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Service},
    },
    kube::{
        Api, ResourceExt,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
};

use crate::{
    fixture::{Cluster, Running, eventually, observed, quiet},
    gadget::{Gadget, Gadgets, Mood},
    pool::{Pool, PoolSpec, Pools},
};

pub async fn writes_are_the_least_that_can_be(cluster: Cluster) {
    let gadgets = Gadgets::default();
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    quiet(|| gadgets.runs()).await;
    let writes = cluster.requests.take_writes();
    assert_eq!(writes.len(), 3, "one per child and one for the status: {writes:#?}");

    let runs = gadgets.runs();
    let poke = json!({"metadata": {"annotations": {"poked": "yes"}}});
    let deployments = cluster.api::<Deployment>();
    deployments.patch("one", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
    eventually("another run", || async { gadgets.runs() > runs }).await;
    quiet(|| gadgets.runs()).await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "a second reconcile writes nothing: {writes:#?}");
    running.stop().await;

    let again = Gadgets::default();
    let running = cluster.start(&again);
    eventually("a run after the restart", || async { again.runs() > 0 }).await;
    quiet(|| again.runs()).await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "a restart writes nothing: {writes:#?}");

    let change = json!({"spec": {"replicas": 3}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    observed(&api, "one").await;
    quiet(|| again.runs()).await;
    let writes = cluster.requests.take_writes();
    assert_eq!(writes.len(), 2, "one for the child and one for the status: {writes:#?}");
    assert!(writes.iter().all(|write| write.status == 200), "{writes:#?}");
    running.stop().await;
}

pub async fn unwanted_children_go_and_drift_is_repaired(cluster: Cluster) {
    let gadgets = Gadgets::default();
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    let services = cluster.api::<Service>();
    assert!(services.get_opt("one").await.unwrap().is_some());

    let drift = json!({"spec": {"replicas": 7}});
    let deployments = cluster.api::<Deployment>();
    deployments.patch("one", &PatchParams::default(), &Patch::Merge(&drift)).await.unwrap();
    eventually("the drift is repaired", || async {
        deployments.get("one").await.unwrap().spec.replicas == Some(2)
    })
    .await;

    let change = json!({"spec": {"port": null}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    eventually("the service is gone", || async { services.get_opt("one").await.unwrap().is_none() }).await;
    eventually("the port is gone", || async {
        let deployment = deployments.get("one").await.unwrap();
        deployment.spec.template.spec.unwrap().containers[0].ports.is_none()
    })
    .await;
    running.stop().await;
}

pub async fn a_foreign_object_of_the_same_name_is_left_alone(cluster: Cluster) {
    let services = cluster.api::<Service>();
    let foreign = json!({"metadata": {"name": "one"}, "spec": {"ports": [{"port": 9999}]}});
    services.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    let gadgets = Gadgets::default();
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    eventually("some retries", || async { gadgets.runs() > 3 }).await;
    let service = services.get("one").await.unwrap();
    assert!(service.owner_references().is_empty());
    let begun = cluster.api::<Deployment>().get_opt("one").await.unwrap();
    assert!(begun.is_none(), "a set of children that cannot be whole is not begun");
    assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 9999);
    services.delete("one", &DeleteParams::default()).await.unwrap();
    observed(&api, "one").await;
    running.stop().await;
}

pub async fn a_panic_a_hang_and_a_deletion_are_survived(cluster: Cluster) {
    for (name, mood) in [("nervous", Mood::Nervous), ("stuck", Mood::Stuck)] {
        let gadgets = Gadgets { mood, ..Gadgets::default() };
        let running = cluster.start(&gadgets);
        let api = cluster.api::<Gadget>();
        api.create(&PostParams::default(), &Gadget::test(name)).await.unwrap();
        observed(&api, name).await;
        api.delete(name, &DeleteParams::default()).await.unwrap();
        let deletions = &gadgets.deletions;
        eventually("the deletion is seen", || async { deletions.load(Ordering::SeqCst) > 0 }).await;
        running.stop().await;
    }
}

/// Fails, and panics when it is asked why.
#[derive(Clone, Default)]
struct Secretive(Arc<AtomicUsize>);

#[derive(Debug)]
struct Secret;

impl std::fmt::Display for Secret {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("an error that does not say what it is")
    }
}

impl std::error::Error for Secret {}

impl ReconcileError for Secret {
    fn category(&self) -> &'static str {
        "Secret"
    }
}

impl Reconciler for Secretive {
    type Resource = Gadget;
    type Error = Secret;

    async fn reconcile(&self, _: Arc<Gadget>, _: &Context<Gadget>) -> Result<Action, Secret> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Secret)
    }
}

pub async fn no_delay_and_no_panic_outside_of_a_run_ends_the_operator(cluster: Cluster) {
    let gadgets = Gadgets { mood: Mood::Patient, ..Gadgets::default() };
    let filter = Predicate::new(|_: &Gadget, new: &Gadget| {
        assert!(new.spec.replicas != 13, "a filter that cannot count to thirteen");
        true
    });
    let controller = Controller::new(gadgets.clone())
        .filter(filter)
        .owns::<Deployment>()
        .owns::<Service>()
        .watches::<ConfigMap, _>(|_, _| panic!("a mapping that fails for every object"))
        .index::<Gadget>("broken", |_| panic!("an index that fails for every object"))
        .namespace(&cluster.namespace);
    let secretive = Secretive::default();
    let other = Controller::new(secretive.clone()).name("secretive").namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("gadget-operator").controller(controller).controller(other));
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    let failures = &secretive.0;
    eventually("what failed is tried again", || async { failures.load(Ordering::SeqCst) > 1 }).await;
    quiet(|| gadgets.runs()).await;
    let runs = gadgets.runs();
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "map"}})).unwrap();
    cluster.api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();
    eventually("what a mapping missed is looked for everywhere", || async { gadgets.runs() > runs }).await;
    let thirteen = json!({"spec": {"replicas": 13}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(&thirteen)).await.unwrap();
    observed(&api, "one").await;
    running.stop().await;
}

pub async fn a_pool_never_creates_a_member_too_many(cluster: Cluster) {
    let pools = Pools::default();
    let controller = pools.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("pool-operator").controller(controller));
    let api = cluster.api::<Pool>();
    api.create(&PostParams::default(), &Pool::new("p", PoolSpec { size: 20 })).await.unwrap();
    let members = cluster.api::<ConfigMap>();
    let count = async || {
        let maps = members.list(&ListParams::default()).await.unwrap().items;
        maps.iter().filter(|map| map.name_any().starts_with("member-")).count()
    };
    eventually("all members are there", || async { count().await == 20 }).await;
    // Every run that an own creation caused found all of them.
    for poke in 0..10 {
        let poke = json!({"metadata": {"annotations": {"poke": poke.to_string()}}});
        api.patch("p", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
    }
    quiet(|| pools.runs.load(Ordering::SeqCst)).await;
    assert_eq!(pools.created.load(Ordering::SeqCst), 20);

    let smaller = json!({"spec": {"size": 3}});
    api.patch("p", &PatchParams::default(), &Patch::Merge(&smaller)).await.unwrap();
    eventually("the surplus is gone", || async { count().await == 3 }).await;
    quiet(|| pools.runs.load(Ordering::SeqCst)).await;
    assert_eq!((count().await, pools.created.load(Ordering::SeqCst)), (3, 20));
    running.stop().await;

    pools.clean.store(true, Ordering::SeqCst);
    let controller = pools.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("pool-operator").controller(controller));
    api.delete("p", &DeleteParams::default()).await.unwrap();
    eventually("the pool is gone", || async { api.get_opt("p").await.unwrap().is_none() }).await;
    running.stop().await;
}

pub async fn a_paused_object_is_left_alone(cluster: Cluster) {
    let gadgets = Gadgets::default();
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    let mut gadget = Gadget::test("one");
    gadget.annotations_mut().insert(PAUSED.into(), "true".into());
    api.create(&PostParams::default(), &gadget).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(gadgets.runs(), 0);
    let resume = json!({"metadata": {"annotations": {PAUSED: null}}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(&resume)).await.unwrap();
    observed(&api, "one").await;
    running.stop().await;
}

fn replica(cluster: &Cluster, identity: &str, seconds: u64, gadgets: &Gadgets) -> (Running, Metrics) {
    let election = LeaderElection {
        duration: Duration::from_secs(seconds),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(250),
        ..LeaderElection::new("gadgets", &cluster.namespace, identity)
    };
    let controller = gadgets.controller().namespace(&cluster.namespace);
    let operator = Operator::new("gadget-operator").controller(controller).leader_election(election);
    let metrics = operator.metrics().clone();
    (cluster.run(operator), metrics)
}

/// Whether keys wait in the queue.
fn has_work(metrics: &Metrics) -> bool {
    let page = metrics.encode().unwrap();
    page.lines().any(|line| line.starts_with("workqueue_depth{name=\"gadget\"") && !line.ends_with(" 0"))
}

fn leads(metrics: &Metrics) -> bool {
    metrics.encode().unwrap().contains("leader_election_master_status{name=\"gadgets\"} 1")
}

async fn holder(leases: &Api<Lease>) -> Option<String> {
    leases.get_opt("gadgets").await.unwrap()?.spec?.holder_identity
}

pub async fn a_standby_follows_a_release_a_death_and_a_theft(cluster: Cluster) {
    let leases = cluster.api::<Lease>();
    let api = cluster.api::<Gadget>();
    let (one, two, three) = (Gadgets::default(), Gadgets::default(), Gadgets::default());
    // So long that whoever follows in time follows a release, and no lease that ran out.
    let (first, _) = replica(&cluster, "one", 600, &one);
    eventually("the first leads", || async { holder(&leases).await.as_deref() == Some("one") }).await;
    let (second, standby) = replica(&cluster, "two", 3, &two);
    api.create(&PostParams::default(), &Gadget::test("a")).await.unwrap();
    observed(&api, "a").await;
    assert_eq!(two.runs(), 0, "a standby does not work");
    eventually("the standby is warm: its caches and its queue are filled", || async { has_work(&standby) })
        .await;

    // The lease is another version than the leader knows, as if a renewal of its own had been cut off.
    let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
    leases.patch("gadgets", &PatchParams::default(), &Patch::Merge(&touched)).await.unwrap();
    first.stop().await;
    eventually("the second leads", || async { two.runs() > 0 }).await;

    let (third, thirds) = replica(&cluster, "three", 3, &three);
    second.task.abort();
    eventually("the third leads", || async { three.runs() > 0 }).await;

    let theft = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}});
    leases.patch("gadgets", &PatchParams::default(), &Patch::Merge(&theft)).await.unwrap();
    eventually("the third has noticed", || async { !leads(&thirds) }).await;
    let runs = three.runs();
    api.create(&PostParams::default(), &Gadget::test("b")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(three.runs(), runs, "who has lost the lease does not work");
    assert!(!third.task.is_finished(), "and stands by");
    let release = json!({"spec": {"holderIdentity": ""}});
    leases.patch("gadgets", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    observed(&api, "b").await;
    assert!(leads(&thirds));
    third.stop().await;
}

pub async fn a_second_reconcile_writes_nothing(cluster: Cluster) {
    let api = cluster.api::<Gadget>();
    for name in ["one", "two", "three"] {
        api.create(&PostParams::default(), &Gadget::test(name)).await.unwrap();
    }
    let gadgets = Gadgets::default();
    let operator = Operator::new("gadget-operator")
        .controller(gadgets.controller().concurrency(2))
        .namespaces([&cluster.namespace]);
    let running =
        windlass::testing::Running::start(operator, cluster.operator.clone(), &cluster.requests).await;
    running.settled().await;
    let (runs, writes) = (gadgets.runs(), cluster.requests.writes().len());
    assert_eq!(writes, 9, "two children and a status each");
    running.assert_second_reconcile_writes_nothing().await;
    assert!(gadgets.runs() >= runs + 3, "every object has been reconciled again");
    running.stop().await;
}

pub async fn a_child_that_fails_does_not_hold_up_the_others(cluster: Cluster) {
    let services = cluster.api::<Service>();
    let foreign = json!({"metadata": {"name": "one"}, "spec": {"ports": [{"port": 9999}]}});
    services.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    let gadgets = Gadgets { mood: Mood::Persistent, ..Gadgets::default() };
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let deployments = cluster.api::<Deployment>();
    eventually("the deployment is there", || async { deployments.get_opt("one").await.unwrap().is_some() })
        .await;
    eventually("the status says what is wrong", || async {
        let conditions = api.get("one").await.unwrap().status.unwrap_or_default().conditions;
        conditions.iter().any(|condition| {
            condition.reason == "NameConflict" && condition.message.contains("choose another name")
        })
    })
    .await;
    running.stop().await;
}
