//! Kinds that are absent, come late, vanish and return, and objects that cannot be read.

use std::{future::Future, sync::atomic::Ordering, time::Duration};

use serde_json::json;
use windlass::{
    Operator, Probes, RunError,
    kube::{
        Api, CustomResourceExt,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        core::{ApiResource, DynamicObject},
    },
};

use crate::{
    fixture::{Cluster, eventually, observed, quiet},
    gadget::{Gadget, Gadgets},
    widget::{Fitters, Widget},
};

async fn ready(probes: &Probes) {
    eventually("the operator is ready", || async { probes.is_ready() }).await;
}

/// As `eventually`, for what a server may take its time with: it ends the watch of a kind that it does not serve
/// any more soon, or when the time of that watch is up.
async fn in_a_while<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    for _ in 0..400 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("never happened: {what}");
}

fn failing(probes: &Probes) -> Vec<String> {
    probes.checks().into_iter().filter(|check| check.failure.is_some()).map(|check| check.name).collect()
}

pub async fn an_optional_kind_may_come_and_go(cluster: Cluster) {
    let fitters = Fitters::default();
    let operator = Operator::new("fitter").controller(fitters.controller().namespace(&cluster.namespace));
    let (probes, running) = (operator.probes(), cluster.run(operator));
    let gadgets = cluster.api::<Gadget>();
    for name in ["a", "b"] {
        gadgets.create(&PostParams::default(), &Gadget::test(name)).await.unwrap();
        observed(&gadgets, name).await;
    }
    ready(&probes).await;

    let widgets = cluster.api::<Widget>();
    for round in 0..2 {
        cluster.install(Widget::crd(), Widget::crd_name()).await;
        eventually("every gadget has a widget", || async {
            let count = |name: &'static str| async {
                gadgets.get(name).await.unwrap().status.unwrap().ready_replicas
            };
            count("a").await == 1 && count("b").await == 1
        })
        .await;
        assert!(widgets.get_opt("b").await.unwrap().is_some());
        quiet(|| fitters.runs()).await;
        cluster.requests.take_writes();

        cluster.uninstall(Widget::crd_name()).await;
        in_a_while("the cache is empty", || async {
            gadgets.get("a").await.unwrap().status.unwrap().ready_replicas == 0
        })
        .await;
        assert!(probes.is_ready(), "round {round}: {:?}", failing(&probes));
        assert!(!running.task.is_finished());
    }
    running.stop().await;
}

pub async fn the_reconciled_kind_may_vanish_and_return(cluster: Cluster) {
    let gadgets = Gadgets::default();
    let controller = gadgets.controller().namespace(&cluster.namespace);
    let operator = Operator::new("gadget-operator").controller(controller);
    let (probes, running) = (operator.probes(), cluster.run(operator));
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&api, "one").await;
    cluster.uninstall(Gadget::crd_name()).await;
    let check = format!("watch-{}", "Gadget.it.windlass.dev");
    in_a_while("the operator says which kind is missing", || async { failing(&probes) == [check.clone()] })
        .await;
    // Once for the object; again for each child that a garbage collector takes afterwards.
    assert!(gadgets.deletions.load(Ordering::SeqCst) >= 1, "its end was told");

    cluster.install(Gadget::crd(), Gadget::crd_name()).await;
    api.create(&PostParams::default(), &Gadget::test("two")).await.unwrap();
    observed(&api, "two").await;
    ready(&probes).await;
    running.stop().await;
}

pub async fn an_operator_without_its_kind_says_what_is_missing(cluster: Cluster) {
    let fitters = Fitters::default();
    let controller = fitters.controller().owns::<Widget>().namespace(&cluster.namespace);
    let operator = Operator::new("fitter").controller(controller).sync_timeout(Duration::from_secs(2));
    let running = cluster.run(operator);
    let error = running.task.await.unwrap().unwrap_err();
    let RunError::NotSynced { kind, reason, .. } = error else { panic!("{error}") };
    assert_eq!(kind, "Widget.it.windlass.dev");
    assert!(reason.contains("HTTP 404"), "{reason}");
    assert_eq!(fitters.runs(), 0);
}

pub async fn an_object_that_cannot_be_read_stops_no_other(cluster: Cluster) {
    cluster.install(Widget::loose_crd(), Widget::crd_name()).await;
    let resource = ApiResource::erase::<Widget>(&());
    let loose = Api::<DynamicObject>::namespaced_with(cluster.user.clone(), &cluster.namespace, &resource);
    let bad = DynamicObject::new("bad", &resource).data(json!({"spec": {"size": "huge"}}));
    loose.create(&PostParams::default(), &bad).await.unwrap();

    let seen = crate::sizes::Sizes::default();
    let operator = Operator::new("sizes").controller(seen.controller().namespace(&cluster.namespace));
    let (metrics, probes) = (operator.metrics().clone(), operator.probes());
    let running = cluster.run(operator);
    let widgets = cluster.api::<Widget>();
    widgets.create(&PostParams::default(), &crate::sizes::widget("good", 1)).await.unwrap();
    eventually("the good one is seen", || async { seen.get("good") == Some(1) }).await;
    assert_eq!(seen.get("bad"), None);
    let unreadable = r#"windlass_cache_unreadable_objects{group="it.windlass.dev",kind="Widget"}"#;
    let count = |count: u32| metrics.encode().unwrap().contains(&format!("{unreadable} {count}\n"));
    assert!(count(1), "{}", metrics.encode().unwrap());
    assert!(probes.is_ready(), "{:?}", failing(&probes));

    let patch = |size: serde_json::Value| Patch::Merge(json!({"spec": {"size": size}}));
    let params = PatchParams::default();
    loose.patch("good", &params, &patch(json!("vast"))).await.unwrap();
    eventually("both are unreadable", || async { count(2) }).await;
    loose.patch("bad", &params, &patch(json!(7))).await.unwrap();
    eventually("it is reconciled when it becomes readable", || async { seen.get("bad") == Some(7) }).await;
    assert!(count(1));
    loose.delete("good", &DeleteParams::default()).await.unwrap();
    eventually("a deletion is seen all the same", || async { seen.get("good").is_none() && count(0) }).await;
    running.stop().await;
    cluster.uninstall(Widget::crd_name()).await;
}
