//! What does not come up says why, in the Pod's own words.

use serde_json::{Value, json};
use windlass_deploy::{Error, Release};

use crate::bed::{Bed, HOME, objects, options, release};

/// A release whose Pods do what an annotation says.
fn simulated(behaviour: &str) -> Release {
    let mut objects = objects("op:1");
    let annotations =
        json!({"windlass.dev/simulate": behaviour, "windlass.dev/log": "no such file: config.yaml"});
    objects[3]["spec"]["template"]["metadata"]["annotations"] = annotations;
    Release::new(objects).unwrap()
}

async fn why(bed: &Bed, release: &Release) -> String {
    match bed.deploy_with(release, options()).await.unwrap_err() {
        Error::NotReady { why, what, .. } => {
            assert_eq!(what, "Deployment boxes/box-operator");
            why
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled() {
    let bed = Bed::start().await;
    let why = why(&bed, &simulated("image-pull-error")).await;
    assert!(
        why.contains("ImagePull") && why.contains("failed to pull and unpack image \"op:1\": not found"),
        "{why}"
    );
    let told = bed.told();
    assert!(
        told.iter().any(|line| line.contains("ErrImagePull") || line.contains("ImagePullBackOff")),
        "{told:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_with_its_exit_code_and_its_last_line() {
    let bed = Bed::start().await;
    let why = why(&bed, &simulated("crash-loop")).await;
    assert!(why.contains("CrashLoopBackOff") && why.contains("exit code 1"), "{why}");
    assert!(why.contains("its last line: "), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_quota() {
    let bed = Bed::start().await;
    bed.put("admin", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": HOME},
        "spec": {"hard": {"pods": "0"}},
    });
    bed.put("admin", quota).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let why = why(&bed, &release("op:1")).await;
    assert!(why.starts_with("FailedCreate: ") && why.contains("exceeded quota: none"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_place_for_it() {
    let bed = Bed::start().await;
    let mut objects = objects("op:1");
    objects[3]["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "gold"});
    let why = why(&bed, &Release::new(objects).unwrap()).await;
    assert!(why.starts_with("Unschedulable: 0/1 nodes are available"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_the_restricted_standard_that_refuses_its_pods() {
    let bed = Bed::start().await;
    let mut objects = objects("op:1");
    objects[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted".into();
    let why = why(&bed, &Release::new(objects).unwrap()).await;
    assert!(why.contains("FailedCreate") && why.contains("violates PodSecurity \"restricted"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn webhooks_whose_authority_nobody_has_said() {
    let bed = Bed::start().await;
    // A node on which containers could run, so that somebody could answer.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}, "spec": {"unschedulable": true}});
    bed.put("admin", node).await;
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "box-operator"},
        "webhooks": [{
            "name": "boxes.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "box-operator-webhook", "namespace": HOME}},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["boxes"], "operations": ["CREATE"]}],
        }],
    });
    let release = Release::new(objects("op:1").into_iter().chain([hook]).collect::<Vec<Value>>()).unwrap();
    let error = bed.deploy_with(&release, options()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("ValidatingWebhookConfiguration box-operator") && text.contains("whom to trust"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn once_it_is_mended_a_second_run_finishes() {
    let bed = Bed::start().await;
    why(&bed, &simulated("image-pull-error")).await;
    bed.deploy(&release("op:2")).await.unwrap();
    let told = bed.told();
    assert!(told.iter().any(|line| line == "Deployment boxes/box-operator is ready"), "{told:#?}");
    assert!(told.last().unwrap().starts_with("deployed box-operator as revision"), "{told:#?}");
}
