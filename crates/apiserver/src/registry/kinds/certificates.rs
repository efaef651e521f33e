//! Requests for certificates and what they are trusted by: who asks is who is logged in, approval is a write of its
//! own, and a trust bundle holds certificates and bears its signer's name.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rustls::pki_types::{
    CertificateDer,
    pem::{PemObject, SectionKind},
};
use serde_json::{Value, json};

use super::{Strategy, cells, check::Causes, copy_top, format, required, text};
use crate::{
    auth::Identity,
    environment::Environment,
    error::Cause,
    registry::{
        metadata::{NameRule, name_error},
        strategy::{Part, Selectable},
    },
};

/// CertificateSigningRequest.
pub(super) static SIGNING_REQUEST: Strategy = Strategy {
    selectable: &[Selectable::new("spec.signerName", "/spec/signerName")],
    prepare_create: identify,
    validate: required::signing_request,
    // A request cannot be changed once it is made.
    prepare_update: |new, old| copy_top(old, new, "spec"),
    // What is new in a status gets its time.
    prepare_status: stamp_conditions,
    parts: &[Part { name: "approval", prepare: Some(approve), validate: None, raises_generation: true }],
    row: Some(row),
    ..Strategy::PLAIN
};

/// ClusterTrustBundle.
pub(super) static TRUST_BUNDLE: Strategy = Strategy {
    unconditional_update: false,
    // A bundle's name is checked together with its signer's.
    name_rule: NameRule::PathSegment,
    validate: validate_bundle,
    ..Strategy::PLAIN
};

/// The longest trust bundle.
const LONGEST_BUNDLE: usize = 1 << 20;

/// Says in a new request for a certificate who asks for it, whatever its author wrote.
fn identify(object: &mut Value, user: &Identity) {
    if !object["spec"].is_object() {
        return;
    }
    let spec = &mut object["spec"];
    for field in ["username", "uid", "groups", "extra"] {
        spec.as_object_mut().map(|spec| spec.remove(field));
    }
    for (field, value) in [("username", &user.name), ("uid", &user.uid)] {
        if !value.is_empty() {
            spec[field] = json!(value);
        }
    }
    if !user.groups.is_empty() {
        spec["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        spec["extra"] = json!(user.extra);
    }
}

/// An approval changes the conditions and nothing else of the status.
fn approve(new: &mut Value, old: &Value, environment: &Environment) {
    copy_top(old, new, "spec");
    let conditions = new.pointer("/status/conditions").cloned();
    copy_top(old, new, "status");
    if let Some(conditions) = conditions {
        new["status"]["conditions"] = conditions;
    }
    stamp_conditions(new, old, environment);
}

fn stamp_conditions(new: &mut Value, old: &Value, environment: &Environment) {
    let now = environment.now_text();
    let before = old.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(conditions) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else {
        return;
    };
    for condition in conditions {
        if text(condition, "/lastUpdateTime").is_empty() {
            condition["lastUpdateTime"] = json!(now);
        }
        if text(condition, "/lastTransitionTime").is_empty() {
            let same = before
                .iter()
                .find(|old| old["type"] == condition["type"] && old["status"] == condition["status"]);
            let time = same.map(|same| text(same, "/lastTransitionTime")).filter(|time| !time.is_empty());
            condition["lastTransitionTime"] = json!(time.unwrap_or(&now));
        }
    }
}

fn validate_bundle(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    bundle_name(&mut causes, new);
    let changed = old.is_none_or(|old| old["spec"]["trustBundle"] != new["spec"]["trustBundle"]);
    if changed {
        trust_anchors(&mut causes, text(new, "/spec/trustBundle"));
    }
    if let Some(old) = old
        && text(old, "/spec/signerName") != text(new, "/spec/signerName")
    {
        causes.push(Cause::invalid("spec.signerName", &new["spec"]["signerName"], "field is immutable"));
    }
    causes
}

/// A bundle of a signer is named after it; any other has no colon in its name.
fn bundle_name(causes: &mut Causes, bundle: &Value) {
    let (name, signer) = (text(bundle, "/metadata/name"), text(bundle, "/spec/signerName"));
    let prefix = format!("{}:", signer.replace('/', ":"));
    let why = if signer.is_empty() && name.contains(':') {
        Some("ClusterTrustBundle without signer name must not have \":\" in its name".to_owned())
    } else if signer.is_empty() {
        name_error(name, NameRule::Subdomain)
    } else {
        match name.strip_prefix(&prefix) {
            Some(rest) => name_error(rest, NameRule::Subdomain),
            None => {
                Some(format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"))
            }
        }
    };
    if let Some(why) = why {
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
}

fn trust_anchors(causes: &mut Causes, bundle: &str) {
    let mut refuse =
        |why: String| causes.push(Cause::invalid("spec.trustBundle", &json!("<value omitted>"), why));
    if bundle.len() > LONGEST_BUNDLE {
        refuse(format!("may not be more than {LONGEST_BUNDLE} bytes"));
        return;
    }
    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut well = true;
    let blocks = <(SectionKind, Vec<u8>)>::pem_slice_iter(bundle.as_bytes());
    for (index, (kind, der)) in blocks.map_while(Result::ok).enumerate() {
        if kind != SectionKind::Certificate {
            refuse(format!("entry {index} has bad block type: {}", block_type(kind)));
            well = false;
        } else if rustls::RootCertStore::empty().add(CertificateDer::from(der.clone())).is_err() {
            refuse(format!("entry {index} does not parse as X.509"));
            well = false;
        } else if let Some(first) = seen.get(&der) {
            refuse(format!("duplicate trust anchor (indices [{first} {index}])"));
        }
        seen.entry(der).or_insert(index);
    }
    if well && seen.is_empty() {
        refuse("at least one trust anchor must be provided".to_owned());
    }
}

/// What a PEM block calls itself.
fn block_type(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::PublicKey => "PUBLIC KEY",
        SectionKind::PrivateKey => "PRIVATE KEY",
        SectionKind::RsaPrivateKey => "RSA PRIVATE KEY",
        SectionKind::EcPrivateKey => "EC PRIVATE KEY",
        SectionKind::Crl => "X509 CRL",
        SectionKind::Csr => "CERTIFICATE REQUEST",
        _ => "unknown",
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let has =
        |kind: &str| cells::list(object, "/status/conditions").iter().any(|one| text(one, "/type") == kind);
    let mut condition = match () {
        () if has("Denied") => "Denied".to_owned(),
        () if has("Approved") => "Approved".to_owned(),
        () => "Pending".to_owned(),
    };
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let wanted = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        cells::name(object),
        cells::age(object, now),
        cells::or_none(text(object, "/spec/signerName")),
        json!(text(object, "/spec/username")),
        json!(wanted.map_or("<none>".to_owned(), format::duration)),
        json!(condition),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_problem(name: &str, signer: &str) -> Option<String> {
        let mut causes = Vec::new();
        bundle_name(&mut causes, &json!({"metadata": {"name": name}, "spec": {"signerName": signer}}));
        causes.pop().map(|cause| cause.message)
    }

    #[test]
    fn a_bundle_bears_the_name_of_its_signer() {
        assert_eq!(name_problem("example.com:a:one", "example.com/a"), None);
        assert_eq!(name_problem("one", ""), None);
        assert!(name_problem("one", "example.com/a").unwrap().ends_with("named with prefix example.com:a:"));
        assert!(name_problem("a:b", "").unwrap().contains("must not have"));
    }

    #[test]
    fn a_bundle_holds_certificates() {
        let certificate = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
        let problems = |text: &str| {
            let mut causes = Vec::new();
            trust_anchors(&mut causes, text);
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        assert!(problems(&certificate).is_empty());
        assert!(problems("")[0].ends_with("at least one trust anchor must be provided"));
        assert!(
            problems(&format!("{certificate}{certificate}"))[0]
                .ends_with("duplicate trust anchor (indices [0 1])")
        );
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(problems(broken)[0].ends_with("entry 0 does not parse as X.509"));
    }
}
