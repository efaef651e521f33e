//! A test fails with what its operator failed with, unless it said that it expects it.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use windlass::{
    Controller, Operator,
    k8s_openapi::api::core::v1::{ConfigMap, Service},
    kube::{Client, api::PostParams},
    testing::{self, Requests, Running},
    webhook::{Request, Validator, Verdict},
};
use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};

use crate::{
    fixture::{self, Cluster},
    gadget::{Gadget, Gadgets, Mood},
};

/// What a test would have ended with.
async fn panic_of<T>(test: impl Future<Output = T>) -> String {
    let Err(panic) = AssertUnwindSafe(test).catch_unwind().await else { panic!("it must panic") };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a panic must have a message")
}

/// An operator with one Gadget that it has seen.
async fn running(cluster: &Cluster, controller: Controller<Gadgets>) -> Running {
    let operator = Operator::new("gadget-operator").controller(controller);
    let running = Running::start(operator, cluster.operator.clone(), &cluster.requests).await;
    cluster.api::<Gadget>().create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    running
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_fails_every_check() {
    fixture::embedded(|cluster| async move {
        let unowned = || Controller::new(Gadgets::default()).owns::<Service>();
        let running = running(&cluster, unowned()).await;
        let text = panic_of(running.assert_second_reconcile_writes_nothing()).await;
        assert!(text.contains("gadget scenario/one: Misconfigured: failed to apply Deployment"), "{text}");
        assert!(text.contains(".owns::<Deployment>()"), "{text}");
        // Once told, it is not told again.
        running.stop().await;
        let operator = || Operator::new("gadget-operator").controller(unowned());
        let start = || Running::start(operator(), cluster.operator.clone(), &cluster.requests);
        let first = start().await;
        let text = panic_of(first.settled()).await;
        assert!(text.contains("Misconfigured"), "{text}");
        let second = start().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let text = panic_of(second.stop()).await;
        assert!(text.contains("Misconfigured"), "{text}");
        let third = start().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let text = panic_of(async { drop(third) }).await;
        assert!(text.contains("Misconfigured"), "{text}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_timeout_fail_the_test() {
    for (mood, reason) in [
        (Mood::Nervous, "ReconcilePanicked: first run"),
        (Mood::Stuck, "ReconcileTimedOut: not finished after 1s"),
    ] {
        fixture::embedded(|cluster| async move {
            let gadgets = Gadgets { mood, ..Gadgets::default() };
            let running = running(&cluster, gadgets.controller().timeout(Duration::from_secs(1))).await;
            let text = panic_of(running.settled()).await;
            assert!(text.contains(reason), "{text}");
        })
        .await;
    }
}

/// The reconciler takes an hour, which is longer than it may.
#[tokio::test(start_paused = true)]
async fn a_run_that_takes_an_hour_is_cut_off_unless_somebody_is_debugging() {
    for debugging in [false, true] {
        fixture::embedded(|cluster| async move {
            let gadgets = Gadgets { mood: Mood::Stuck, ..Gadgets::default() };
            let controller = gadgets.controller().timeout(Duration::from_mins(1));
            let operator = Operator::new("gadget-operator").debugging(debugging).controller(controller);
            let running = Running::start(operator, cluster.operator.clone(), &cluster.requests).await;
            running.allow_failures(|failure| failure.reason == "ReconcileTimedOut");
            let api = cluster.api::<Gadget>();
            api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
            tokio::time::sleep(Duration::from_mins(59)).await;
            let status = async || api.get("one").await.unwrap().status;
            // Without a debugger the second run has done the work long ago.
            assert_eq!(status().await.is_some(), !debugging);
            assert_eq!(gadgets.runs() > 1, !debugging);
            tokio::time::sleep(Duration::from_mins(2)).await;
            assert!(status().await.is_some());
            assert_eq!(running.failures().len(), usize::from(!debugging));
            running.stop().await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_test_expects_does_not_fail_it() {
    fixture::embedded(|cluster| async move {
        let gadgets = Gadgets { mood: Mood::Nervous, ..Gadgets::default() };
        let running = running(&cluster, gadgets.controller()).await;
        running.allow_failures(|failure| failure.reason == "ReconcilePanicked");
        running.settled().await;
        let failures = running.take_failures();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!((&*failures[0].controller, failures[0].key.name()), ("gadget", "one"));
        running.assert_second_reconcile_writes_nothing().await;
        assert!(running.failures().is_empty());
        running.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_reconcile_of_nothing_is_no_proof() {
    fixture::embedded(|cluster| async move {
        let operator = Operator::new("gadget-operator").controller(Gadgets::default().controller());
        let running = Running::start(operator, cluster.operator.clone(), &cluster.requests).await;
        let text = panic_of(running.assert_second_reconcile_writes_nothing()).await;
        assert!(text.contains("there is no object"), "{text}");
        running.stop().await;
    })
    .await;
}

struct Anything;

impl Validator for Anything {
    type Resource = ConfigMap;

    async fn validate_create(&self, _: &ConfigMap, _: &Request) -> Verdict {
        Verdict::allow()
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_cannot_be_registered_fails_the_test() {
    let start = windlass::jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let environment = environment::Environment::new(environment::TokioClock::starting_at(start), 7);
    let server = ApiServer::new(Arc::new(Registry::new(Arc::new(Store::default()), environment).unwrap()));
    let nobody = server.as_user(Identity::service_account("default", "nobody"));
    let requests = Requests::default();
    let mut operator = Operator::new("strict-operator").validates(Anything);
    assert!(testing::serve_webhooks(&mut operator, "default").is_some());
    let client = Client::new(requests.around(nobody), "default");
    let text = panic_of(Running::start(operator, client, &requests)).await;
    assert!(text.contains("the API server could not be told of the webhooks"), "{text}");
    assert!(text.contains("secrets \"strict-operator-webhook-certificates\" is forbidden"), "{text}");
}

#[test]
fn an_operator_without_webhooks_serves_none() {
    let mut operator = Operator::new("gadget-operator").controller(Gadgets::default().controller());
    assert!(testing::serve_webhooks(&mut operator, "default").is_none());
}
