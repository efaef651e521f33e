//! Requests for certificates: none for the masters, and who approves, signs or attests must be allowed to.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject};
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest,
    prelude::FromDer,
    x509::{AttributeTypeAndValue, X509Name},
};

use super::{forbidden, is, is_any};
use crate::{
    admission::{Attributes, Operation},
    auth::{MASTERS, rbac::Action},
    error::Result,
    registry::Registry,
};

const GROUP: &str = "certificates.k8s.io";

/// Whose certificates let their bearers in as whatever they say.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn is_request(request: &Attributes<'_>) -> bool {
    is_any(request, GROUP, "certificatesigningrequests")
}

/// Whether this room has a say in the request.
pub(super) fn concerns(request: &Attributes<'_>) -> bool {
    request.operation != Operation::Delete
        && (is_request(request) || is(request, GROUP, "clustertrustbundles"))
}

/// Refuses what the writer may not ask for, approve, sign or attest.
pub(super) fn check(
    registry: &Registry,
    request: &Attributes<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<()> {
    if !concerns(request) {
        return Ok(());
    }
    let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
    let refuse = |verb: &str, what: &str| {
        if may(registry, request, verb, signer) {
            return Ok(());
        }
        Err(forbidden(
            request,
            object,
            format!("user not permitted to {verb} {what} signerName \"{signer}\""),
        ))
    };
    if !is_request(request) {
        return if signer.is_empty() { Ok(()) } else { refuse("attest", "for") };
    }
    match (request.operation, request.target.subresource) {
        (Operation::Create, _) => subject(request, object, signer),
        (_, "approval") => refuse("approve", "requests with"),
        (_, "status") if signed(object, old) => refuse("sign", "requests with"),
        _ => Ok(()),
    }
}

/// Whether a status says something new about the certificate or the verdict.
fn signed(object: &Value, old: Option<&Value>) -> bool {
    let of = |object: &Value, field: &str| object["status"].get(field).cloned();
    ["certificate", "conditions"].iter().any(|field| of(object, field) != old.and_then(|old| of(old, field)))
}

/// Whether the writer may do this for a signer, by its name or for all of its domain.
fn may(registry: &Registry, request: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
    [Some(signer.to_owned()), domain].into_iter().flatten().any(|name| {
        let action = Action::Resource { verb, group: GROUP, resource: "signers", namespace: "", name: &name };
        registry.allows(request.user, action)
    })
}

/// Nobody becomes a master by a certificate.
fn subject(request: &Attributes<'_>, object: &Value, signer: &str) -> Result<()> {
    if signer != CLIENT_SIGNER {
        return Ok(());
    }
    let text = object["spec"]["request"].as_str().unwrap_or_default();
    let masters = STANDARD.decode(text).ok().and_then(|pem| is_for_masters(&pem));
    match masters {
        Some(false) => Ok(()),
        Some(true) => {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            Err(forbidden(request, object, why))
        }
        None => {
            Err(forbidden(request, object, "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"))
        }
    }
}

/// Whether the subject of a request is in the group of the masters; nothing if it cannot be read.
fn is_for_masters(pem: &[u8]) -> Option<bool> {
    let der = CertificateSigningRequestDer::from_pem_slice(pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
    Some(organizations(&request.certification_request_info.subject).any(|one| one == MASTERS))
}

fn organizations<'a>(subject: &'a X509Name<'_>) -> impl Iterator<Item = String> + use<'a> {
    subject.iter_organization().map(text_of)
}

/// The text of an attribute in whichever of X.509's alphabets it is written.
fn text_of(attribute: &AttributeTypeAndValue<'_>) -> String {
    const BMP: u32 = 30;
    let bytes = attribute.attr_value().data;
    if attribute.attr_value().tag().0 == BMP {
        let units: Vec<u16> = bytes
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte)))
            .collect();
        return String::from_utf16_lossy(&units);
    }
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(organizations: &[&str]) -> Vec<u8> {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let mut name = rcgen::DistinguishedName::new();
        name.push(rcgen::DnType::CommonName, "somebody");
        for organization in organizations {
            name.push(rcgen::DnType::OrganizationName, *organization);
        }
        parameters.distinguished_name = name;
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.serialize_request(&key).unwrap().pem().unwrap().into_bytes()
    }

    #[test]
    fn a_request_tells_whether_it_is_for_the_masters() {
        assert_eq!(is_for_masters(&request(&["system:masters"])), Some(true));
        assert_eq!(is_for_masters(&request(&["others"])), Some(false));
        assert_eq!(is_for_masters(&request(&[])), Some(false));
        assert_eq!(is_for_masters(b"nonsense"), None);
    }
}
