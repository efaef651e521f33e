//! Charts of the seven operators, together and one by one.

use std::path::PathBuf;

use serde_json::Value;

use crate::tools::{Place, assert_same, judge, kustomized, of_kind, rendered, run, said, windlass};

/// All together, and each alone.
const CHOICES: [&str; 8] =
    ["", "podmanager", "webserver", "imoocpod", "memcached", "helloworld", "webapp", "database"];

fn packed(place: &Place, only: &str, format: &str) -> PathBuf {
    let out = place.path(&format!("{format}-{only}"));
    let mut command = windlass();
    command.args(["operators", "manifests", "--format", format, "--out"]).arg(&out);
    if !only.is_empty() {
        command.args(["--only", only]);
    }
    run(&mut command);
    out
}

fn namespace(only: &str) -> String {
    if only.is_empty() { "windlass-system".to_owned() } else { format!("{only}-operator-system") }
}

#[test]
fn what_helm_renders_by_default_is_what_kustomize_builds() {
    let place = Place::new();
    for only in CHOICES {
        let (chart, config) = (packed(&place, only, "helm"), packed(&place, only, "kustomize"));
        run(judge("helm").args(["lint", "--strict"]).arg(&chart));
        let (namespace, mut built) = (namespace(only), kustomized(&config));
        let whole = rendered(&chart, &namespace, &["--set", "namespace.create=true"]);
        assert_same(&whole, &built, only);
        // Without being told to, a chart leaves the namespace to `helm install --create-namespace`.
        built.retain(|(kind, ..), _| kind != "Namespace");
        assert_same(&rendered(&chart, &namespace, &[]), &built, only);
    }
}

#[test]
fn with_cert_manager_it_is_what_kustomize_builds_for_that() {
    let place = Place::new();
    for only in ["", "database"] {
        let chart = packed(&place, only, "helm");
        let config = place.path(&format!("issued-{only}"));
        let mut command = windlass();
        command.args(["operators", "manifests", "--cert-manager", "--out"]).arg(&config);
        command.args((!only.is_empty()).then_some(format!("--only={only}")));
        run(&mut command);
        let chosen = ["--set", "namespace.create=true", "--set", "webhooks.certManager=true"];
        let all = rendered(&chart, &namespace(only), &chosen);
        assert_same(&all, &kustomized(&config), only);
        assert_eq!(of_kind(&all, "Certificate").len(), 1);
        let watched = [&chosen[..], &["--set", "watchNamespaces={a}"]].concat();
        let args = of_kind(&rendered(&chart, "x", &watched), "Deployment")[0].to_string();
        assert!(args.contains("--webhook-cert-path=") && args.contains("--watch-namespaces=a"), "{args}");
    }
    // What has no webhooks has nothing to choose.
    let values = std::fs::read_to_string(packed(&place, "memcached", "helm").join("values.yaml")).unwrap();
    assert!(!values.contains("certManager"), "{values}");
}

#[test]
fn one_operator_alone_is_granted_nothing_for_secrets() {
    let place = Place::new();
    let all = rendered(&packed(&place, "memcached", "helm"), "x", &[]);
    let rules: Vec<&Value> = all.values().filter_map(|object| object["rules"].as_array()).flatten().collect();
    let about = |word: &str| rules.iter().filter(|rule| rule.to_string().contains(word)).count();
    assert!(about("\"memcacheds\"") > 0 && about("\"secrets\"") == 0 && about("\"*\"") == 1, "{rules:#?}");
}

#[test]
fn restricted_to_namespaces_it_may_work_there_alone() {
    let place = Place::new();
    let all = rendered(&packed(&place, "memcached", "helm"), "x", &["--set", "watchNamespaces={a,b}"]);
    let of = |kind: &str| -> Vec<&str> {
        of_kind(&all, kind).iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect()
    };
    assert_eq!(of("Role"), ["a", "b", "x"], "the last is for leader election");
    let wide = of_kind(&all, "ClusterRoleBinding");
    let names: Vec<&Value> = wide.iter().map(|binding| &binding["roleRef"]["name"]).collect();
    assert_eq!(names, ["memcached-operator-metrics-auth-role"]);
    let args = &of_kind(&all, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(args.to_string().contains("--watch-namespaces=a,b"), "{args}");
}

#[test]
fn a_kind_that_is_switched_off_leaves_nothing_but_the_word() {
    let place = Place::new();
    let chart = packed(&place, "", "helm");
    let all = rendered(&chart, "x", &["--set", "kinds.memcached=false"]);
    let named: Vec<String> = all
        .values()
        .filter(|object| object.to_string().contains("memcached"))
        .map(|object| object["kind"].to_string())
        .collect();
    assert_eq!(named, ["\"Deployment\""], "which says --disable-kinds");
    assert_eq!(of_kind(&all, "CustomResourceDefinition").len(), 7);
    assert_eq!(
        of_kind(&rendered(&chart, "x", &["--set", "crds.install=false"]), "CustomResourceDefinition").len(),
        0
    );
}

#[test]
fn everything_that_people_change_can_be_changed() {
    let place = Place::new();
    let chart = packed(&place, "", "helm");
    let values = r#"{
        "replicas": 3, "podLabels": {"team": "a"}, "podAnnotations": {"note": "b"}, "extraArgs": ["--log-level=debug"],
        "extraEnv": [{"name": "A", "value": "b"}], "resources": {}, "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}], "affinity": {"nodeAffinity": {}}, "priorityClassName": "high",
        "imagePullSecrets": [{"name": "pull"}], "metrics": {"enabled": false}, "webhooks": {"admission": false},
        "image": {"repository": "r.example.com:5000/o", "digest": "sha256:abc", "pullPolicy": "Always"},
        "serviceAccount": {"name": "someone", "annotations": {"role": "r"}}, "rbac": {"userRoles": false}
    }"#;
    let file = place.path("values.json");
    std::fs::write(&file, values).unwrap();
    let all = rendered(&chart, "x", &["--values", file.to_str().unwrap()]);
    let spec = &of_kind(&all, "Deployment")[0]["spec"];
    let (pod, container) = (&spec["template"]["spec"], &spec["template"]["spec"]["containers"][0]);
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["template"]["metadata"]["labels"]["team"], "a");
    assert_eq!(spec["template"]["metadata"]["annotations"]["note"], "b");
    assert_eq!(container["image"], "r.example.com:5000/o@sha256:abc");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert!(container["args"].to_string().contains("--log-level=debug"), "{container}");
    assert!(container["args"].to_string().contains("--metrics-bind-address=0"), "{container}");
    assert_eq!(container["env"].as_array().unwrap().last().unwrap()["name"], "A");
    assert_eq!((&pod["nodeSelector"]["disk"], &pod["priorityClassName"]), (&"ssd".into(), &"high".into()));
    assert_eq!(
        (&pod["serviceAccountName"], &pod["imagePullSecrets"][0]["name"]),
        (&"someone".into(), &"pull".into())
    );
    assert_eq!(of_kind(&all, "ServiceAccount")[0]["metadata"]["name"], "someone");
    for binding in of_kind(&all, "ClusterRoleBinding") {
        assert_eq!(binding["subjects"][0]["name"], "someone", "{binding}");
    }
    assert_eq!(of_kind(&all, "ValidatingWebhookConfiguration").len(), 0);
    let services: Vec<&Value> =
        of_kind(&all, "Service").iter().map(|service| &service["metadata"]["name"]).collect();
    assert_eq!(services, ["windlass-webhook"]);
    let refused = judge("helm").arg("template").arg(&chart).args(["--set", "replica=3"]).output().unwrap();
    assert!(
        !refused.status.success() && said(&refused).contains("'replica' not allowed"),
        "{}",
        said(&refused)
    );
}
