//! The cluster's own certificate authority: what the server proves itself with, and its clients too.

use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use x509_parser::pem::parse_x509_pem;

use crate::data_directory::{self, DataDirectory};

/// How long certificates live. Servers and administrators get new ones at every start.
const DAYS: i64 = 365;

/// How long the authority itself lives: kept in a data directory, it is never made anew.
const AUTHORITY_DAYS: i64 = 10 * 365;

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
    /// The data directory cannot keep the authority.
    #[error(transparent)]
    Directory(#[from] data_directory::Error),
    /// What the data directory holds is no authority.
    #[error(
        "the authority in {directory}/keys cannot be used: {why}. Restore ca.key and ca.crt from a copy; or remove both \
         for a new authority, which no kubeconfig from before will trust"
    )]
    Kept {
        /// The data directory.
        directory: String,
        /// What is wrong with it.
        why: String,
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
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
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
        let key = KeyPair::generate().map_err(generating)?;
        let certificate = self_signed(&key, now)?;
        Ok(Self { issuer: Issuer::new(authority_params(now), key), certificate, now })
    }

    /// The authority of a data directory: the same at every start, so that old kubeconfigs go on working.
    pub fn kept(directory: &DataDirectory, now: Timestamp) -> Result<Self, Error> {
        let bad = |why: &dyn std::fmt::Display| Error::Kept {
            directory: directory.path().display().to_string(),
            why: why.to_string(),
        };
        let key: String = directory.keep("ca.key", || -> Result<_, Error> {
            Ok(KeyPair::generate().map_err(generating)?.serialize_pem())
        })?;
        // What the parser says may quote the key.
        let key = KeyPair::from_pem(&key).map_err(|_| bad(&"ca.key is no private key"))?;
        let certificate = directory.keep("ca.crt", || self_signed(&key, now))?;
        let (_, pem) =
            parse_x509_pem(certificate.as_bytes()).map_err(|_| bad(&"ca.crt is no certificate"))?;
        let parsed = pem.parse_x509().map_err(|_| bad(&"ca.crt is no certificate"))?;
        if parsed.public_key().subject_public_key.data != key.der_bytes() {
            return Err(bad(&"ca.crt does not belong to ca.key"));
        }
        if parsed.validity().not_after.timestamp() < now.as_second() {
            return Err(bad(&"ca.crt has expired"));
        }
        Ok(Self { issuer: Issuer::new(authority_params(now), key), certificate, now })
    }

    /// The authority's certificate, as PEM.
    pub fn certificate(&self) -> String {
        self.certificate.clone()
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

fn generating(source: rcgen::Error) -> Error {
    Error::Generate { subject: "the authority".into(), source }
}

fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = params("windlass-ca", [], now);
    params.not_after = date(now.saturating_add((24 * AUTHORITY_DAYS).hours()).unwrap_or(now));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn self_signed(key: &KeyPair, now: Timestamp) -> Result<String, Error> {
    Ok(authority_params(now).self_signed(key).map_err(generating)?.pem())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_authority_is_the_same_at_every_start() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(folder.path()).unwrap();
        let first = Authority::kept(&directory, Timestamp::UNIX_EPOCH).unwrap();
        let later = Timestamp::UNIX_EPOCH.saturating_add(1000.hours()).unwrap();
        let second = Authority::kept(&directory, later).unwrap();
        assert_eq!(first.certificate(), second.certificate());
        let debug = format!("{second:?} {:?}", second.client("a", &[]).unwrap());
        assert!(!debug.contains("PRIVATE"), "{debug}");
    }

    #[test]
    fn an_authority_that_does_not_fit_its_key_is_refused_without_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(folder.path()).unwrap();
        Authority::kept(&directory, Timestamp::UNIX_EPOCH).unwrap();
        let other = KeyPair::generate().unwrap().serialize_pem();
        for (content, why) in [(other.as_str(), "does not belong"), ("SECRET", "no private key")] {
            std::fs::write(folder.path().join("keys/ca.key"), content).unwrap();
            let error = Authority::kept(&directory, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("SECRET"), "{error}");
        }
    }
}
