//! The cluster's own certificate authority: what the server proves itself with, and its clients too.

use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};

/// How long certificates live. They are made anew with every cluster, so this only has to outlive one.
const DAYS: i64 = 365;

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key or the certificate could not be generated.
    #[error("failed to generate a certificate for {subject}")]
    Generate {
        /// Whose certificate.
        subject: String,
        /// What the generator said.
        #[source]
        source: rcgen::Error,
    },
    /// A name or an address cannot stand in a certificate.
    #[error("failed to put {name:?} into a certificate: it is neither an address nor a DNS name")]
    Name {
        /// The name.
        name: String,
    },
}

/// A certificate and its private key, as PEM.
#[derive(Clone)]
pub struct Credentials {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must never reach a log.
        formatter.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// A certificate authority that lives as long as its cluster.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    now: Timestamp,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority, valid from `now` on.
    pub fn new(now: Timestamp) -> Result<Self, Error> {
        let failed = |source| Error::Generate { subject: "the authority".into(), source };
        let mut params = params("windlass-ca", [], now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        Ok(Self { issuer, now })
    }

    /// The authority's certificate, as PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server that is reached under these names and addresses.
    pub fn server(&self, names: &[String]) -> Result<Credentials, Error> {
        let mut params = params("kube-apiserver", [], self.now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names =
            names.iter().map(|name| alternative_name(name)).collect::<Result<_, _>>()?;
        self.sign("the API server", params)
    }

    /// A certificate for a user and its groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Credentials, Error> {
        let mut params = params(user, groups.iter().copied(), self.now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(user, params)
    }

    fn sign(&self, subject: &str, mut params: CertificateParams) -> Result<Credentials, Error> {
        let failed = |source| Error::Generate { subject: subject.into(), source };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Credentials { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn alternative_name(name: &str) -> Result<SanType, Error> {
    if let Ok(address) = name.parse() {
        return Ok(SanType::IpAddress(address));
    }
    let dns = name.try_into().map_err(|_| Error::Name { name: name.to_owned() })?;
    Ok(SanType::DnsName(dns))
}

fn params<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    for group in groups {
        subject.push(DnType::OrganizationName, group);
    }
    params.distinguished_name = subject;
    // Clocks differ a little between machines.
    params.not_before = date(now.saturating_sub(1.hour()).unwrap_or(now));
    params.not_after = date(now.saturating_add((24 * DAYS).hours()).unwrap_or(now));
    params
}

fn date(timestamp: Timestamp) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(timestamp.as_second())
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
}
