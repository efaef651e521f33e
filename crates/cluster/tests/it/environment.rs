//! An operator under test: its permissions, its webhooks, its clock, its failures, and what an idle hour costs.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::{
        core::v1::{ConfigMap, Secret},
        rbac::v1::ClusterRole,
    },
    kube::{Api, Error, api::PostParams},
};
use windlass_cluster::testing::Environment;

use crate::{
    greeting::{Greeting, GreetingSpec, Greetings, operator},
    support::{decode, deployment, is_complete},
};

fn greeting(name: &str, text: &str) -> Greeting {
    Greeting::new(name, GreetingSpec { text: text.into(), to: None })
}

/// What a test would have ended with.
async fn panic_of<T>(test: impl Future<Output = T>) -> String {
    let Err(panic) = AssertUnwindSafe(test).catch_unwind().await else { panic!("it must panic") };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_called_also_after_a_restart_and_a_year() {
    let mut env = Environment::start(operator).await;
    for round in ["first", "second", "third"] {
        let refused = env.api::<Greeting>().create(&PostParams::default(), &greeting("mute", "")).await;
        let Err(Error::Api(status)) = refused else { panic!("it must be refused: {refused:?}") };
        assert_eq!(status.code, 422, "{status:?}");
        assert!(status.message.contains("must say something"), "{status:?}");
        let applied = env.apply(&greeting(round, "hi")).await;
        assert_eq!(applied.spec.to.as_deref(), Some("world"));
        match round {
            "first" => env.restart().await,
            // The certificates are renewed by the cluster's clock.
            _ => env.advance(Duration::from_hours(24 * 365)).await,
        }
    }
    env.stop().await;
}

#[tokio::test]
async fn webhooks_are_called_on_the_real_clock_too() {
    let env = Environment::start(operator).await;
    let refused = env.api::<Greeting>().create(&PostParams::default(), &greeting("mute", "")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("must say something")));
    let text = panic_of(env.advance(Duration::from_hours(1))).await;
    assert!(text.contains("start_paused = true"), "{text}");
    env.stop().await;
}

/// Reads Secrets, which it has not declared.
struct Curious;

impl Reconciler for Curious {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
        ctx.fetch::<Secret>(Some("default"), "one").await?;
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_the_manifests_lack_fails_the_test() {
    let curious = || Operator::new("curious-operator").controller(Controller::new(Curious));
    let env = Environment::start(curious).await;
    let role = Api::<ClusterRole>::all(env.client()).get("curious-operator-manager-role").await.unwrap();
    assert_eq!(role.rules, Some(curious().rbac()), "exactly what the manifests grant");
    env.apply(&decode::<ConfigMap>(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}),
    ))
    .await;
    let text = panic_of(env.settled()).await;
    let account = "system:serviceaccount:curious-operator-system:curious-operator";
    assert!(text.contains("configmap default/one: Forbidden"), "{text}");
    assert!(text.contains(account), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_declaration_fails_the_second_reconcile() {
    let env = Environment::start(|| {
        Operator::new("greeting-operator").crd::<Greeting>().controller(Controller::new(Greetings))
    })
    .await;
    env.apply(&greeting("hello", "hi")).await;
    let text = panic_of(env.assert_second_reconcile_writes_nothing()).await;
    assert!(text.contains("greeting default/hello: Misconfigured"), "{text}");
}

/// Wants to run every hour, and counts.
struct Hourly(Arc<AtomicUsize>);

impl Reconciler for Hourly {
    type Resource = Greeting;
    type Error = windlass::Error;

    async fn reconcile(&self, greeting: Arc<Greeting>, ctx: &Context<Greeting>) -> windlass::Result<Action> {
        let created = greeting.metadata.creation_timestamp.as_ref().unwrap().0;
        let (age, runs) = (ctx.now().duration_since(created), self.0.fetch_add(1, Ordering::SeqCst));
        assert_eq!(age.as_hours(), i64::try_from(runs).unwrap(), "the cluster's clock is the operator's");
        Ok(Action::requeue(Duration::from_hours(1)))
    }
}

#[tokio::test(start_paused = true)]
async fn time_passes_for_the_operator_and_its_cluster_alike() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let env = Environment::start(move || {
        let hourly = Controller::new(Hourly(counted.clone()));
        Operator::new("hourly-operator").crd::<Greeting>().controller(hourly)
    })
    .await;
    env.apply(&greeting("hello", "hi")).await;
    env.advance(Duration::from_mins(30)).await;
    env.advance(Duration::from_hours(3)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 4, "at once, and after each of three hours");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn settled_waits_for_the_whole_cluster() {
    let env = Environment::start(operator).await;
    env.apply(&deployment("web", 3)).await;
    env.settled().await;
    let web = env.api::<windlass::k8s_openapi::api::apps::v1::Deployment>().get("web").await.unwrap();
    assert!(is_complete(&web), "{web:?}");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_in_an_idle_hour() {
    let env = Environment::start(operator).await;
    env.apply(&greeting("hello", "hi")).await;
    env.apply(&deployment("web", 3)).await;
    // What looks again after a while, such as the discovery of kinds, has done so, and the Events of the start are gone.
    env.advance(Duration::from_mins(70)).await;
    let runtime = tokio::runtime::Handle::current().metrics();
    let (requests, revision) = (env.requests().all().len(), env.cluster().revision());
    let woken = runtime.worker_park_count(0);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let woken = runtime.worker_park_count(0) - woken;
    assert_eq!(env.requests().all().len(), requests, "{:#?}", &env.requests().all()[requests..]);
    assert_eq!(env.cluster().revision(), revision, "nothing is written");
    assert!(woken < 20, "everything sleeps, but was woken {woken} times");
    env.stop().await;
}
