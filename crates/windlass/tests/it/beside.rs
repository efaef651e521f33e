//! What runs beside the controllers: setup, tasks, checks; and requests that nobody answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tower::Layer;
use windlass::{
    Action, AnyError, Context, Controller, Operator, Reconciler, RunError, Task,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{Api, Client, api::PostParams},
};

use crate::{
    fixture::{self, Cluster, eventually, observed},
    gadget::{Gadget, Gadgets},
    silence::Silence,
};

async fn cluster() -> Cluster {
    let (server, start) = fixture::server();
    let client = Client::new(server.clone(), "default");
    fixture::cluster(server, client, start).await
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_set_up_is_there_before_the_first_reconcile() {
    let cluster = cluster().await;
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let gadgets = Gadgets::default();
    let (runs, before) = (gadgets.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
    let (seen, namespace) = (before.clone(), cluster.namespace.clone());
    let operator = Operator::new("op").controller(gadgets.controller().namespace(&cluster.namespace)).setup(
        move |client| async move {
            seen.store(runs.runs(), Ordering::SeqCst);
            let maps = Api::<ConfigMap>::namespaced(client, &namespace);
            maps.create(&PostParams::default(), &map("made")).await.map(drop)
        },
    );
    let running = cluster.run(operator);
    observed(&api, "one").await;
    assert_eq!(before.load(Ordering::SeqCst), 0);
    assert!(cluster.api::<ConfigMap>().get_opt("made").await.unwrap().is_some());
    running.stop().await;

    let failing = Operator::new("op").setup(|_| async { Err::<(), _>("no license") });
    let error = cluster.run(failing).task.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "failed to set up: no license");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_joined_at_the_end_and_its_failure_ends_the_operator() {
    let cluster = cluster().await;
    let finished = Arc::new(AtomicUsize::new(0));
    let counting = |name: &str| {
        let finished = finished.clone();
        Task::new(name, move |ctx| {
            let finished = finished.clone();
            async move {
                while ctx.sleep(Duration::from_hours(1)).await {}
                tokio::time::sleep(Duration::from_secs(5)).await;
                finished.fetch_add(1, Ordering::SeqCst);
                Ok::<_, AnyError>(()).map_err(|_| "never")
            }
        })
    };
    let done = Task::new("done", |_| async { Ok::<_, windlass::Error>(()) });
    let operator = Operator::new("op").task(counting("a")).task(counting("b").on_every_replica()).task(done);
    let running = cluster.run(operator);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!running.task.is_finished(), "a task that is done ends nothing");
    running.stop().await;
    assert_eq!(finished.load(Ordering::SeqCst), 2, "both were waited for");

    for everywhere in [false, true] {
        let task = Task::new("report", |_| async { Err::<(), _>("no paper") });
        let task = if everywhere { task.on_every_replica() } else { task };
        let error = cluster.run(Operator::new("op").task(task)).task.await.unwrap().unwrap_err();
        let RunError::TaskEnded { task, reason } = error else { panic!("{error}") };
        assert_eq!((task.as_str(), reason.as_str()), ("task report", "no paper"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_of_the_author_is_part_of_the_readiness() {
    let cluster = cluster().await;
    let licensed = Arc::new(AtomicBool::new(false));
    let asked = licensed.clone();
    let operator = Operator::new("op")
        .check("license", move || if asked.load(Ordering::SeqCst) { Ok(()) } else { Err("no license yet") });
    let (probes, running) = (operator.probes(), cluster.run(operator));
    eventually("only the license is missing", || async {
        let failing: Vec<_> = probes.checks().into_iter().filter(|check| check.failure.is_some()).collect();
        failing.len() == 1
            && failing[0].name == "license"
            && failing[0].failure.as_deref() == Some("no license yet")
    })
    .await;
    licensed.store(true, Ordering::SeqCst);
    assert!(probes.is_ready());
    running.stop().await;
}

/// Asks the API server for something on every run.
struct Asking(Arc<AtomicUsize>);

impl Reconciler for Asking {
    type Resource = ConfigMap;
    type Error = AnyError;

    async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> Result<Action, AnyError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let namespace = map.metadata.namespace.as_deref();
        ctx.fetch::<ConfigMap>(namespace, "other").await?;
        Ok(Action::requeue(Duration::from_secs(10)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_answers_fails_the_run_and_is_tried_again() {
    let (server, start) = fixture::server();
    let silence = Silence::default();
    let client = Client::new(silence.layer(server.clone()), "default");
    let cluster = fixture::cluster(server, client, start).await;
    cluster.api::<ConfigMap>().create(&PostParams::default(), &map("one")).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let controller = Controller::new(Asking(runs.clone())).namespace(&cluster.namespace);
    let operator = Operator::new("op").controller(controller);
    let (metrics, running) = (operator.metrics().clone(), cluster.run(operator));
    eventually("a run", || async { runs.load(Ordering::SeqCst) > 0 }).await;
    silence.fall();
    // Each run asks once, waits for half a minute, fails, and is tried again: no worker is lost.
    tokio::time::sleep(Duration::from_mins(5)).await;
    let before = runs.load(Ordering::SeqCst);
    assert!((4..20).contains(&before), "{before}");
    let page = metrics.encode().unwrap();
    let errors = "controller_runtime_reconcile_errors_total{controller=\"configmap\"} ";
    let errors = page.lines().find_map(|line| line.strip_prefix(errors)).unwrap();
    assert!(errors.parse::<usize>().unwrap() + 2 >= before, "{errors} of {before}");
    silence.end();
    eventually("it goes on", || async { runs.load(Ordering::SeqCst) > before + 1 }).await;
    running.stop().await;
}

/// Fails for good until it is told to stop.
struct Hopeless(Arc<AtomicUsize>);

impl Reconciler for Hopeless {
    type Resource = ConfigMap;
    type Error = AnyError;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context<ConfigMap>) -> Result<Action, AnyError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(AnyError::terminal("never"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_comes_after_a_terminal_error_too() {
    let cluster = cluster().await;
    cluster.api::<ConfigMap>().create(&PostParams::default(), &map("one")).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let controller =
        Controller::new(Hopeless(runs.clone())).namespace(&cluster.namespace).resync(Duration::from_mins(10));
    let running = cluster.run(Operator::new("op").controller(controller));
    tokio::time::sleep(Duration::from_mins(65)).await;
    let seen = runs.load(Ordering::SeqCst);
    assert!((6..9).contains(&seen), "once, and about every ten minutes: {seen}");
    running.stop().await;
}
