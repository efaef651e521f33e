//! TLS towards webhooks, with the server's own clock and the real server's words for what is wrong.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    time_provider::TimeProvider,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::pinned::Bundle;
use crate::environment::Environment;

/// How a webhook's certificate is checked.
#[derive(Clone)]
pub(super) struct Config(TlsConnector);

impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsConnector")
    }
}

/// The server's clock, where certificates are checked for their time.
#[derive(Debug)]
struct Now(Environment);

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

impl Config {
    /// Trusts the bundle, or what the system trusts.
    pub(super) fn new(bundle: Option<&str>, environment: &Environment) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let now = Arc::new(Now(environment.clone()));
        let config = ClientConfig::builder_with_details(Arc::clone(&provider), now)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match bundle {
            Some(bundle) if !bundle.is_empty() => {
                let verifier = Arc::new(from_bundle(bundle, provider)?);
                config.dangerous().with_custom_certificate_verifier(verifier)
            }
            _ => config.with_root_certificates(from_system()),
        };
        let config = config.with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Shakes hands with whoever must be `name`.
    pub(super) async fn connect<S>(&self, name: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

fn from_bundle(bundle: &str, provider: Arc<CryptoProvider>) -> Result<Bundle, String> {
    let unusable = || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
    let pem = STANDARD.decode(bundle).map_err(|_| unusable())?;
    let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| unusable())?;
        roots.add(certificate.clone()).map_err(|_| unusable())?;
        certificates.push(certificate);
    }
    if roots.is_empty() { Err(unusable()) } else { Bundle::new(certificates, roots, provider) }
}

fn from_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    roots
}

/// A failed handshake in the words of Go.
pub(super) fn words(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(error)) => {
            format!("tls: failed to verify certificate: x509: {}", certificate(error))
        }
        Some(error) => format!("tls: {error}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    match error {
        // Another authority of the same name gives a wrong signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            not_for(&expected.to_str(), presented)
        }
        other => other.to_string(),
    }
}

/// The verifier presents names as `DnsName("a")` and `IpAddress(127.0.0.1)`.
fn not_for(expected: &str, presented: &[String]) -> String {
    let (kind, what) = match expected.parse::<IpAddr>() {
        Ok(_) => ("IpAddress", "IP SANs"),
        Err(_) => ("DnsName", "DNS SANs"),
    };
    let named = |name: &'_ String| -> Option<String> {
        let inner = name.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.trim_matches('"').to_owned())
    };
    let names: Vec<String> = presented.iter().filter_map(named).collect();
    match (names.as_slice(), kind) {
        ([], "IpAddress") => {
            format!("cannot validate certificate for {expected} because it doesn't contain any {what}")
        }
        ([], _) => format!("certificate is not valid for any names, but wanted to match {expected}"),
        (names, _) => format!("certificate is valid for {}, not {expected}", names.join(", ")),
    }
}
