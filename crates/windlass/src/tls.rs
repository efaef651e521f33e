//! TLS for the servers of an operator's process: a certificate that can be replaced at any time, and a listener
//! that serves whichever is current.
//!
//! Replacing a certificate touches no connection: those that are open go on, the next handshake gets the new one.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::serve::{Listener, ListenerExt};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

mod connections;
mod files;

pub use connections::Connector;
pub(crate) use {
    connections::{Connections, NOWHERE, connections},
    files::Files,
};

/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections may wait to be served after their handshake.
const BACKLOG: usize = 64;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to read the certificate: it is no PEM")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    #[error("failed to read the certificate: there is none in the PEM")]
    NoCertificate,
    #[error("failed to read the private key")]
    Key(#[source] rustls::pki_types::pem::Error),
    #[error("failed to use the certificate with its private key")]
    Unusable(#[source] rustls::Error),
}

/// The certificate that new connections are served with. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Certificate(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must never reach a log.
        f.write_str("Certificate")
    }
}

impl Certificate {
    /// Replaces the certificate. An unusable one changes nothing.
    pub(crate) fn set(&self, certificate: &str, key: &str) -> Result<(), Error> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(Error::Certificate)?;
        if chain.is_empty() {
            return Err(Error::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(Error::Key)?;
        let provider = ring::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(Error::Unusable)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// What the next connection is served with.
    pub(crate) fn served(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.served()
    }
}

/// A connection before TLS: from a socket, or from this process.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

type Accepted = (TlsStream<Box<dyn Stream>>, SocketAddr);

/// Accepts connections and does their handshakes, many at a time.
pub(crate) struct TlsListener {
    ready: mpsc::Receiver<Accepted>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl TlsListener {
    /// Connections from a socket.
    pub(crate) fn tcp(socket: TcpListener, certificate: Certificate, http2: bool) -> io::Result<Self> {
        Self::new(socket.tap_io(|stream| drop(stream.set_nodelay(true))), certificate, http2)
    }

    pub(crate) fn new<L>(socket: L, certificate: Certificate, http2: bool) -> io::Result<Self>
    where
        L: Listener<Addr = SocketAddr>,
    {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificate));
        let protocols: &[&[u8]] = if http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let (sender, ready) = mpsc::channel(BACKLOG);
        let address = socket.local_addr()?;
        let accepting = tokio::spawn(accept(socket, TlsAcceptor::from(Arc::new(config)), sender));
        Ok(Self { ready, address, accepting })
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<L>(mut socket: L, tls: TlsAcceptor, ready: mpsc::Sender<Accepted>)
where
    L: Listener<Addr = SocketAddr>,
{
    loop {
        // The trait's method waits when the system is out of files.
        let (stream, address) = socket.accept().await;
        let stream: Box<dyn Stream> = Box::new(stream);
        let (tls, ready) = (tls.clone(), ready.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                // Nobody listens any more when the server is going.
                Ok(Ok(stream)) => drop(ready.send((stream, address)).await),
                Ok(Err(error)) => tracing::debug!(%address, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%address, "a TLS handshake took too long"),
            }
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<Box<dyn Stream>>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
