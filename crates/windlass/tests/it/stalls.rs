//! A connection that falls silent without ending, as it happens behind load balancers and after a power cut.

use std::time::Duration;

use tower::Layer;
use windlass::{
    Operator,
    kube::{Client, api::PostParams},
};

use crate::{
    fixture::{self, eventually, observed},
    gadget::{Gadget, Gadgets},
    silence::Silence,
};

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_noticed_and_replaced() {
    let (server, start) = fixture::server();
    let silence = Silence::default();
    let operator_client = Client::new(silence.layer(server.clone()), "default");
    let cluster = fixture::cluster(server, operator_client, start).await;
    let gadgets = Gadgets::default();
    let controller = gadgets.controller().namespace(&cluster.namespace);
    let operator = Operator::new("gadget-operator").controller(controller);
    let (probes, running) = (operator.probes(), cluster.run(operator));
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    // The server has sent bookmarks by now, so that silence means something.
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert!(probes.is_ready());

    silence.fall();
    api.create(&PostParams::default(), &Gadget::test("two")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(probes.is_ready(), "it might be a quiet time");
    tokio::time::sleep(Duration::from_mins(1)).await;
    let failing: Vec<_> = probes.checks().into_iter().filter(|check| check.failure.is_some()).collect();
    let named = |check: &windlass::Check| check.name == "watch-Gadget.it.windlass.dev";
    let check = failing.iter().find(|check| named(check)).expect("the stalled watch must be named");
    assert!(check.failure.as_ref().unwrap().contains("silent for 150s"), "{check:?}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!probes.is_ready(), "no request is answered");

    silence.end();
    eventually("the operator is ready again", || {
        let ready = probes.is_ready();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ready
        }
    })
    .await;
    observed(&api, "two").await;
    running.stop().await;
}
