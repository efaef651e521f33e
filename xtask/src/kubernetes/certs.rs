//! The certificates of a testbed: one CA, a serving certificate for the API server and the kubelet, and a client
//! certificate for each user, so that every connection is verified and RBAC sees real names.
//!
//! Enter names and addresses; leave PEM texts.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use super::network::SERVICES;
use super::plan::NODE_NAME;

/// A certificate and its private key, as PEM.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Who a client certificate speaks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) name: &'static str,
    group: Option<&'static str>,
}

pub(super) const ADMIN: User = User { name: "testbed-admin", group: Some("system:masters") };
pub(super) const CONTROLLER_MANAGER: User = User { name: "system:kube-controller-manager", group: None };
pub(super) const SCHEDULER: User = User { name: "system:kube-scheduler", group: None };
pub(super) const PROXY: User = User { name: "system:kube-proxy", group: None };
pub(super) const KUBELET: User = User { name: "system:node:node1", group: Some("system:nodes") };
/// The API server as a client of the kubelet.
pub(super) const KUBELET_CLIENT: User =
    User { name: "kube-apiserver-kubelet-client", group: Some("system:masters") };

/// The CA of one testbed.
pub(super) struct Authority {
    pub(super) pair: Pair,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let key = KeyPair::generate().context("failed to generate the CA's key")?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(User { name: "windlass-testbed", group: None });
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).context("failed to sign the CA's certificate")?;
        let pair = Pair { certificate: certificate.pem(), key: key.serialize_pem() };
        Ok(Self { pair, issuer: Issuer::new(params, key) })
    }

    /// The API server's serving certificate, valid for every way to reach it.
    pub(super) fn api_server(&self, address: Ipv4Addr) -> Result<Pair> {
        let names = vec![
            address.to_string(),
            "127.0.0.1".to_owned(),
            SERVICES.address(1).to_string(),
            "localhost".to_owned(),
            "kubernetes".to_owned(),
            "kubernetes.default".to_owned(),
            "kubernetes.default.svc".to_owned(),
            "kubernetes.default.svc.cluster.local".to_owned(),
        ];
        self.serving("kube-apiserver", names)
    }

    /// The kubelet's serving certificate, which the API server verifies for logs and exec.
    pub(super) fn kubelet(&self, address: Ipv4Addr) -> Result<Pair> {
        self.serving(KUBELET.name, vec![address.to_string(), NODE_NAME.to_owned()])
    }

    fn serving(&self, name: &'static str, names: Vec<String>) -> Result<Pair> {
        let params =
            CertificateParams::new(names).context("failed to write a serving certificate's names")?;
        self.sign(params, User { name, group: None }, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(super) fn client(&self, user: User) -> Result<Pair> {
        self.sign(CertificateParams::default(), user, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        user: User,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Pair> {
        let key =
            KeyPair::generate().with_context(|| format!("failed to generate a key for {}", user.name))?;
        params.distinguished_name = subject(user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let certificate = params
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("failed to sign a certificate for {}", user.name))?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A key pair for signing service account tokens: the public half in `certificate`'s place.
pub(super) fn service_account_keys() -> Result<Pair> {
    let key = KeyPair::generate().context("failed to generate the service account key")?;
    Ok(Pair { certificate: key.public_key_pem(), key: key.serialize_pem() })
}

fn subject(user: User) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user.name);
    if let Some(group) = user.group {
        name.push(DnType::OrganizationName, group);
    }
    name
}
