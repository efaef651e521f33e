//! The kinds that configure admission: webhooks, policies and their bindings.

mod client;
mod param;
mod policy;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::client::validate as validate_client;
use super::{Strategy, cells, small};
use crate::{
    error::Cause,
    registry::{names, resource::text as text_at, strategy::Generation},
    schema::cel::{Outcome, Scope},
};

/// MutatingWebhookConfiguration.
static MUTATING_WEBHOOKS: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: |object| default_webhooks(object, true),
    validate: |new, old| validate_webhooks(new, old, true),
    row: Some(webhooks),
    ..Strategy::PLAIN
};

/// ValidatingWebhookConfiguration.
static VALIDATING_WEBHOOKS: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: |object| default_webhooks(object, false),
    validate: |new, old| validate_webhooks(new, old, false),
    row: Some(webhooks),
    ..Strategy::PLAIN
};

/// MutatingAdmissionPolicy.
static MUTATING_POLICY: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: default_policy,
    validate: policy::mutating,
    row: Some(admission_policy),
    ..Strategy::PLAIN
};

/// ValidatingAdmissionPolicy.
static VALIDATING_POLICY: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: default_policy,
    validate: policy::validating,
    row: Some(admission_policy),
    ..Strategy::PLAIN
};

/// MutatingAdmissionPolicyBinding.
static MUTATING_BINDING: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: default_binding,
    validate: |new, _| {
        let mut causes = bound_policy(&new["spec"]).into_iter().collect();
        param::validate(&mut causes, &new["spec"]);
        causes
    },
    row: Some(policy_binding),
    ..Strategy::PLAIN
};

/// ValidatingAdmissionPolicyBinding.
static VALIDATING_BINDING: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: default_binding,
    validate: |new, _| validate_binding(&new["spec"]),
    row: Some(policy_binding),
    ..Strategy::PLAIN
};

/// The kinds of the group.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "mutatingadmissionpolicies" => &MUTATING_POLICY,
        "mutatingadmissionpolicybindings" => &MUTATING_BINDING,
        "mutatingwebhookconfigurations" => &MUTATING_WEBHOOKS,
        "validatingadmissionpolicies" => &VALIDATING_POLICY,
        "validatingadmissionpolicybindings" => &VALIDATING_BINDING,
        "validatingwebhookconfigurations" => &VALIDATING_WEBHOOKS,
        _ => &small::PLAIN,
    }
}

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().into_iter().flatten()
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    items(value, field).filter_map(Value::as_str).collect()
}

/// Fills in what a configuration of webhooks leaves out.
fn default_webhooks(object: &mut Value, mutating: bool) {
    let Some(hooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) else { return };
    for hook in hooks.iter_mut().filter_map(Value::as_object_mut) {
        let mut set = |field: &str, value: Value| {
            hook.entry(field).or_insert(value);
        };
        set("failurePolicy", json!("Fail"));
        set("matchPolicy", json!("Equivalent"));
        set("namespaceSelector", json!({}));
        set("objectSelector", json!({}));
        set("timeoutSeconds", json!(10));
        if mutating {
            set("reinvocationPolicy", json!("Never"));
        }
        let rules = hook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            rule.entry("scope").or_insert_with(|| json!("*"));
        }
        if let Some(service) = hook.get_mut("clientConfig").and_then(|config| config.get_mut("service"))
            && let Some(service) = service.as_object_mut()
        {
            service.entry("port").or_insert_with(|| json!(443));
        }
    }
}

fn default_policy(policy: &mut Value) {
    let Some(spec) = policy.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("failurePolicy").or_insert_with(|| json!("Fail"));
    if let Some(matches) = spec.get_mut("matchConstraints") {
        default_match(matches);
    }
}

fn default_binding(binding: &mut Value) {
    if let Some(matches) = binding.pointer_mut("/spec/matchResources") {
        default_match(matches);
    }
}

fn default_match(matches: &mut Value) {
    let Some(matches) = matches.as_object_mut() else { return };
    matches.entry("matchPolicy").or_insert_with(|| json!("Equivalent"));
    for selector in ["namespaceSelector", "objectSelector"] {
        matches.entry(selector).or_insert_with(|| json!({}));
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let rules = matches.get_mut(field).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            rule.entry("scope").or_insert_with(|| json!("*"));
        }
    }
}

/// A binding without a policy binds nothing.
fn bound_policy(spec: &Value) -> Option<Cause> {
    text(spec, "policyName").is_empty().then(|| Cause::required("spec.policyName", ""))
}

/// What is wrong with the binding of a policy.
fn validate_binding(spec: &Value) -> Vec<Cause> {
    let mut causes: Vec<Cause> = bound_policy(spec).into_iter().collect();
    param::validate(&mut causes, spec);
    let actions = texts(spec, "validationActions");
    if actions.is_empty() {
        causes.push(Cause::required("spec.validationActions", ""));
    }
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        let known = ["Audit", "Deny", "Warn"];
        if !known.contains(action) {
            causes.push(Cause::not_supported(format!("spec.validationActions[{index}]"), action, &known));
        }
        if !seen.insert(action) {
            causes.push(duplicate(&format!("spec.validationActions[{index}]"), action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        causes.push(Cause::invalid("spec.validationActions", &spec["validationActions"], why));
    }
    causes
}

/// What is wrong with a configuration of webhooks.
fn validate_webhooks(new: &Value, old: Option<&Value>, mutating: bool) -> Vec<Cause> {
    let stored = old.map(known_expressions).unwrap_or_default();
    let mut causes = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, hook) in items(new, "webhooks").enumerate() {
        let path = format!("webhooks[{index}]");
        validate_hook(hook, &path, mutating, &stored, &mut causes);
        let versions = &hook["admissionReviewVersions"];
        review_versions(versions, &format!("{path}.admissionReviewVersions"), &mut causes);
        let name = text(hook, "name");
        if !seen.insert(name) && !name.is_empty() {
            causes.push(duplicate(&format!("{path}.name"), name));
        }
    }
    causes
}

/// Expressions that were accepted once stay accepted.
fn known_expressions(object: &Value) -> BTreeSet<String> {
    items(object, "webhooks")
        .flat_map(|hook| items(hook, "matchConditions"))
        .map(|condition| text(condition, "expression").to_owned())
        .collect()
}

fn duplicate(field: &str, value: &str) -> Cause {
    Cause {
        reason: "FieldValueDuplicate".into(),
        message: format!("Duplicate value: {}", json!(value)),
        field: field.into(),
    }
}

fn one_of(hook: &Value, path: &str, field: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    if let Some(value) = hook[field].as_str().filter(|value| !allowed.contains(value)) {
        causes.push(Cause::not_supported(format!("{path}.{field}"), value, allowed));
    }
}

fn validate_hook(
    hook: &Value,
    path: &str,
    mutating: bool,
    stored: &BTreeSet<String>,
    causes: &mut Vec<Cause>,
) {
    let name = text(hook, "name");
    if let Some(cause) = qualified_name(&format!("{path}.name"), name) {
        causes.push(cause);
    }
    for (index, rule) in items(hook, "rules").enumerate() {
        validate_rule(rule, &format!("{path}.rules[{index}]"), causes);
    }
    one_of(hook, path, "failurePolicy", &["Fail", "Ignore"], causes);
    one_of(hook, path, "matchPolicy", &["Equivalent", "Exact"], causes);
    if hook["sideEffects"].is_null() {
        let why = "must specify one of None, NoneOnDryRun";
        causes.push(Cause::required(format!("{path}.sideEffects"), why));
    }
    one_of(hook, path, "sideEffects", &["None", "NoneOnDryRun"], causes);
    if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        causes.push(Cause::invalid(format!("{path}.timeoutSeconds"), &json!(seconds), why));
    }
    if mutating {
        one_of(hook, path, "reinvocationPolicy", &["IfNeeded", "Never"], causes);
    }
    client::validate(&hook["clientConfig"], &format!("{path}.clientConfig"), causes);
    validate_conditions(hook, &format!("{path}.matchConditions"), stored, &Scope::new(false), causes);
}

fn qualified_name(path: &str, name: &str) -> Option<Cause> {
    if name.is_empty() {
        return Some(Cause::required(path, ""));
    }
    if let Some(why) = names::subdomain_error(name) {
        return Some(Cause::invalid(path, &json!(name), why));
    }
    let few = name.split('.').count() < 3;
    let why = "should be a domain with at least three segments separated by dots";
    few.then(|| Cause::invalid(path, &json!(name), why))
}

fn wildcard_alone(rule: &Value, path: &str, field: &str, what: &str, causes: &mut Vec<Cause>) {
    let list = texts(rule, field);
    if list.is_empty() {
        causes.push(Cause::required(format!("{path}.{field}"), ""));
    } else if list.len() > 1 && list.contains(&"*") {
        let why = format!("if '*' is present, must not specify other {what}");
        causes.push(Cause::invalid(format!("{path}.{field}"), &rule[field], why));
    }
}

/// What is wrong with a rule; policies have rules too.
fn validate_rule(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    wildcard_alone(rule, path, "operations", "operations", causes);
    for (index, operation) in texts(rule, "operations").into_iter().enumerate() {
        if !OPERATIONS.contains(&operation) {
            causes.push(Cause::not_supported(format!("{path}.operations[{index}]"), operation, &OPERATIONS));
        }
    }
    wildcard_alone(rule, path, "apiGroups", "API groups", causes);
    wildcard_alone(rule, path, "apiVersions", "API versions", causes);
    for (index, version) in texts(rule, "apiVersions").into_iter().enumerate() {
        if version.is_empty() {
            causes.push(Cause::required(format!("{path}.apiVersions[{index}]"), ""));
        }
    }
    validate_resources(rule, &format!("{path}.resources"), causes);
    one_of(rule, path, "scope", &["*", "Cluster", "Namespaced"], causes);
}

fn validate_resources(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    let list = texts(rule, "resources");
    if list.is_empty() {
        causes.push(Cause::required(path, ""));
    }
    // Resources whose subresources are all named, and subresources that are named for all resources.
    let (mut whole, mut parts): (BTreeSet<&str>, BTreeSet<&str>) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, one) in list.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if one.is_empty() {
            causes.push(Cause::required(field, ""));
            continue;
        }
        let Some((resource, part)) = one.split_once('/') else {
            plain = *one != "*";
            continue;
        };
        if whole.contains(resource) {
            let why = format!("if '{resource}/*' is present, must not specify {one}");
            causes.push(Cause::invalid(field.clone(), &json!(one), why));
        }
        if parts.contains(part) {
            let why = format!("if '*/{part}' is present, must not specify {one}");
            causes.push(Cause::invalid(field, &json!(one), why));
        }
        if part == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            parts.insert(part);
        }
    }
    let mut refuse = |why: &str| causes.push(Cause::invalid(path, &rule["resources"], why));
    if list.len() > 1 && list.contains(&"*/*") {
        refuse("if '*/*' is present, must not specify other resources");
    }
    if plain && list.contains(&"*") {
        refuse("if '*' is present, must not specify other resources without subresources");
    }
}

/// Checks the versions of reviews that a webhook takes.
pub(super) fn review_versions(list: &Value, path: &str, causes: &mut Vec<Cause>) {
    let versions: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if versions.is_empty() {
        causes.push(Cause::required(path, "must specify one of v1, v1beta1"));
        return;
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if !seen.insert(version) {
            causes.push(Cause::invalid(field, &json!(version), "duplicate version"));
            continue;
        }
        if let Some(why) = names::dns_1035_error(version) {
            causes.push(Cause::invalid(field, &json!(version), why));
        }
    }
    if !versions.iter().any(|version| VERSIONS.contains(version)) {
        let why = "must include at least one of v1, v1beta1";
        causes.push(Cause::invalid(path, list, why));
    }
}

/// What is wrong with match conditions.
fn validate_conditions(
    owner: &Value,
    path: &str,
    stored: &BTreeSet<String>,
    scope: &Scope,
    causes: &mut Vec<Cause>,
) {
    let list: Vec<&Value> = items(owner, "matchConditions").collect();
    if list.len() > 64 {
        causes.push(Cause {
            reason: "FieldValueTooMany".into(),
            message: format!("Too many: {}: must have at most 64 items", list.len()),
            field: path.to_owned(),
        });
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, condition) in list.into_iter().enumerate() {
        let (name, expression) = (text(condition, "name"), text(condition, "expression"));
        let field = format!("{path}[{index}]");
        if expression.trim().is_empty() {
            causes.push(Cause::required(format!("{field}.expression"), ""));
        } else if !stored.contains(expression)
            && let Err(error) = scope.check(expression, Outcome::Truth)
        {
            causes.push(Cause::invalid(format!("{field}.expression"), &json!(expression), error));
        }
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else if let Some(why) = names::qualified_name_error(name) {
            causes.push(Cause::invalid(format!("{field}.name"), &json!(name), why));
        }
        if !seen.insert(name) && !name.is_empty() {
            causes.push(duplicate(&format!("{field}.name"), name));
        }
    }
}

fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![cells::name(object), json!(cells::list(object, "/webhooks").len()), cells::age(object, now)]
}

fn admission_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let param = object.pointer("/spec/paramKind").map_or("<unset>".to_owned(), |param| {
        format!("{}/{}", text_at(param, "/apiVersion"), text_at(param, "/kind"))
    });
    let rules = cells::list(object, "/spec/validations").len() + cells::list(object, "/spec/mutations").len();
    vec![cells::name(object), json!(rules), json!(param), cells::age(object, now)]
}

fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = object.pointer("/spec/paramRef").map_or("<unset>".to_owned(), |param| {
        let any = |text: &str| if text.is_empty() { "*".to_owned() } else { text.to_owned() };
        format!("{}/{}", any(text_at(param, "/namespace")), any(text_at(param, "/name")))
    });
    vec![
        cells::name(object),
        json!(text_at(object, "/spec/policyName")),
        json!(reference),
        cells::age(object, now),
    ]
}
