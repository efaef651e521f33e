//! What the seven operators ship is taken by a strict server and by the strict standard of Pods.

use serde_json::Value;
use windlass::{
    Placement,
    kube::api::{DynamicObject, ListParams, Patch, PatchParams, ValidationDirective},
};
use windlass_deploy::{Options, Release};
use windlass_operators::{catalogue, entry, manifests, operator};

use crate::bed::Bed;

/// Kinds of the Prometheus operator, which this cluster does not have.
const ELSEWHERE: &str = "monitoring.coreos.com/v1";

#[tokio::test(start_paused = true)]
async fn every_generated_file_is_taken_with_strict_validation_and_its_pods_by_the_restricted_standard() {
    let bed = Bed::start().await;
    let files = manifests::manifests().unwrap();
    let mut objects: Vec<Value> = files
        .iter()
        .filter(|file| !file.path.ends_with("kustomization.yaml"))
        .flat_map(|file| serde_saphyr::from_multiple::<Value>(&file.content).unwrap())
        .collect();
    let all = objects.len();
    objects.retain(|object| object["apiVersion"] != ELSEWHERE);
    assert_eq!(all - objects.len(), 2, "a ServiceMonitor and a PrometheusRule");
    let rank = |object: &Value| match object["kind"].as_str().unwrap() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        // The webhooks are not served here.
        kind if kind.ends_with("WebhookConfiguration") => 3,
        _ => 2,
    };
    objects.sort_by_key(rank);
    // Samples name no namespace.
    let mut params = PatchParams::apply("strict");
    params.field_validation = Some(ValidationDirective::Strict);
    let mut known = std::collections::BTreeSet::new();
    for object in &mut objects {
        // A sample of an older version has the name of the newer one's. Without a conversion it is another object: what only
        // its own version knows is not stored.
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let (kind, namespace) = (object["kind"].to_string(), object["metadata"]["namespace"].to_string());
        if !known.insert((kind, namespace, name.clone())) {
            object["metadata"]["name"] = format!("{name}-older").into();
        }
        if object["kind"] == "CustomResourceDefinition" {
            // Nobody converts here, and samples of older versions are refused without.
            object["spec"].as_object_mut().unwrap().remove("conversion");
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let cluster_wide = ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
        let wide = cluster_wide.contains(&text("/kind")) || text("/kind").ends_with("WebhookConfiguration");
        let namespace =
            Some(text("/metadata/namespace")).filter(|it| !it.is_empty()).unwrap_or("windlass-system");
        let api = bed.api(group, version, text("/kind"), (!wide).then_some(namespace));
        let sent = api.patch(text("/metadata/name"), &params, &Patch::Apply(&*object)).await;
        sent.unwrap_or_else(|error| panic!("{} {}: {error}", text("/kind"), text("/metadata/name")));
    }
    let enforced = bed.get("", "Namespace", None, "windlass-system").await.unwrap();
    assert_eq!(enforced["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let pods = bed.api("", "v1", "Pod", Some("windlass-system"));
    let running = async {
        loop {
            let found: Vec<DynamicObject> = pods.list(&ListParams::default()).await.unwrap().items;
            if found.iter().filter(|pod| pod.data["status"]["phase"] == "Running").count() == 2 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), running).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_of_the_seven_alone_is_deployed_upgraded_and_undone() {
    let bed = Bed::start().await;
    let release = |image: &str| {
        let placement = Placement { replicas: 2, ..Placement::new("windlass-system", image) };
        Release::new(operator("windlass", [entry("memcached").unwrap()]).manifests(&placement)).unwrap()
    };
    let secrets = release("a:1").objects().iter().any(|object| {
        let rules = object["rules"].to_string();
        object["kind"] == "ClusterRole" && rules.contains("secrets")
    });
    assert!(!secrets, "memcached needs no Secrets");
    bed.deploy(&release("a:1")).await.unwrap();
    bed.deploy(&release("a:2")).await.unwrap();
    bed.with(Options::default(), |deployer| async move {
        deployer.undo("windlass", "windlass-system", None).await
    })
    .await
    .unwrap();
    let deployment = bed.get("apps", "Deployment", Some("windlass-system"), "windlass").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "a:1");
    assert_eq!(deployment["status"]["availableReplicas"], 2);
    assert!(catalogue().len() > 1);
}

#[tokio::test(start_paused = true)]
async fn definitions_without_their_operator_ask_nobody_to_convert_and_keep_one_who_does() {
    let bed = Bed::start().await;
    let release = || {
        let placement = Placement::new("windlass-system", "a:1");
        Release::new(operator("windlass", catalogue()).manifests(&placement)).unwrap()
    };
    let strategy = async || {
        let found = bed.get(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            None,
            "podmanagers.apps.mycompany.com",
        );
        found.await.unwrap()["spec"]["conversion"]["strategy"].clone()
    };
    let install = || {
        bed.with(Options::default(), |deployer| async move { deployer.install(&release()).await.unwrap() })
    };
    install().await;
    assert_eq!(strategy().await, "None");
    bed.deploy(&release()).await.unwrap();
    assert_eq!(strategy().await, "Webhook");
    install().await;
    assert_eq!(strategy().await, "Webhook");
}
