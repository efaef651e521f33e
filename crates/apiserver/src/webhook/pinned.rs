//! A certificate that stands in a webhook's `caBundle` itself.
//!
//! Go trusts it whoever has signed it, and so does the real server; envtest of controller-runtime counts on that. The
//! verifier of rustls asks for an authority, and says "unknown issuer".

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Trusts what is in the bundle, and what is signed by it.
#[derive(Debug)]
pub(super) struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl Bundle {
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { certificates, authorities: authorities.map_err(|error| error.to_string())? })
    }
}

/// What else must be right with a certificate that is trusted: its name, its time and its purpose.
fn check(certificate: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<(), Error> {
    let bad = || Error::InvalidCertificate(CertificateError::BadEncoding);
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
    let seconds = i64::try_from(now.as_secs()).map_err(|_| bad())?;
    if seconds < parsed.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if seconds > parsed.validity().not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    let usage = parsed.extended_key_usage().map_err(|_| bad())?;
    if usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Err(CertificateError::InvalidPurpose.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|own| own == end_entity) {
            return check(end_entity, name, now).map(|()| ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::authority::Authority;

    const DAY: u64 = 24 * 60 * 60;
    /// When the authority was made: no certificate is older than time itself.
    const START: u64 = 1_700_000_000;

    fn parsed(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn bundle(certificates: &[CertificateDer<'static>]) -> Bundle {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            roots.add(certificate.clone()).unwrap();
        }
        Bundle::new(certificates.to_vec(), roots, provider).unwrap()
    }

    /// What becomes of a certificate that is shown by a server of this name after so many days.
    fn verdict(bundle: &Bundle, shown: &CertificateDer<'_>, name: &str, days: u64) -> Result<(), Error> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(START + days * DAY));
        bundle.verify_server_cert(shown, &[], &name, &[], now).map(|_| ())
    }

    #[test]
    fn a_certificate_in_the_bundle_is_trusted_whoever_signed_it_for_its_name_time_and_purpose() {
        let authority = Authority::new(Timestamp::from_second(START as i64).unwrap()).unwrap();
        let server = parsed(&authority.server(&["a.example".into()]).unwrap().certificate);
        let other = parsed(&authority.server(&["a.example".into()]).unwrap().certificate);
        let client = parsed(&authority.client("a.example", &[]).unwrap().certificate);
        let own = bundle(&[server.clone(), client.clone()]);
        assert!(verdict(&own, &server, "a.example", 1).is_ok());
        let reason = |verdict: Result<(), Error>| match verdict.unwrap_err() {
            Error::InvalidCertificate(reason) => reason,
            other => panic!("{other}"),
        };
        // Its sister is not in the bundle.
        assert_eq!(reason(verdict(&own, &other, "a.example", 1)), CertificateError::UnknownIssuer);
        let named = reason(verdict(&own, &server, "b.example", 1));
        assert!(matches!(named, CertificateError::NotValidForNameContext { .. }), "{named:?}");
        assert_eq!(reason(verdict(&own, &server, "a.example", 400)), CertificateError::Expired);
        assert_eq!(reason(verdict(&own, &client, "a.example", 1)), CertificateError::InvalidPurpose);
        // An authority in the bundle is trusted as ever.
        let root = bundle(&[parsed(&authority.certificate())]);
        assert!(verdict(&root, &server, "a.example", 1).is_ok());
    }
}
