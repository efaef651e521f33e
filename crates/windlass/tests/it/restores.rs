//! An API server whose data was restored from a backup: its versions begin anew.

use std::time::Duration;

use serde_json::json;
use windlass::{
    Operator,
    k8s_openapi::api::apps::v1::Deployment,
    kube::api::{DeleteParams, Patch, PatchParams, PostParams},
};

use crate::{
    fixture::{self, eventually, observed},
    gadget::{Gadget, Gadgets},
    wrapped::switched,
};

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_back_in_time_is_believed() {
    let ((first, start), (second, _)) = (fixture::server(), fixture::server());
    let (switch, present) = tokio::sync::watch::channel(false);
    let operator = switched(first.clone(), second.clone(), present);
    let before = fixture::cluster(first, operator.clone(), start).await;
    let after = fixture::cluster(second, operator, start).await;
    let gadgets = Gadgets::default();
    let running = before.run(Operator::new("gadget-operator").controller(gadgets.controller()));
    // The history of the first server is much longer.
    let api = before.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("old")).await.unwrap();
    for replicas in 3..43 {
        let change = json!({"spec": {"replicas": replicas}});
        api.patch("old", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        observed(&api, "old").await;
    }
    after.api::<Gadget>().create(&PostParams::default(), &Gadget::test("kept")).await.unwrap();
    after.api::<Gadget>().create(&PostParams::default(), &Gadget::test("old")).await.unwrap();

    switch.send(true).unwrap();
    observed(&after.api::<Gadget>(), "kept").await;
    observed(&after.api::<Gadget>(), "old").await;
    let deployments = after.api::<Deployment>();
    eventually("the child is made on the restored server", || async {
        deployments.get_opt("old").await.unwrap().is_some()
    })
    .await;
    deployments.delete("kept", &DeleteParams::default()).await.unwrap();
    eventually("a child that is deleted comes back", || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        deployments.get_opt("kept").await.unwrap().is_some()
    })
    .await;
    running.stop().await;
}
