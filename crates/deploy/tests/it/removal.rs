//! What goes and what stays when an operator is taken out.

use std::time::Duration;

use serde_json::json;
use windlass_deploy::{Error, Loss, Options, Release};

use crate::bed::{Bed, HOME, NAME, definition, object, options, release_with};

fn crated() -> Release {
    release_with("op:1", [definition(&["v1"], &["size"])])
}

async fn uninstall(bed: &Bed, agreed: Option<usize>, options: Options) -> Result<(), Error> {
    bed.with(options, |deployer| async move {
        deployer.uninstall(&crated(), &|loss: &Loss| agreed == Some(loss.total), false).await
    })
    .await
}

async fn undeploy(bed: &Bed, agreed: Option<usize>) -> Result<(), Error> {
    bed.with(options(), |deployer| async move {
        let consent = |loss: &Loss| agreed == Some(loss.total);
        deployer.undeploy(&crated(), agreed.is_some().then_some(&consent), false).await
    })
    .await
}

async fn is_defined(bed: &Bed) -> bool {
    bed.get("apiextensions.k8s.io", "CustomResourceDefinition", None, "crates.example.com").await.is_some()
}

#[tokio::test(start_paused = true)]
async fn an_operator_goes_and_its_kinds_and_objects_stay_and_are_there_when_it_is_back() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    let made = bed.put("user", object("v1", "a")).await;
    undeploy(&bed, None).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(is_defined(&bed).await);
    assert_eq!(bed.get("apps", "Deployment", Some(HOME), NAME).await, None);
    assert_eq!(bed.get("", "Namespace", None, HOME).await, None);
    assert_eq!(
        bed.get("rbac.authorization.k8s.io", "ClusterRole", None, "box-operator-manager-role").await,
        None
    );
    bed.deploy(&crated()).await.unwrap();
    let kept = bed.get("example.com", "Crate", Some("default"), "a").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], made.metadata.uid.unwrap().as_str());
}

#[tokio::test(start_paused = true)]
async fn a_second_undeploy_finds_nothing_to_do() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    undeploy(&bed, None).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    bed.told();
    undeploy(&bed, None).await.unwrap();
    let told = bed.told();
    assert!(told.iter().all(|line| !line.starts_with("deleted")), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn objects_that_nobody_would_finalize_are_named() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    let mut held = object("v1", "a");
    held["metadata"]["finalizers"] = json!(["example.com/cleanup"]);
    bed.put("user", held).await;
    undeploy(&bed, None).await.unwrap();
    let told = bed.told();
    let named = "waits until the operator is back: Crate default/a (finalizer example.com/cleanup)";
    assert!(told.iter().any(|line| line.contains(named)), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn objects_can_be_ended_while_the_operator_still_runs_and_the_wrong_number_ends_nothing() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    bed.put("user", object("v1", "a")).await;
    bed.put("user", object("v1", "b")).await;
    let error = undeploy(&bed, Some(3)).await.unwrap_err();
    assert!(matches!(error, Error::NotAgreed { total: 2 }), "{error:?}");
    assert!(bed.get("apps", "Deployment", Some(HOME), NAME).await.is_some());
    undeploy(&bed, Some(2)).await.unwrap();
    assert_eq!(bed.get("example.com", "Crate", Some("default"), "a").await, None);
    assert!(is_defined(&bed).await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_in_which_somebody_else_has_something_stays() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": HOME}});
    bed.put("user", other).await;
    undeploy(&bed, None).await.unwrap();
    let told = bed.told();
    assert!(told.contains(&"kept Namespace boxes: it also has ConfigMap other".to_owned()), "{told:#?}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(bed.get("", "ConfigMap", Some(HOME), "other").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_somebody_else_has_made_stays() {
    let bed = Bed::start().await;
    bed.put(
        "admin",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME, "labels": {"team": "a"}}}),
    )
    .await;
    bed.deploy(&crated()).await.unwrap();
    undeploy(&bed, None).await.unwrap();
    let told = bed.told();
    assert!(told.contains(&"kept Namespace boxes: it is somebody else's".to_owned()), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_has_the_name_of_something_that_went_long_ago_is_somebody_elses() {
    let bed = Bed::start().await;
    let metadata = json!({"name": "m", "namespace": HOME});
    let map = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "1"}});
    bed.deploy(&release_with("op:1", [map()])).await.unwrap();
    bed.deploy(&release_with("op:2", [])).await.unwrap();
    assert_eq!(bed.get("", "ConfigMap", Some(HOME), "m").await, None);
    bed.put("user", map()).await;
    bed.deploy(&release_with("op:3", [])).await.unwrap();
    undeploy(&bed, None).await.unwrap();
    assert!(bed.get("", "ConfigMap", Some(HOME), "m").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_objects_goes_only_with_their_number_and_one_without_at_once() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    bed.put("user", object("v1", "a")).await;
    for agreed in [None, Some(0), Some(2)] {
        let error = uninstall(&bed, agreed, options()).await.unwrap_err();
        assert!(matches!(error, Error::NotAgreed { total: 1 }), "{error:?}");
        assert_eq!(error.hint().unwrap(), "to lose them, say how many: --delete-objects=1");
        assert!(
            is_defined(&bed).await && bed.get("example.com", "Crate", Some("default"), "a").await.is_some()
        );
    }
    let told = bed.told();
    assert!(told.contains(&"crates.example.com has 1 object: Crate default/a".to_owned()), "{told:#?}");
    uninstall(&bed, Some(1), options()).await.unwrap();
    assert!(!is_defined(&bed).await);
    bed.deploy(&crated()).await.unwrap();
    uninstall(&bed, None, options()).await.unwrap();
    assert!(!is_defined(&bed).await);
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_not_let_go_are_named_and_the_definition_stays() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    let mut held = object("v1", "a");
    held["metadata"]["finalizers"] = json!(["example.com/cleanup"]);
    bed.put("user", held).await;
    let error = uninstall(&bed, Some(1), options()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Crate default/a (finalizer example.com/cleanup)"), "{text}");
    assert!(is_defined(&bed).await);
    let told = bed.told();
    assert!(told.iter().any(|line| line.starts_with("waiting for the end of Crate default/a")), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_somebody_else_is_not_deleted() {
    let bed = Bed::start().await;
    let mut foreign = definition(&["v1"], &["size"]);
    foreign["metadata"]["labels"] = json!({"app.kubernetes.io/name": "other"});
    bed.put("other", foreign).await;
    let error = uninstall(&bed, Some(0), options()).await.unwrap_err();
    assert!(matches!(error, Error::Taken { .. }), "{error:?}");
    assert!(is_defined(&bed).await);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_removal_removes_nothing() {
    let bed = Bed::start().await;
    bed.deploy(&crated()).await.unwrap();
    let before = bed.state().await;
    bed.with(options(), |deployer| async move {
        deployer.undeploy(&crated(), None, true).await.unwrap();
        deployer.uninstall(&crated(), &|_| false, true).await.unwrap();
    })
    .await;
    let told = bed.told();
    assert!(told.contains(&"would delete Deployment boxes/box-operator".to_owned()), "{told:#?}");
    assert!(
        told.contains(&"would delete CustomResourceDefinition crates.example.com".to_owned()),
        "{told:#?}"
    );
    assert_eq!(bed.state().await, before);
}
