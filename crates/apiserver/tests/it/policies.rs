//! ValidatingAdmissionPolicies: rules about objects, in CEL, with the real server's words.

use serde_json::{Value, json};

use crate::server::{Answer, CONFIG_MAPS, Server};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn policy(spec: &Value) -> Value {
    let mut full = json!({"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}});
    for (field, value) in spec.as_object().unwrap() {
        full[field] = value.clone();
    }
    json!({"metadata": {"name": "p.example.com"}, "spec": full})
}

/// A server with one policy and one binding of it.
async fn server(spec: &Value, binding: &Value) -> Server {
    let server = Server::new();
    server.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy(spec)).await.expect_success();
    let mut bound = json!({"policyName": "p.example.com"});
    for (field, value) in binding.as_object().unwrap() {
        bound[field] = value.clone();
    }
    let bound = json!({"metadata": {"name": "b.example.com"}, "spec": bound});
    server.post(&format!("{GROUP}/validatingadmissionpolicybindings"), &bound).await.expect_success();
    server
}

async fn create(server: &Server) -> Answer {
    let object = json!({"metadata": {"name": "subject", "labels": {"app": "web"}}, "data": {"x": "1"}});
    server.post(CONFIG_MAPS, &object).await
}

fn deny() -> Value {
    json!({"validationActions": ["Deny"]})
}

const START: &str = "ValidatingAdmissionPolicy 'p.example.com' with binding 'b.example.com' denied request: ";

#[tokio::test]
async fn a_policy_denies_in_the_real_words() {
    let wrong = "object.data.x == '2'";
    let cases = [
        (json!({"validations": [{"expression": wrong}]}), 422, format!("failed expression: {wrong}")),
        (
            json!({"validations": [{"expression": wrong, "message": "x must be two"}]}),
            422,
            "x must be two".into(),
        ),
        (
            json!({"validations": [{"expression": wrong, "message": "x must be two", "reason": "Forbidden"}]}),
            403,
            "x must be two".into(),
        ),
        (
            json!({"validations": [{"expression": wrong,
                "messageExpression": "'x is ' + object.data.x + ' for ' + request.userInfo.username"}]}),
            422,
            "x is 1 for kubernetes-admin".into(),
        ),
        (
            json!({"validations": [{"expression": "object.data.nothing == '2'"}]}),
            422,
            "expression 'object.data.nothing == '2'' resulted in error: no such key: nothing".into(),
        ),
        (
            json!({"variables": [{"name": "y", "expression": "object.data.x"}],
                "validations": [{"expression": "variables.y == '2'", "messageExpression": "'y is ' + variables.y"}]}),
            422,
            "y is 1".into(),
        ),
        (
            json!({"validations": [{"expression": "namespaceObject.metadata.name == 'other'"}]}),
            422,
            "failed expression: namespaceObject.metadata.name == 'other'".into(),
        ),
        (
            json!({"validations": [{"expression": "false"}],
                "matchConditions": [{"name": "bad", "expression": "object.data.zzz == 'DELETE'"}]}),
            422,
            "expression 'object.data.zzz == 'DELETE'' resulted in error: no such key: zzz".into(),
        ),
    ];
    for (spec, status, message) in cases {
        let answer = create(&server(&spec, &deny()).await).await;
        let message = format!("{START}{message}");
        let reason = if status == 403 { "Forbidden" } else { "Invalid" };
        assert_eq!(
            answer.body,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": format!("configmaps \"subject\" is forbidden: {message}"), "reason": reason,
                "details": {"name": "subject", "kind": "configmaps", "causes": [{"message": message}]}, "code": status})
        );
    }
}

#[tokio::test]
async fn a_policy_that_is_not_meant_or_fails_open_lets_pass() {
    let never = json!([{"expression": "false"}]);
    let broken = json!([{"expression": "object.data.nothing == '2'"}]);
    let cases = [
        (json!({"validations": broken, "failurePolicy": "Ignore"}), deny()),
        (
            json!({"validations": never,
                "matchConditions": [{"name": "never", "expression": "request.operation == 'DELETE'"}]}),
            deny(),
        ),
        (json!({"validations": [{"expression": "oldObject == null"}]}), deny()),
        (
            json!({"validations": never}),
            json!({"validationActions": ["Deny"],
                "matchResources": {"objectSelector": {"matchLabels": {"app": "db"}}}}),
        ),
        (json!({"validations": never}), json!({"validationActions": ["Audit"]})),
    ];
    for (spec, binding) in cases {
        create(&server(&spec, &binding).await).await.expect_success();
    }
    let spec = json!({"validations": [{"expression": "object.data.x == '2'", "message": "x must be two"}]});
    let answer = create(&server(&spec, &json!({"validationActions": ["Warn", "Audit"]})).await).await;
    assert_eq!(
        answer.warnings,
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'p.example.com' with binding 'b.example.com': x \
          must be two\""
        ]
    );
    answer.expect_success();
}

#[tokio::test]
async fn parameters_come_from_the_object_that_a_binding_names() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [
        {"expression": "!has(object.data.x) || int(object.data.x) <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max"}]});
    let bound = |name: &str, action: &str| {
        json!({"validationActions": ["Deny"],
        "paramRef": {"name": name, "namespace": "default", "parameterNotFoundAction": action}})
    };
    let limited = server(&spec, &bound("limits", "Deny")).await;
    let missing = create(&limited).await.failed(422, "Invalid");
    let why =
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(missing, format!("configmaps \"subject\" is forbidden: {START}{why}"));
    create(&server(&spec, &bound("limits", "Allow")).await).await.expect_success();
    let free = server(&spec, &bound("limits", "Allow")).await;
    let limits = json!({"metadata": {"name": "limits"}, "data": {"max": "0"}});
    free.post(CONFIG_MAPS, &limits).await.expect_success();
    let message = create(&free).await.failed(422, "Invalid");
    assert_eq!(message, format!("configmaps \"subject\" is forbidden: {START}at most 0"));
}

#[tokio::test]
async fn policies_and_bindings_are_defaulted_and_checked() {
    let server = Server::new();
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let cases = [
        (
            json!({}),
            "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, \
            spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]",
        ),
        (
            json!({"validations": [{"expression": "true", "message": "a\nb"}]}),
            "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            json!({"validations": [{"expression": "true", "reason": "Nope"}]}),
            "spec.validations[0].reason: Unsupported value: \"Nope\": supported values: \"Forbidden\", \"Invalid\", \
             \"RequestEntityTooLarge\"",
        ),
    ];
    let start = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p.example.com\" is invalid: ";
    for (spec, why) in cases {
        assert_eq!(server.post(&path, &policy(&spec)).await.failed(422, "Invalid"), format!("{start}{why}"));
    }
    let broken = json!({"validations": [{"expression": "object."}]});
    let message = server.post(&path, &policy(&broken)).await.failed(422, "Invalid");
    assert!(
        message.contains("spec.validations[0].expression: Invalid value: \"object.\": compilation failed"),
        "{message}"
    );
    let made =
        server.post(&path, &policy(&json!({"validations": [{"expression": "true"}]}))).await.expect_success();
    assert_eq!(
        (&made["spec"]["failurePolicy"], &made["spec"]["matchConstraints"]["matchPolicy"]),
        (&json!("Fail"), &json!("Equivalent"))
    );
    let binding = |actions: Value| {
        json!({"metadata": {"name": "b.example.com"},
        "spec": {"policyName": "p.example.com", "validationActions": actions}})
    };
    let path = format!("{GROUP}/validatingadmissionpolicybindings");
    let start = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"b.example.com\" is invalid: \
        spec.validationActions: ";
    let none = server.post(&path, &binding(json!([]))).await.failed(422, "Invalid");
    assert_eq!(none, format!("{start}Required value"));
    let both = server.post(&path, &binding(json!(["Deny", "Warn"]))).await.failed(422, "Invalid");
    assert_eq!(
        both,
        format!(
            "{start}Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating \
        the same validation failure information in the API response and headers serves no purpose)"
        )
    );
}
