//! An authority and a serving certificate: made, judged and renewed, without a cluster.
//!
//! Enters: what the Secret holds, and the time. Leaves: what it should hold.
//!
//! # Guarantees
//!
//! - A serving certificate is signed by a new authority only after that authority has been in the bundle for a
//!   while, so that every API server that checks against the bundle knows it.
//! - An old authority stays in the bundle for as long as some replica might still serve what it signed.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use x509_parser::{
    extensions::{GeneralName, ParsedExtension},
    pem::Pem,
    prelude::X509Certificate,
};

const DAY: Duration = Duration::from_hours(24);
/// How long an authority lives.
const AUTHORITY: Duration = Duration::from_hours(365 * 24);
/// How long a serving certificate lives.
const SERVING: Duration = Duration::from_hours(90 * 24);
/// Certificates begin to be valid this much before they are made: clocks differ.
const BACKDATED: Duration = Duration::from_hours(1);
/// How long a new authority is in the bundle before anything signed by it is served.
const SETTLED: Duration = Duration::from_mins(2);
/// How long an old authority stays after the last certificate that it signed was replaced.
const OVERLAP: Duration = DAY;

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to make a certificate")]
    Generate(#[source] rcgen::Error),
    #[error("failed to read {0} of the Secret")]
    Unreadable(&'static str),
}

/// What the Secret holds. All of it is PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// The newest first. Whoever trusts all of them trusts every replica.
    authorities: Vec<String>,
    /// The key of the newest authority.
    authority_key: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys must never reach a log.
        f.debug_struct("Bundle").field("authorities", &self.authorities.len()).finish_non_exhaustive()
    }
}

/// What is to be known of one certificate.
struct Facts {
    made: Timestamp,
    ends: Timestamp,
    own_id: Option<Vec<u8>>,
    issuer_id: Option<Vec<u8>>,
    names: Vec<String>,
}

impl Facts {
    /// Whether less than a third of its life is left.
    fn is_due(&self, now: Timestamp) -> bool {
        let life = self.ends.duration_since(self.made);
        self.ends.duration_since(now) < life / 3
    }

    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.made)
    }
}

impl Bundle {
    /// Reads the data of a Secret; `None` if there is nothing of ours in it yet.
    pub(crate) fn read(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |key: &str| data.get(key).and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        let authorities = split(&text("ca.crt")?);
        Some(Self {
            authorities,
            authority_key: text("ca.key")?,
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
        })
    }

    /// The data of the Secret.
    pub(crate) fn data(&self) -> BTreeMap<String, ByteString> {
        let parts = [
            ("ca.crt", self.trusted()),
            ("ca.key", self.authority_key.clone()),
            ("tls.crt", self.certificate.clone()),
            ("tls.key", self.key.clone()),
        ];
        parts.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).into()
    }

    /// The authorities to trust, as one PEM.
    pub(crate) fn trusted(&self) -> String {
        self.authorities.concat()
    }

    fn fresh(names: &[String], now: Timestamp) -> Result<Self, Error> {
        let (authority, authority_key) = authority(now)?;
        let (certificate, key) = serving(&authority_key, names, now)?;
        Ok(Self { authorities: vec![authority], authority_key, certificate, key })
    }

    /// What the Secret should hold now; `None` if that is what it holds.
    pub(crate) fn renewed(
        old: Option<&Self>,
        names: &[String],
        now: Timestamp,
    ) -> Result<Option<Self>, Error> {
        let Some(old) = old else { return Self::fresh(names, now).map(Some) };
        let (Some(newest), Some(current)) =
            (old.authorities.first().and_then(|pem| facts(pem)), facts(&old.certificate))
        else {
            tracing::warn!("the certificates in the Secret cannot be read, making new ones");
            return Self::fresh(names, now).map(Some);
        };
        let mut bundle = old.clone();
        if newest.is_due(now) {
            let (authority, key) = authority(now)?;
            bundle.authorities.insert(0, authority);
            bundle.authority_key = key;
        }
        let newest =
            bundle.authorities.first().and_then(|pem| facts(pem)).ok_or(Error::Unreadable("ca.crt"))?;
        let signed_by_newest = current.issuer_id.is_some() && current.issuer_id == newest.own_id;
        let useless = now >= current.ends || current.names != sorted(names);
        let settled = newest.age(now) >= SignedDuration::try_from(SETTLED).unwrap_or_default();
        if useless || (settled && (!signed_by_newest || current.is_due(now))) {
            (bundle.certificate, bundle.key) = serving(&bundle.authority_key, names, now)?;
        } else if signed_by_newest
            && current.age(now) >= SignedDuration::try_from(OVERLAP).unwrap_or_default()
        {
            bundle.authorities.truncate(1);
        }
        bundle.authorities.retain(|pem| facts(pem).is_some_and(|facts| now < facts.ends));
        Ok((bundle != *old).then_some(bundle))
    }

    /// When to look again: soon while something is being replaced.
    pub(crate) fn look_again(&self, now: Timestamp) -> Duration {
        let newest = self.authorities.first().and_then(|pem| facts(pem));
        let (Some(newest), Some(current)) = (newest, facts(&self.certificate)) else { return SETTLED };
        if current.issuer_id != newest.own_id {
            return SETTLED / 2;
        }
        if self.authorities.len() > 1 {
            return OVERLAP / 4;
        }
        let left = |facts: &Facts| {
            let life = facts.ends.duration_since(facts.made);
            Duration::try_from(facts.ends.duration_since(now) - life / 3).unwrap_or_default()
        };
        left(&newest).min(left(&current)).clamp(Duration::from_mins(1), DAY / 2)
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}

/// The certificates in a PEM, each as PEM.
fn split(text: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let block = |block: &str| format!("{}{END}\n", block.trim_start());
    text.split(END).filter(|block| block.contains("-----BEGIN")).map(block).collect()
}

fn facts(pem: &str) -> Option<Facts> {
    let pem = Pem::iter_from_buffer(pem.as_bytes()).next()?.ok()?;
    let certificate: X509Certificate<'_> = pem.parse_x509().ok()?;
    let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let mut facts = Facts {
        made: time(certificate.validity().not_before)?.checked_add(BACKDATED).ok()?,
        ends: time(certificate.validity().not_after)?,
        own_id: None,
        issuer_id: None,
        names: Vec::new(),
    };
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => facts.own_id = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                facts.issuer_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            ParsedExtension::SubjectAlternativeName(names) => {
                facts.names = names.general_names.iter().filter_map(name).collect();
                facts.names.sort();
            }
            _ => {}
        }
    }
    Some(facts)
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(bytes) => Some(std::net::Ipv4Addr::from(bytes).to_string()),
            Err(_) => {
                <[u8; 16]>::try_from(*bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string())
            }
        },
        _ => None,
    }
}

fn authority(now: Timestamp) -> Result<(String, String), Error> {
    let key = KeyPair::generate().map_err(Error::Generate)?;
    let certificate = authority_params(now).self_signed(&key).map_err(Error::Generate)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = params("webhook-authority", now, AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// A certificate for a server under these names, signed with the authority's key.
pub(crate) fn serving(
    authority_key: &str,
    names: &[String],
    now: Timestamp,
) -> Result<(String, String), Error> {
    let authority_key = KeyPair::from_pem(authority_key).map_err(Error::Generate)?;
    // Of the authority only its name and key go into what it signs, and both are always the same.
    let issuer = Issuer::new(authority_params(now), authority_key);
    let mut params = params(names.first().map_or("webhook", String::as_str), now, SERVING);
    let alternatives = CertificateParams::new(names.to_vec()).map_err(Error::Generate)?;
    params.subject_alt_names = alternatives.subject_alt_names;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(Error::Generate)?;
    let certificate = params.signed_by(&key, &issuer).map_err(Error::Generate)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// A certificate and key that nobody has to trust: for a server whose clients do not check.
pub(crate) fn self_signed(names: &[String], now: Timestamp) -> Result<(String, String), Error> {
    let (_, key) = authority(now)?;
    serving(&key, names, now)
}

fn params(name: &str, now: Timestamp, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    // A common name has at most 64 characters.
    subject.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    params.distinguished_name = subject;
    params.not_before = date(now.saturating_sub(BACKDATED).unwrap_or(now));
    params.not_after = date(now.saturating_add(life).unwrap_or(now));
    params
}

fn date(timestamp: Timestamp) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(timestamp.as_second())
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use rustls::{
        RootCertStore,
        client::{WebPkiServerVerifier, danger::ServerCertVerifier},
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    };

    use super::*;

    fn names() -> Vec<String> {
        vec!["op-webhook.sys.svc".into(), "127.0.0.1".into()]
    }

    fn start() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    /// Whether a client that trusts `trusted` accepts the certificate now.
    fn accepted(trusted: &Bundle, served: &Bundle, now: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(trusted.trusted().as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(std::sync::Arc::new(roots), provider)
            .build()
            .unwrap();
        let leaf = CertificateDer::from_pem_slice(served.certificate.as_bytes()).unwrap();
        let seconds = Duration::from_secs(now.as_second().unsigned_abs());
        ["op-webhook.sys.svc", "127.0.0.1"].iter().all(|name| {
            let name = ServerName::try_from(*name).unwrap();
            let now = UnixTime::since_unix_epoch(seconds);
            verifier.verify_server_cert(&leaf, &[], &name, &[], now).is_ok()
        })
    }

    fn step(old: &Bundle, now: Timestamp) -> Bundle {
        Bundle::renewed(Some(old), &names(), now).unwrap().unwrap_or_else(|| old.clone())
    }

    #[test]
    fn a_new_bundle_is_trusted_and_left_alone() {
        let bundle = Bundle::renewed(None, &names(), start()).unwrap().unwrap();
        assert!(accepted(&bundle, &bundle, start()));
        assert_eq!(Bundle::renewed(Some(&bundle), &names(), start()).unwrap(), None);
        assert_eq!(Bundle::read(&bundle.data()).as_ref(), Some(&bundle));
        assert!(bundle.look_again(start()) >= Duration::from_hours(1));
    }

    #[test]
    fn over_years_of_rotation_every_replica_is_trusted_at_every_moment() {
        let mut bundle = Bundle::renewed(None, &names(), start()).unwrap().unwrap();
        // What replicas served and API servers trusted a minute ago must still fit together.
        let mut before = bundle.clone();
        let (mut now, end) = (start(), start().checked_add(AUTHORITY * 3).unwrap());
        let (mut authorities, mut rotations) = (1, 0);
        while now < end {
            let next = step(&bundle, now);
            rotations += usize::from(next.certificate != bundle.certificate);
            authorities = authorities.max(next.authorities.len());
            before = std::mem::replace(&mut bundle, next);
            for (trusted, served) in [(&bundle, &bundle), (&before, &bundle), (&bundle, &before)] {
                assert!(accepted(trusted, served, now), "at {now}");
            }
            let pause = bundle.look_again(now).max(Duration::from_mins(1));
            now = now.checked_add(pause).unwrap();
        }
        assert!(rotations >= 17, "{rotations}");
        assert_eq!(authorities, 2, "an old authority goes once nobody needs it");
        drop(before);
    }

    #[test]
    fn a_changed_name_and_a_broken_secret_get_new_certificates() {
        let bundle = Bundle::renewed(None, &["other.svc".into()], start()).unwrap().unwrap();
        let renamed = step(&bundle, start());
        assert!(accepted(&renamed, &renamed, start()));
        assert_eq!(renamed.trusted(), bundle.trusted());
        let mut broken = bundle.clone();
        broken.certificate = "nonsense".into();
        let mended = step(&broken, start());
        assert!(accepted(&mended, &mended, start()));
    }
}
