//! What is refused before anything is changed.

use serde_json::json;
use windlass_cluster::Identity;
use windlass_deploy::{Error, Options};

use crate::bed::{Bed, HOME, definition, object, options, release, release_with};

#[tokio::test(start_paused = true)]
async fn half_the_permissions_and_every_missing_one_is_named() {
    let bed = Bed::start().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "half"},
        "rules": [
            {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get"]},
        ],
    });
    bed.put("admin", role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "half"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "half"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    bed.put("admin", binding).await;
    let jane = bed.cluster.client_as(Identity::new("jane", ["system:authenticated".to_owned()]));
    let before = bed.state().await;
    let release = release_with("op:1", [definition(&["v1"], &["size"])]);
    let done =
        bed.with_client(jane, options(), |deployer| async move { deployer.deploy(&release).await }).await;
    let Err(Error::Forbidden(missing)) = done else { panic!("{done:?}") };
    assert_eq!(
        missing,
        [
            "create, get, patch customresourcedefinitions.apiextensions.k8s.io",
            "list crates.example.com",
            "create, patch clusterroles.rbac.authorization.k8s.io",
        ]
    );
    assert_eq!(bed.state().await, before, "nothing was changed");
}

#[tokio::test(start_paused = true)]
async fn a_role_with_more_than_one_has_oneself_in_the_api_servers_words() {
    let bed = Bed::start().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "deployers"},
        "rules": [
            {"apiGroups": ["", "apps"], "resources": ["namespaces", "serviceaccounts", "secrets", "deployments"], "verbs": ["*"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get", "create", "patch"]},
        ],
    });
    bed.put("admin", role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "deployers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "deployers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    bed.put("admin", binding).await;
    let jane = bed.cluster.client_as(Identity::new("jane", ["system:authenticated".to_owned()]));
    let before = bed.state().await;
    let done = bed
        .with_client(jane, options(), |deployer| async move { deployer.deploy(&release("op:1")).await })
        .await;
    let Err(Error::Request { source, what, .. }) = done else { panic!("{done:?}") };
    let text = source.to_string();
    assert!(text.contains("attempting to grant RBAC permissions not currently held"), "{text}");
    assert!(text.contains("Resources:[\"configmaps\"]") && what.starts_with("ClusterRole "), "{text}");
    assert_eq!(bed.state().await, before, "nothing was changed");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted() {
    let bed = Bed::start().await;
    bed.put("admin", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})).await;
    let held = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": HOME, "finalizers": ["example.com/held"]},
    });
    bed.put("admin", held).await;
    bed.api("", "v1", "Namespace", None)
        .delete(HOME, &windlass::kube::api::DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let error = bed.deploy(&release("op:1")).await.unwrap_err();
    assert!(matches!(&error, Error::Terminating { name, .. } if name == HOME), "{error:?}");
    assert!(error.to_string().contains("remain"), "{error}");
    assert!(error.hint().unwrap().contains("wait until it is gone"));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_unless_it_is_taken_over() {
    let bed = Bed::start().await;
    let taken = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "box-operator-manager-role"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    });
    bed.put("somebody", taken).await;
    let before = bed.state().await;
    let error = bed.deploy(&release("op:1")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("ClusterRole box-operator-manager-role is somebody else's"), "{text}");
    assert!(text.contains("the field manager \"somebody\" has .rules"), "{text}");
    assert_eq!(bed.state().await, before, "nothing was changed");
    bed.deploy_with(&release("op:1"), Options { force_conflicts: true, ..options() }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_somebody_else_has_unless_it_is_taken_over() {
    let bed = Bed::start().await;
    bed.put("other-operator", definition(&["v1"], &["size", "colour"])).await;
    let release = release_with("op:1", [definition(&["v1"], &["size", "colour", "weight"])]);
    let before = bed.state().await;
    let error = bed.deploy(&release).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("CustomResourceDefinition crates.example.com is somebody else's"), "{text}");
    assert!(text.contains("\"other-operator\""), "{text}");
    assert_eq!(bed.state().await, before, "nothing was changed");
    let mut labelled = definition(&["v1"], &["size"]);
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    bed.put("helm", labelled).await;
    let error = bed.with(options(), |deployer| {
        let release = release.clone();
        async move { deployer.install(&release).await }
    });
    let text = error.await.unwrap_err().to_string();
    assert!(text.contains("its label app.kubernetes.io/managed-by is Helm"), "{text}");
    bed.deploy_with(&release, Options { force_conflicts: true, ..options() }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_would_break_stored_objects_and_the_field_is_named() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size", "colour"])])).await.unwrap();
    bed.put("user", object("v1", "a")).await;
    let before = bed.state().await;
    let narrower = release_with("op:2", [definition(&["v1"], &["colour"])]);
    let error = bed.deploy(&narrower).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Breaking { objects: 1, .. }), "{text}");
    assert!(text.contains("crates.example.com v1 .spec.size"), "{text}");
    assert_eq!(bed.state().await, before, "nothing was changed");
    bed.deploy_with(&narrower, Options { allow_breaking: true, ..options() }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_objects_nothing_can_break() {
    let bed = Bed::start().await;
    bed.deploy(&release_with("op:1", [definition(&["v1"], &["size"])])).await.unwrap();
    bed.deploy(&release_with("op:2", [definition(&["v1"], &["colour"])])).await.unwrap();
}
