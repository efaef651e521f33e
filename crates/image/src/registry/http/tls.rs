//! Whom a connection trusts, and what its failures mean.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use fs_err as fs;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::{Options, Watched, connect::Connector};
use crate::registry::Error;

/// What is said of a server that answers something else than TLS.
pub(super) const NOT_TLS: &str = "it does not speak TLS";

const CONNECT: Duration = Duration::from_secs(10);

pub(super) fn client(options: &Options) -> Result<Client<HttpsConnector<Connector>, Watched>, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Authorities { what: "this program".into(), why: error.to_string() })?;
    let config = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(options)?).with_no_client_auth()
    };
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    direct.set_connect_timeout(Some(CONNECT));
    let connector = Connector { direct, proxies: Arc::new(options.proxies.clone()) };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// The system's authorities and those of the user's file. A system without any is no error: a file may do.
fn roots(options: &Options) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(path) = &options.authorities else { return Ok(roots) };
    let what = path.display().to_string();
    let failed = |why: String| Error::Authorities { what: what.clone(), why };
    let content = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&content) {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        count += 1;
    }
    if count == 0 { Err(failed("there is no certificate in it".into())) } else { Ok(roots) }
}

/// Trusts whoever answers, as `--insecure` asks for. That the server has the key of its certificate is still checked.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A failure and its causes. One of the system's hides what is in it from `source`.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = inside.map(|inside| inside as &(dyn StdError + 'static)).or_else(|| error.source());
        Some(error)
    })
}

/// What TLS says was wrong, wherever in the chain that is.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())
}

/// Why a certificate is not trusted, if that is what went wrong.
pub(super) fn distrust(error: &(dyn StdError + 'static)) -> Option<String> {
    match tls_error(error)? {
        rustls::Error::InvalidCertificate(reason) => {
            Some(format!("its certificate is not valid ({reason:?})"))
        }
        _ => None,
    }
}

/// The last cause of a failure, which says what the system said.
pub(super) fn reason(error: &(dyn StdError + 'static)) -> String {
    if let Some(rustls::Error::InvalidMessage(_)) = tls_error(error) {
        return NOT_TLS.to_owned();
    }
    causes(error).last().map_or_else(String::new, ToString::to_string)
}
