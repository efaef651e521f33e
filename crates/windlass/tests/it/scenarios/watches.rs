//! Watches that cannot be started, events that cannot be read, and indexes of one name.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use windlass::{
    Action, Children, Context, Controller, ObjectKey, Operator, Reconciler, RunError, Watch,
    k8s_openapi::api::core::v1::{ConfigMap, Secret},
    kube::{
        ResourceExt,
        api::{DeleteParams, PostParams},
    },
};

use crate::{
    fixture::{Cluster, eventually, observed},
    gadget::{Gadget, Gadgets},
    wrapped::{as_nobody, garbled},
};

/// Adds a watch of Secrets on every run, and notes what becomes of it.
#[derive(Clone, Default)]
struct Curious {
    outcomes: Arc<Mutex<Vec<Result<(), String>>>>,
}

impl Reconciler for Curious {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let added = ctx.watches().owns(Watch::<Secret>::new()).await;
        assert_eq!(
            ctx.list::<Secret>(None).is_ok(),
            added.is_ok(),
            "without a list there is nothing to read"
        );
        assert_eq!(ctx.watches().kinds().len(), usize::from(added.is_ok()));
        self.outcomes.lock().unwrap().push(added.as_ref().copied().map_err(ToString::to_string));
        added.map(|()| Action::await_change())
    }
}

pub async fn a_watch_that_is_refused_is_an_error_and_is_tried_again(cluster: Cluster) {
    let forbidden = cluster.with_operator(as_nobody(cluster.operator.clone(), "/secrets"));
    let curious = Curious::default();
    let controller = Controller::new(curious.clone()).namespace(&cluster.namespace);
    let running = forbidden.run(Operator::new("curious").controller(controller));
    cluster.api::<Gadget>().create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let outcomes = || curious.outcomes.lock().unwrap().clone();
    eventually("it has been tried twice", || async { outcomes().len() >= 2 }).await;
    for outcome in outcomes() {
        let text = outcome.expect_err("nobody may list Secrets");
        assert!(text.starts_with("failed to watch Secret: ") && text.contains("forbidden"), "{text}");
    }
    running.stop().await;

    // The same reconciler, when it may.
    curious.outcomes.lock().unwrap().clear();
    let controller = Controller::new(curious.clone()).namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("curious").controller(controller));
    eventually("it is watched", || async { outcomes().last() == Some(&Ok(())) }).await;
    running.stop().await;
}

pub async fn an_event_that_cannot_be_read_leads_to_a_list(cluster: Cluster) {
    let client = garbled(cluster.operator.clone(), "\"name\":\"poison\"");
    let (garbled, gadgets) = (cluster.with_operator(client), Gadgets::default());
    let running = garbled.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    api.create(&PostParams::default(), &Gadget::test("poison")).await.unwrap();
    observed(&api, "poison").await;
    api.create(&PostParams::default(), &Gadget::test("two")).await.unwrap();
    observed(&api, "two").await;
    running.stop().await;
}

/// Does nothing.
struct Idle;

impl Reconciler for Idle {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<Gadget>, _: &Context<Gadget>) -> windlass::Result<Action> {
        Ok(Action::await_change())
    }
}

/// Wants a Secret, and lets somebody else have the name for as long as that takes.
#[derive(Clone, Default)]
struct Patient {
    conflicts: Arc<AtomicUsize>,
}

impl Reconciler for Patient {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let mut secret = Secret::default();
        secret.metadata.name = gadget.metadata.name.clone();
        match ctx.apply(Children::new().with(secret)).await {
            Err(windlass::Error::NameConflict { .. }) => {
                self.conflicts.fetch_add(1, Ordering::SeqCst);
                Ok(Action::await_change())
            }
            applied => applied.map(|_| Action::await_change()),
        }
    }
}

pub async fn a_name_that_becomes_free_is_taken(cluster: Cluster) {
    let (secrets, patient) = (cluster.api::<Secret>(), Patient::default());
    let foreign: Secret = serde_json::from_value(json!({"metadata": {"name": "one"}})).unwrap();
    secrets.create(&PostParams::default(), &foreign).await.unwrap();
    let controller = Controller::new(patient.clone()).owns::<Secret>().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("patient").controller(controller));
    cluster.api::<Gadget>().create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let conflicts = || patient.conflicts.load(Ordering::SeqCst);
    eventually("the name is taken", || async { conflicts() > 0 }).await;
    crate::fixture::quiet(conflicts).await;
    secrets.delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the child is there", || async {
        let child = secrets.get_opt("one").await.unwrap();
        child.is_some_and(|child| !child.owner_references().is_empty())
    })
    .await;
    running.stop().await;
}

fn by_name(map: &ConfigMap) -> Vec<String> {
    map.metadata.name.iter().cloned().collect()
}

pub async fn two_indexes_of_one_name_do_not_start(cluster: Cluster) {
    let reader =
        |name: &str| Controller::new(Idle).name(name).namespace(&cluster.namespace).reads::<ConfigMap>();
    let colliding = Operator::new("indexes")
        .controller(reader("first").index::<ConfigMap>("by", by_name))
        .controller(reader("second").index::<ConfigMap>("by", |map| vec![map.name_any()]));
    let mut running = cluster.run(colliding);
    let ended = tokio::time::timeout(Duration::from_secs(30), &mut running.task).await;
    let ended: Result<(), RunError> = ended.expect("it must not start").unwrap();
    let error = ended.expect_err("one of the two would read the other's index");
    let text =
        format!("{error}: {}", std::error::Error::source(&error).map_or(String::new(), ToString::to_string));
    assert!(text.contains("failed to add index \"by\" of ConfigMap"), "{text}");

    let shared = Operator::new("indexes")
        .controller(reader("first").index::<ConfigMap>("by", by_name))
        .controller(reader("second").index::<ConfigMap>("by", by_name));
    let handle = shared.handle();
    let running = cluster.run(shared);
    handle.ready().await;
    running.stop().await;
}

pub async fn what_a_stream_adds_is_counted(cluster: Cluster) {
    let operator = Operator::new("streams");
    let metrics = operator.metrics().clone();
    let keys = [ObjectKey::namespaced("ns", "a"), ObjectKey::namespaced("ns", "b")];
    let stream = futures::stream::iter(keys);
    let controller =
        Controller::new(Idle).name("streamed").namespace(&cluster.namespace).triggered_by(stream);
    let running = cluster.run(operator.controller(controller));
    eventually("both are counted", || async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        metrics
            .encode()
            .unwrap()
            .lines()
            .any(|line| line.starts_with("workqueue_adds_total") && line.ends_with(" 2"))
    })
    .await;
    running.stop().await;
}
