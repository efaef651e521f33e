//! Kinds that are known only at run time, metadata alone, and watches that come and go.

use std::sync::{Arc, atomic::Ordering};

use serde_json::json;
use windlass::{
    Controller, Operator,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        CustomResourceExt,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
};

use crate::{
    dynamic::{Copiers, Followers, Labellers, kind},
    fixture::{Cluster, eventually, observed, quiet},
    gadget::Gadget,
    sizes::widget,
    widget::Widget,
};

pub async fn a_kind_known_at_run_time_is_reconciled_like_any_other(cluster: Cluster) {
    let copiers = Copiers { runs: Arc::default(), map: kind("", "ConfigMap") };
    let controller = copiers.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("copier").controller(controller));
    let (gadgets, maps) = (cluster.api::<Gadget>(), cluster.api::<ConfigMap>());
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&gadgets, "one").await;
    let runs = || copiers.runs.load(Ordering::SeqCst);
    quiet(runs).await;
    let writes = cluster.requests.take_writes();
    assert_eq!(writes.len(), 2, "one for the child and one for the status: {writes:#?}");
    assert_eq!(maps.get("one").await.unwrap().data.unwrap()["image"], "nginx:1.29");
    assert_eq!(gadgets.get("one").await.unwrap().status.unwrap().ready_replicas, 36, "the length of a uid");

    let before = runs();
    let touch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    gadgets.patch("one", &PatchParams::default(), &Patch::Merge(&touch)).await.unwrap();
    eventually("another run", || async { runs() > before }).await;
    quiet(runs).await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "a second reconcile writes nothing: {writes:#?}");

    maps.delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the child is back", || async { maps.get_opt("one").await.unwrap().is_some() }).await;
    running.stop().await;
}

pub async fn metadata_alone_is_enough_to_own(cluster: Cluster) {
    let labellers = Labellers::default();
    let controller = labellers.controller().namespace(&cluster.namespace);
    let running = cluster.run(Operator::new("labeller").controller(controller));
    let (gadgets, maps) = (cluster.api::<Gadget>(), cluster.api::<ConfigMap>());
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    observed(&gadgets, "one").await;
    let runs = || labellers.runs.load(Ordering::SeqCst);
    quiet(runs).await;
    assert_eq!(cluster.requests.take_writes().len(), 2);
    assert_eq!(gadgets.get("one").await.unwrap().status.unwrap().ready_replicas, 1, "it is in the cache");

    let drift = json!({"data": {"image": "other"}});
    maps.patch("one", &PatchParams::default(), &Patch::Merge(&drift)).await.unwrap();
    eventually("the drift is repaired", || async {
        maps.get("one").await.unwrap().data.unwrap()["image"] == "nginx:1.29"
    })
    .await;
    quiet(runs).await;
    assert_eq!(cluster.requests.take_writes().len(), 1, "nothing but the repair");
    running.stop().await;
}

pub async fn watches_come_and_go_while_the_controller_runs(cluster: Cluster) {
    let followers = Followers::default();
    let controller = Controller::new(followers.clone()).namespace(&cluster.namespace);
    let operator = Operator::new("follower").controller(controller);
    let (probes, running) = (operator.probes(), cluster.run(operator));
    let (maps, widgets) = (cluster.api::<ConfigMap>(), cluster.api::<Widget>());
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "follow"}, "data": {"widgets": "yes"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let seen = || *followers.seen.lock().unwrap();
    eventually("an absent kind is watched", || async { seen() == Some(0) }).await;
    assert!(probes.is_ready(), "it was added as optional: {:?}", probes.checks());
    cluster.install(Widget::crd(), Widget::crd_name()).await;
    widgets.create(&PostParams::default(), &widget("w", 1)).await.unwrap();
    eventually("the widget is seen", || async { seen() == Some(1) }).await;

    let params = PatchParams::default();
    maps.patch("follow", &params, &Patch::Merge(json!({"data": null}))).await.unwrap();
    eventually("the watch is gone", || async { seen().is_none() }).await;
    let watched = || probes.checks().iter().any(|check| check.name.contains("Widget"));
    assert!(!watched(), "{:?}", probes.checks());

    maps.patch("follow", &params, &Patch::Merge(json!({"data": {"widgets": "yes"}}))).await.unwrap();
    eventually("the widget is seen again", || async { seen() == Some(1) }).await;
    widgets.delete("w", &DeleteParams::default()).await.unwrap();
    eventually("its deletion is seen", || async { seen() == Some(0) }).await;
    running.stop().await;
    cluster.uninstall(Widget::crd_name()).await;
}
