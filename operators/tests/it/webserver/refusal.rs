//! What the API server does not let in.

use super::*;

/// Creates a WebServer with this spec, and returns the Status that refuses it.
async fn refusal(bed: &Bed, name: &str, spec: Value) -> Status {
    let body = json!({
        "apiVersion": "webserver.example.com/v1",
        "kind": "WebServer",
        "metadata": {"name": name},
        "spec": spec,
    });
    let api = Api::<kube::api::DynamicObject>::namespaced_with(
        bed.client.clone(),
        &bed.namespace,
        &windlass_operators::entry("webserver").unwrap().resource(),
    );
    let object = serde_json::from_value(body).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal of {spec}, got {other:?}"),
    }
}

pub(super) async fn an_invalid_spec_is_refused_in_kubernetes_words(bed: Bed) {
    let subject = r#"WebServer.webserver.example.com "web" is invalid: "#;
    // What stands behind errors that keep the CEL rules from being looked at.
    let unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was \
                     invalid; correct the existing errors to complete validation";
    let cases = [
        (
            json!({"replicas": 11}),
            "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"
                .into(),
        ),
        (
            json!({"replicas": 0}),
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1"
                .into(),
        ),
        (
            json!({"replicas": 1, "port": 70000}),
            "spec.port: Invalid value: 70000: spec.port in body should be less than or equal to 65535".into(),
        ),
        (
            json!({"replicas": 1, "image": ""}),
            r#"spec.image: Invalid value: "": spec.image in body should be at least 1 chars long"#.into(),
        ),
        (json!({}), format!("[spec.replicas: Required value, {unchecked}]")),
        (
            json!({"replicas": 1, "imagePullPolicy": "Sometimes"}),
            format!(
                r#"[spec.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never", {unchecked}]"#
            ),
        ),
    ];
    for (spec, expected) in cases {
        let status = refusal(&bed, "web", spec.clone()).await;
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{spec}");
        assert_eq!(status.message, format!("{subject}{expected}"), "{spec}");
    }
    assert_eq!(bed.count::<WebServer>().await, 0);
}

pub(super) async fn a_name_that_no_service_can_have_is_refused(bed: Bed) {
    for name in ["1web", "web.example", &"a".repeat(64)] {
        let status = refusal(&bed, name, json!({"replicas": 1})).await;
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{name}");
        assert!(status.message.contains("the name is also the Service's"), "{}", status.message);
    }
}
