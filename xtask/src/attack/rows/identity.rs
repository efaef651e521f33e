//! Who asks: names that cannot be read, and certificates that would open everything.

use anyhow::{Result, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;

use super::super::{Stage, objects};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A name that is not understood must not make somebody else of the one who asks.
pub(super) async fn other_letters(stage: &mut Stage) -> Result<String> {
    let api = stage.server.api().clone();
    let body = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let cases: [(&'static str, &[u8]); 5] = [
        ("impersonate-user", "jürgen".as_bytes()),
        ("impersonate-user", b"\xff\xfe"),
        ("impersonate-user", b""),
        ("impersonate-group", "größe".as_bytes()),
        ("impersonate-uid", "ü".as_bytes()),
    ];
    for (name, value) in cases {
        let mut client = api.admin().await?;
        client.header(name, value)?;
        let answer = client.post(REVIEWS, &body).await?;
        if answer.status < 300 {
            let user = answer.value()?["status"]["userInfo"]["username"].clone();
            ensure!(user == json!(String::from_utf8_lossy(value)), "{name}: {value:?} asks as {user}");
        }
    }
    Ok(format!("{} headers: refused, or taken by their own name", cases.len()))
}

/// A request for a certificate of `system:masters` must not end in one.
pub(super) async fn masters(stage: &mut Stage) -> Result<String> {
    let api = stage.server.api().clone();
    let mut admin = api.admin().await?;
    let rules = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
        "verbs": ["*"]}]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    admin.post(roles, &objects::cluster_role("requests", &rules)).await?.succeed()?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.post(bindings, &objects::binding("requests", "malcolm")).await?.succeed()?;
    let key = KeyPair::generate()?;
    let mut client = api.user("malcolm").await?;
    let request = |name: &str, organization: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "mallory");
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let pem = params.serialize_request(&key)?.pem()?;
        anyhow::Ok(json!({"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1",
            "metadata": {"name": name}, "spec": {"request": STANDARD.encode(pem),
                "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}))
    };
    let answer = client.post(REQUESTS, &request("all-powerful", "system:masters")?).await?;
    ensure!(answer.status >= 400, "a request for system:masters was accepted with {}", answer.status);
    let asked = client.post(REQUESTS, &request("harmless", "people")?).await?.succeed()?;
    let mut object = asked.value()?;
    object["status"] =
        json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Me", "message": "me"}]});
    let approved = client
        .send("PUT", &format!("{REQUESTS}/harmless/approval"), "application/json", object.to_string())
        .await?;
    if approved.status != 403 {
        bail!("an approval without the right to approve for the signer got {}", approved.status);
    }
    let stored = admin.get(&format!("{REQUESTS}/harmless")).await?.succeed()?.value()?;
    let conditions =
        stored.pointer("/status/conditions").and_then(|list| list.as_array()).map_or(0, Vec::len);
    ensure!(conditions == 0, "the request is approved all the same");
    Ok(format!("{}; approval {}", answer.status, approved.status))
}
