//! Ingresses and their classes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::{
        metadata::{NameRule, name_error},
        strategy::Generation,
    },
};

/// Ingress.
pub(super) static INGRESS: Strategy = Strategy {
    generation: Generation::SPEC,
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, &new["spec"]);
        causes
    },
    warnings: |ingress, _| warnings(ingress),
    row: Some(row),
    ..Strategy::PLAIN
};

/// IngressClass.
pub(super) static INGRESS_CLASS: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |class| {
        if let Some(parameters) = class.pointer_mut("/spec/parameters") {
            default(parameters, "scope", || json!("Cluster"));
        }
    },
    validate: |new, old| {
        let mut causes = Vec::new();
        validate_class(&mut causes, new, old);
        causes
    },
    row: Some(class_row),
    ..Strategy::PLAIN
};

fn validate(causes: &mut Causes, spec: &Value) {
    let rules = list(spec, "rules");
    if rules.is_empty() && spec.get("defaultBackend").is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, why));
    }
    if let Some(backend) = spec.get("defaultBackend") {
        self::backend(causes, backend, "spec.defaultBackend");
    }
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("spec.rules[{index}]");
        host(causes, text(rule, "/host"), at(&place, "host"));
        let paths = rule.pointer("/http/paths").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if rule.get("http").is_some() && paths.is_empty() {
            causes.push(Cause::required(format!("{place}.http.paths"), ""));
        }
        for (index, path) in paths.iter().enumerate() {
            ingress_path(causes, path, &format!("{place}.http.paths[{index}]"));
        }
    }
    let class = text(spec, "/ingressClassName");
    if !class.is_empty() {
        check::name(causes, class, "spec.ingressClassName", NameRule::Subdomain);
    }
}

fn host(causes: &mut Causes, host: &str, field: String) {
    if host.is_empty() {
        return;
    }
    if host.parse::<std::net::IpAddr>().is_ok() {
        causes.push(Cause::invalid(&*field, &json!(host), "must be a DNS name, not an IP address"));
    }
    let plain = host.strip_prefix("*.").unwrap_or(host);
    if host.contains('*') {
        if plain.contains('*') || name_error(plain, NameRule::Subdomain).is_some() {
            let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                       consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character \
                       (e.g. '*.example.com', regex used for validation is \
                       '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            causes.push(Cause::invalid(field, &json!(host), why));
        }
        return;
    }
    check::name(causes, host, field, NameRule::Subdomain);
}

fn ingress_path(causes: &mut Causes, path: &Value, place: &str) {
    let (kind, value) = (text(path, "/pathType"), text(path, "/path"));
    let field = at(place, "path");
    match kind {
        "" => causes.push(Cause::required(at(place, "pathType"), "pathType must be specified")),
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                causes.push(Cause::invalid(&*field, &json!(value), "must be an absolute path"));
            }
            if !value.is_empty() {
                for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| value.contains(**part)) {
                    let why = format!("must not contain '{part}'");
                    causes.push(Cause::invalid(&*field, &json!(value), why));
                }
            }
        }
        "ImplementationSpecific" => {
            if !value.is_empty() && !value.starts_with('/') {
                causes.push(Cause::invalid(field, &json!(value), "must be an absolute path"));
            }
        }
        other => {
            let allowed = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(Cause::not_supported(at(place, "pathType"), other, &allowed));
        }
    }
    backend(causes, &path["backend"], &at(place, "backend"));
}

fn backend(causes: &mut Causes, backend: &Value, place: &str) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service, resource) {
        (Some(_), Some(_)) => {
            let why = "cannot set both resource and service backends";
            causes.push(Cause::invalid(place, &json!(""), why));
        }
        (None, None) => {
            causes.push(Cause::invalid(place, &json!(""), "resource or service backend is required"));
        }
        (Some(service), None) => backend_service(causes, service, place),
        (None, Some(_)) => {}
    }
}

fn backend_service(causes: &mut Causes, service: &Value, place: &str) {
    let name = text(service, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{place}.service.name"), ""));
    } else {
        check::name(causes, name, format!("{place}.service.name"), NameRule::Label);
    }
    let number = service.pointer("/port/number").and_then(Value::as_i64).unwrap_or(0);
    match (text(service, "/port/name"), number) {
        ("", 0) => causes.push(Cause::required(place, "port name or number is required")),
        ("", number) if !(1..=65_535).contains(&number) => {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.service.port.number"), &json!(number), why));
        }
        ("", _) | (_, 0) => {}
        _ => causes.push(Cause::invalid(place, &json!(""), "cannot set both port name & port number")),
    }
}

fn warnings(ingress: &Value) -> Vec<String> {
    let class = "kubernetes.io/ingress.class";
    let old = ingress["metadata"]["annotations"].get(class).is_some();
    let told = || format!("annotation \"{class}\" is deprecated, please use 'spec.ingressClassName' instead");
    old.then(told).into_iter().collect()
}

fn validate_class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let controller = text(new, "/spec/controller");
    if let Some(old) = old {
        check::immutable(causes, &new["spec"], &old["spec"], "spec", "controller");
    }
    let prefixed = controller
        .split_once('/')
        .is_some_and(|(domain, path)| name_error(domain, NameRule::Subdomain).is_none() && !path.is_empty());
    if controller.is_empty() {
        causes.push(Cause::required("spec.controller", ""));
    } else if !prefixed {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(Cause::invalid("spec.controller", &json!(controller), why));
    }
    if let Some(parameters) = new.pointer("/spec/parameters") {
        class_parameters(causes, parameters);
    }
}

/// The object that holds what else a class says.
fn class_parameters(causes: &mut Causes, parameters: &Value) {
    let path = "spec.parameters";
    if let Some(group) = parameters.get("apiGroup").and_then(Value::as_str) {
        check::name(causes, group, at(path, "apiGroup"), NameRule::Subdomain);
    }
    for field in ["kind", "name"] {
        match text(parameters, &format!("/{field}")) {
            "" => causes.push(Cause::required(at(path, field), "")),
            name => check::name(causes, name, at(path, field), NameRule::PathSegment),
        }
    }
    let namespace = parameters.get("namespace").and_then(Value::as_str);
    match (parameters.get("scope").and_then(Value::as_str), namespace) {
        (None, _) => causes.push(Cause::required(at(path, "scope"), "")),
        (Some("Namespace"), None) => {
            let why = "`parameters.scope` is set to 'Namespace'";
            causes.push(Cause::required(at(path, "namespace"), why));
        }
        (Some("Namespace"), Some(name)) => check::name(causes, name, at(path, "namespace"), NameRule::Label),
        (Some("Cluster"), Some(_)) => {
            let why = "`parameters.scope` is set to 'Cluster'";
            causes.push(Cause::forbidden(at(path, "namespace"), why));
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => {
            causes.push(Cause::not_supported(at(path, "scope"), other, &["Cluster", "Namespace"]));
        }
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let rules = cells::list(object, "/spec/rules");
    let hosts: Vec<String> =
        rules.iter().map(|rule| text(rule, "/host").to_owned()).filter(|host| !host.is_empty()).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { cells::some_of(hosts, 3, ",") };
    let ports = if cells::list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        cells::name(object),
        cells::or_none(text(object, "/spec/ingressClassName")),
        json!(hosts),
        json!(cells::load_balancers(object).join(",")),
        json!(ports),
        cells::age(object, now),
    ]
}

fn class_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let default =
        text(object, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true";
    let shown = text(object, "/metadata/name");
    let parameters = object.pointer("/spec/parameters").map_or("<none>".to_owned(), |parameters| {
        let kind = match text(parameters, "/apiGroup") {
            "" => text(parameters, "/kind").to_owned(),
            group => format!("{}.{group}", text(parameters, "/kind")),
        };
        format!("{kind}/{}", text(parameters, "/name"))
    });
    vec![
        json!(if default { format!("{shown} (default)") } else { shown.to_owned() }),
        json!(text(object, "/spec/controller")),
        json!(parameters),
        cells::age(object, now),
    ]
}
