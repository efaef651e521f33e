//! What a bundle says. That the Operator Framework accepts it is shown with its own validators: `just packaging`.

use serde_json::json;

use super::*;
use crate::shop::{converting, facts, sample, shop_with};

fn made(objects: &Objects, options: &Options) -> (Bundle, Value) {
    let samples = [sample("v1"), json!({"apiVersion": "other.com/v1", "kind": "Other"})];
    let bundle = bundle(&facts("1.2.0"), objects, &samples, options).unwrap();
    let text = bundle.files.get("bundle/manifests/shop.clusterserviceversion.yaml").unwrap();
    let csv = serde_saphyr::from_str(text).unwrap();
    (bundle, csv)
}

#[test]
fn rules_are_split_by_where_they_hold() {
    let (_, csv) = made(&shop_with(&[]), &Options::default());
    let install = &csv["spec"]["install"]["spec"];
    assert_eq!(install["permissions"][0]["rules"][0]["resources"], json!(["deployments"]));
    let wide = install["clusterPermissions"][0]["rules"].as_array().unwrap();
    assert_eq!((wide.len(), &wide[0]["resources"]), (1, &json!(["tokenreviews"])));
    assert_eq!(install["permissions"][0]["serviceAccountName"], "shop");
}

#[test]
fn an_operator_that_can_be_restricted_says_so_and_learns_its_namespaces() {
    let (_, csv) = made(&shop_with(&[]), &Options::default());
    let modes = csv["spec"]["installModes"].as_array().unwrap();
    assert!(modes.iter().all(|mode| mode["supported"] == true), "{modes:?}");
    let container =
        &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"][0]["name"], "WATCH_NAMESPACE");
    assert_eq!(container["args"], json!(["run", "--metrics-bind-address=:8443"]));
    assert!(container.get("volumeMounts").is_none(), "OLM mounts the certificate: {container}");
}

#[test]
fn a_conversion_is_for_all_namespaces() {
    let (bundle, csv) = made(&converting(), &Options::default());
    let supported: Vec<&Value> = csv["spec"]["installModes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mode| mode["supported"] == true)
        .collect();
    assert_eq!(supported, [&json!({"type": "AllNamespaces", "supported": true})]);
    let webhook = &csv["spec"]["webhookdefinitions"][0];
    assert_eq!(
        (&webhook["type"], &webhook["conversionCRDs"]),
        (&json!("ConversionWebhook"), &json!(["carts.shop.com"]))
    );
    assert_eq!((&webhook["containerPort"], &webhook["targetPort"]), (&json!(443), &json!(9443)));
    let crd = bundle.files.get("bundle/manifests/shop.com_carts.yaml").unwrap();
    assert!(crd.contains("name: shop-service"), "{crd}");
    assert_eq!(bundle.remarks, ["Cart v1beta1 has no sample in config/samples: consoles show none"]);
}

#[test]
fn kinds_are_described_from_their_schema() {
    let (_, csv) = made(&shop_with(&[]), &Options::default());
    let owned = &csv["spec"]["customresourcedefinitions"]["owned"][0];
    assert_eq!(
        (&owned["displayName"], &owned["description"]),
        (&json!("Cart"), &json!("A cart of {{ things }}."))
    );
    let fields: Vec<(&str, &str)> = owned["specDescriptors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| (text(field, "/path"), text(field, "/x-descriptors/0").rsplit("ui:").next().unwrap()))
        .collect();
    assert_eq!(
        fields,
        [("image", "text"), ("mode", "select:Fast"), ("size", "podCount"), ("storage.class", "text")]
    );
    assert_eq!(
        owned["statusDescriptors"][0]["x-descriptors"][0],
        "urn:alm:descriptor:io.kubernetes.conditions"
    );
    assert_eq!(
        owned["resources"],
        json!([{"kind": "Deployment", "name": "deployments.apps", "version": "v1"}])
    );
    let examples: Vec<Value> =
        serde_json::from_str(text(&csv, "/metadata/annotations/alm-examples")).unwrap();
    assert_eq!(examples, [sample("v1")]);
    let images: Vec<&str> =
        csv["spec"]["relatedImages"].as_array().unwrap().iter().map(|image| text(image, "/image")).collect();
    assert_eq!(images, ["cart:1", "shop:v1.0.0"]);
}

#[test]
fn the_way_from_older_versions_is_in_it() {
    let options = Options {
        channels: vec!["stable".into(), "candidate".into()],
        replaces: Some("shop.v1.1.0".into()),
        skips: vec!["shop.v1.0.0".into()],
        skip_range: Some("<1.2.0".into()),
        ..Options::default()
    };
    let (bundle, csv) = made(&shop_with(&[]), &options);
    assert_eq!(
        (&csv["spec"]["replaces"], &csv["spec"]["skips"][0]),
        (&json!("shop.v1.1.0"), &json!("shop.v1.0.0"))
    );
    assert_eq!(csv["metadata"]["annotations"]["olm.skipRange"], "<1.2.0");
    let dockerfile = bundle.files.get("bundle.Dockerfile").unwrap();
    assert!(dockerfile.contains("bundle.channels.v1=stable,candidate\n"), "{dockerfile}");
    assert!(dockerfile.contains("bundle.channel.default.v1=stable\n"), "{dockerfile}");
}

#[test]
fn what_olm_takes_in_no_bundle_is_named() {
    let policy =
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "shop"}});
    let (bundle, _) = made(&shop_with(&[policy]), &Options::default());
    assert_eq!(
        bundle.remarks,
        ["NetworkPolicy shop is not in the bundle: OLM accepts no such object in one"]
    );
    let paths: Vec<&str> =
        bundle.files.iter().map(|(path, _)| path).filter(|path| path.contains("manifests")).collect();
    let expected = [
        "bundle/manifests/shop-cart-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml",
        "bundle/manifests/shop-metrics_v1_service.yaml",
        "bundle/manifests/shop.clusterserviceversion.yaml",
        "bundle/manifests/shop.com_carts.yaml",
    ];
    assert_eq!(paths, expected);
    let service = bundle.files.get("bundle/manifests/shop-metrics_v1_service.yaml").unwrap();
    assert!(!service.contains("namespace"), "{service}");
}
