//! What a chart says. That Helm renders it as it should is shown with Helm itself: `just packaging`.

use serde_json::json;

use super::*;
use crate::shop::{facts, shop_with};

fn shop() -> Files {
    chart(&facts("1.2.0"), &shop_with(&[])).unwrap()
}

#[test]
fn the_same_objects_give_the_same_files() {
    assert_eq!(shop(), shop());
}

#[test]
fn crds_are_upgraded_with_the_chart_and_kept_without_it() {
    let files = shop();
    let crd = files.get("templates/crds/carts.shop.com.yaml").unwrap();
    assert!(crd.starts_with("{{- if and $.Values.crds.install $.Values.kinds.cart }}\n"), "{crd}");
    assert!(crd.contains("helm.sh/resource-policy: keep"), "{crd}");
    assert!(crd.contains("A cart of {{ \"{{\" }} things }}."), "{crd}");
    assert!(!files.iter().any(|(path, _)| path.starts_with("crds/")));
}

#[test]
fn roles_follow_the_namespaces_that_are_watched() {
    let files = shop();
    let wide = files.get("templates/clusterrole.yaml").unwrap();
    assert!(wide.contains("{{- if not $.Values.watchNamespaces }}"), "{wide}");
    assert!(wide.contains("{{- if $.Values.kinds.cart }}\n- apiGroups:\n  - shop.com"), "{wide}");
    let watched = files.get("templates/role-watched.yaml").unwrap();
    assert!(watched.contains("{{- range $namespace := $.Values.watchNamespaces }}\n---\n"), "{watched}");
    assert!(watched.contains("namespace: {{ $namespace | quote }}"), "{watched}");
    let deployment = files.get("templates/deployment.yaml").unwrap();
    assert!(deployment.contains("- --watch-namespaces={{ join \",\" . }}"), "{deployment}");
    assert!(!deployment.contains(WATCHED_NAMESPACE), "{deployment}");
}

#[test]
fn every_object_has_a_file_and_unknown_ones_too() {
    let more = [
        json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "shop"}, "spec": {"of": "shop"}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "shop", "namespace": crate::RELEASE_NAMESPACE}}),
    ];
    let files = chart(&facts("1.2.0"), &shop_with(&more)).unwrap();
    assert_eq!(files.get("templates/widget.yaml").unwrap().lines().next(), Some("apiVersion: v1"));
    let budget = files.get("templates/poddisruptionbudget.yaml").unwrap();
    assert!(budget.starts_with("{{- if $.Values.podDisruptionBudget.create }}\n"), "{budget}");
    let values = files.get("values.yaml").unwrap();
    assert!(values.contains("podDisruptionBudget:\n") && values.contains("  create: true"), "{values}");
    assert!(!shop().get("values.yaml").unwrap().contains("podDisruptionBudget"));
}

#[test]
fn cert_manager_is_a_choice_that_adds_what_it_needs() {
    let (plain, mut issued) = (shop_with(&[]), shop_with(&[]).all().to_vec());
    issued.push(json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "shop-serving", "namespace": crate::RELEASE_NAMESPACE},
    }));
    for object in &mut issued {
        match kind(object) {
            "CustomResourceDefinition" => {
                object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
            }
            "Deployment" => {
                let pod = &mut object["spec"]["template"]["spec"];
                pod["containers"][0]["args"].as_array_mut().unwrap().push("--webhook-cert-path=/x".into());
                pod["hostAliases"] = json!([{"ip": "::1"}]);
            }
            _ => {}
        }
    }
    let files = chart(&facts("1.2.0"), &plain.clone().cert_managed(issued.clone(), false)).unwrap();
    let has = |path: &str, text: &str| {
        let found = files.get(path).unwrap();
        assert!(found.contains(text), "{text} in {found}");
    };
    let when = "{{- if $.Values.webhooks.certManager }}\n";
    has("templates/certificate-serving.yaml", when);
    has(
        "templates/crds/carts.shop.com.yaml",
        &format!("    {when}    cert-manager.io/inject-ca-from: a/b\n    {{{{- end }}}}"),
    );
    has(
        "templates/deployment.yaml",
        &format!("        {when}        - --webhook-cert-path=/x\n        {{{{- end }}}}"),
    );
    has(
        "templates/deployment.yaml",
        &format!("      {when}      hostAliases:\n      - ip: \"::1\"\n      {{{{- end }}}}"),
    );
    has("values.yaml", "  certManager: false");
    let usual = chart(&facts("1.2.0"), &plain.clone().cert_managed(issued, true)).unwrap();
    assert!(usual.get("values.yaml").unwrap().contains("  certManager: true"));
    // A change that is no addition is not guessed at.
    let mut odd = plain.all().to_vec();
    odd.push(json!({"kind": "Certificate", "metadata": {"name": "c"}}));
    odd.iter_mut().find(|object| kind(object) == "Deployment").unwrap()["spec"]["replicas"] = json!(7);
    let error = chart(&facts("1.2.0"), &plain.cert_managed(odd, false)).unwrap_err();
    assert!(error.to_string().contains("with cert-manager 1 becomes 7"), "{error}");
}

#[test]
fn nothing_says_the_names_that_stand_for_others() {
    for (path, text) in shop().iter() {
        let named = text.contains(crate::RELEASE_NAMESPACE) || text.contains(WATCHED_NAMESPACE);
        assert!(!named, "{path}: {text}");
    }
}

#[test]
fn an_operator_that_says_its_namespaces_itself_cannot_be_told_others() {
    let objects = Objects::new(shop_with(&[]).all().to_vec()).unwrap();
    let files = chart(&facts("1.2.0"), &objects).unwrap();
    let schema: Value = serde_json::from_str(files.get("values.schema.json").unwrap()).unwrap();
    assert_eq!(schema["properties"]["watchNamespaces"]["maxItems"], 0);
    assert!(files.get("templates/role-watched.yaml").is_none());
}

#[test]
fn objects_without_a_deployment_are_refused() {
    let error = Objects::new(vec![json!({"kind": "Namespace"})]).unwrap_err();
    assert!(error.to_string().contains("Deployment") && error.hint().is_some(), "{error}");
}

#[test]
fn what_not_every_cluster_has_a_use_for_is_off() {
    let object = |kind: &str| json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "shop"}});
    let objects =
        shop_with(&[]).optional(vec![object("ServiceMonitor"), object("NetworkPolicy"), object("Widget")]);
    let files = chart(&facts("1.2.0"), &objects).unwrap();
    let values: Value = serde_saphyr::from_str(files.get("values.yaml").unwrap()).unwrap();
    assert_eq!(
        (&values["metrics"]["enabled"], &values["metrics"]["serviceMonitor"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&values["networkPolicy"]["create"], &values["optional"]["widget"]),
        (&json!(false), &json!(false))
    );
    let monitor = files.get("templates/servicemonitor.yaml").unwrap();
    assert!(
        monitor.starts_with("{{- if and $.Values.metrics.enabled $.Values.metrics.serviceMonitor }}"),
        "{monitor}"
    );
}
