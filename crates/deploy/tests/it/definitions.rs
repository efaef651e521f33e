//! Definitions over upgrades: what is stored follows, and nothing is lost on the way back.

use serde_json::json;
use windlass::kube::api::ListParams;
use windlass_deploy::{Error, Options};

use crate::bed::{Bed, definition, object, options, release_with};

async fn stored(bed: &Bed) -> serde_json::Value {
    let found = bed.get("apiextensions.k8s.io", "CustomResourceDefinition", None, "crates.example.com").await;
    found.unwrap()["status"]["storedVersions"].clone()
}

#[tokio::test(start_paused = true)]
async fn after_an_upgrade_every_object_is_stored_in_the_new_version() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size"])])).await.unwrap();
    for number in 0..7 {
        bed.put("user", object("v1", &format!("a{number}"))).await;
    }
    assert_eq!(stored(&bed).await, json!(["v1"]));
    bed.deploy(&release_with("op:2", [definition(&["v2", "v1"], &["size"])])).await.unwrap();
    assert_eq!(stored(&bed).await, json!(["v2"]));
    let told = bed.told();
    assert!(told.contains(&"stored 7 objects of crates.example.com as v2".to_owned()), "{told:#?}");
    // So the old version can go, which the API server would refuse otherwise.
    bed.deploy_with(
        &release_with("op:3", [definition(&["v2"], &["size"])]),
        Options { allow_breaking: true, ..options() },
    )
    .await
    .unwrap();
    let left = bed.api("example.com", "v2", "Crate", None).list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 7);
    assert!(left.items.iter().all(|object| object.data["spec"]["size"] == "big"));
}

#[tokio::test(start_paused = true)]
async fn a_version_without_a_way_to_it_is_refused() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size"])])).await.unwrap();
    bed.put("user", object("v1", "a")).await;
    let options = Options { allow_breaking: true, ..options() };
    let error =
        bed.deploy_with(&release_with("op:2", [definition(&["v2"], &["size"])]), options).await.unwrap_err();
    assert!(matches!(error, Error::NoCommonVersion { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("a version that has both"));
}

#[tokio::test(start_paused = true)]
async fn going_back_keeps_a_definition_that_holds_more() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size"])])).await.unwrap();
    bed.deploy(&release_with("op:2", [definition(&["v1"], &["size", "colour"])])).await.unwrap();
    let mut crate_ = object("v1", "a");
    crate_["spec"]["colour"] = "red".into();
    bed.put("user", crate_).await;
    bed.told();
    bed.undo(options()).await.unwrap();
    let told = bed.told();
    assert!(
        told.iter().any(|line| line.starts_with("kept CustomResourceDefinition crates.example.com as it is")),
        "{told:#?}"
    );
    let kept = bed.get("example.com", "Crate", Some("default"), "a").await.unwrap();
    assert_eq!(kept["spec"]["colour"], "red");
    let deployment = bed.get("apps", "Deployment", Some("boxes"), "box-operator").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "op:1");
}

#[tokio::test(start_paused = true)]
async fn going_back_over_a_new_version_rewrites_objects_in_the_old_one_if_that_is_allowed() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size"])])).await.unwrap();
    bed.put("user", object("v1", "a")).await;
    bed.deploy(&release_with("op:2", [definition(&["v2", "v1"], &["size"])])).await.unwrap();
    bed.put("user", object("v2", "b")).await;
    let error = bed.undo(options()).await.unwrap_err();
    assert!(matches!(error, Error::Breaking { objects: 2, .. }), "{error:?}");
    bed.undo(Options { allow_breaking: true, ..options() }).await.unwrap();
    assert_eq!(stored(&bed).await, json!(["v1"]));
    let left = bed.api("example.com", "v1", "Crate", None).list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 2);
}
