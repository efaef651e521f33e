//! What must be there in kinds that are stored and otherwise taken as they are.
//!
//! Nothing acts on these here; an object that the real server would refuse is refused all the same, because whoever may
//! not create it is told what is wrong with it first.

use serde_json::{Value, json};

use super::{
    Strategy,
    check::{Causes, list},
    text,
};
use crate::{
    error::Cause,
    registry::metadata::{qualified_name_errors, service_label_error, subdomain_error},
};

/// PodCertificateRequest.
pub(super) static POD_CERTIFICATE_REQUEST: Strategy =
    Strategy { validate: pod_certificate, ..Strategy::PLAIN };

/// DeviceTaintRule.
pub(super) static DEVICE_TAINT_RULE: Strategy = Strategy { validate: device_taint, ..Strategy::PLAIN };

/// `/spec/nodeName` as messages write it.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// A text that must be there.
fn present(causes: &mut Causes, object: &Value, pointer: &str, why: &str) {
    if text(object, pointer).is_empty() {
        causes.push(Cause::required(field(pointer), why));
    }
}

/// A name of an object that must be there.
fn named(causes: &mut Causes, object: &Value, pointer: &str) {
    let name = text(object, pointer);
    causes.extend(subdomain_error(name).map(|why| Cause::invalid(field(pointer), &json!(name), why)));
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// What is wrong with an APIService.
pub(super) fn api_service(new: &Value, _: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    let (name, group, version) =
        (text(new, "/metadata/name"), text(new, "/spec/group"), text(new, "/spec/version"));
    let wanted = format!("{version}.{group}");
    if name != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: \"{wanted}\"");
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        causes.push(Cause::required("spec.group", why));
    }
    causes
        .extend(service_label_error(version).map(|why| Cause::invalid("spec.version", &json!(version), why)));
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = number(new, &format!("/spec/{field}"));
        if value <= 0 || value > most {
            let why = format!("must be positive and less than {most}");
            causes.push(Cause::invalid(format!("spec.{field}"), &json!(value), why));
        }
    }
    causes
}

/// What is wrong with a CertificateSigningRequest.
pub(super) fn signing_request(new: &Value, _: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    if text(new, "/spec/request").is_empty() {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        causes.push(Cause::invalid("spec.request", &Value::Null, why));
    }
    if list(&new["spec"], "usages").is_empty() {
        causes.push(Cause::required("spec.usages", ""));
    }
    present(&mut causes, new, "/spec/signerName", "");
    causes
}

fn pod_certificate(new: &Value, _: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    present(&mut causes, new, "/spec/signerName", "");
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        named(&mut causes, new, &format!("/spec/{name}"));
        if text(new, &format!("/spec/{uid}")).is_empty() {
            causes.push(Cause::invalid(format!("spec.{uid}"), &json!(""), "must not be empty"));
        }
    }
    let has = |field: &str| new["spec"].get(field).is_some_and(|value| !value.is_null());
    let key = has("pkixPublicKey") && has("proofOfPossession");
    if has("stubPKCS10Request") == key {
        let message = "Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: message.into(),
            field: "spec".into(),
        });
    }
    causes
}

fn device_taint(new: &Value, _: Option<&Value>) -> Causes {
    let key = text(new, "/spec/taint/key");
    let wrong = qualified_name_errors(key).into_iter();
    let mut causes: Causes = wrong.map(|why| Cause::invalid("spec.taint.key", &json!(key), why)).collect();
    present(&mut causes, new, "/spec/taint/effect", "");
    causes
}
