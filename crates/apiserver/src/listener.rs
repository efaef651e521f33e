//! The socket: TLS, who the client is, and the end of it all.
//!
//! A connection enters; its certificate becomes an [`Identity`], which travels with every request of the
//! connection into the [`ApiServer`]. A connection without a certificate is anonymous.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use sha2::{Digest, Sha256};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Identity,
    authority::{self, Authority, Credentials},
    http::ApiServer,
};

/// How long a client may take for the TLS handshake and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many connections may be open at once. One that is not accepted waits in the system's queue.
const CONNECTIONS: usize = 4096;

/// How long the head of a request may be: its path, its query and its headers.
const HEAD: usize = 128 * 1024;

/// How often a connection with nothing to say is asked whether it is still there, and how long it may take to answer.
const PROBE: Duration = Duration::from_secs(30);

/// How long open requests may go on after the end was announced. Watches never end by themselves.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be had.
    #[error("failed to listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The certificates could not be made.
    #[error("failed to make the server's certificates")]
    Certificates(#[source] authority::Error),
    /// The certificates could not be used.
    #[error("failed to set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A bound socket that is ready to serve.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Acceptor,
}

/// The acceptor, which has no `Debug` of its own.
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsAcceptor")
    }
}

impl Listener {
    /// Takes the address; port 0 takes any free port.
    pub async fn bind(address: SocketAddr, authority: &Authority) -> Result<Self, Error> {
        let socket = TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })?;
        let address = socket.local_addr().map_err(|source| Error::Bind { address, source })?;
        let credentials = authority.server(&names(address.ip())).map_err(Error::Certificates)?;
        let config = tls_config(authority, &credentials).map_err(Error::Tls)?;
        Ok(Self { socket, address, tls: Acceptor(TlsAcceptor::from(Arc::new(config))) })
    }

    /// Where the server is reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's URL as a client on this machine writes it.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            IpAddr::V4(address) if address.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) if address.is_unspecified() => "[::1]".to_owned(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        format!("https://{host}:{}", self.address.port())
    }

    /// Serves until `shutdown` is ready; then open connections have a moment to end.
    pub async fn serve(self, server: ApiServer, shutdown: impl Future<Output = ()> + Send) {
        self.accept(server, Box::pin(shutdown)).await;
    }

    /// Boxed, and for no particular future: so a server is compiled here, once, and not again by every crate that has
    /// one.
    fn accept(self, server: ApiServer, shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, ()> {
        Box::pin(self.accept_until(server, shutdown))
    }

    async fn accept_until(self, server: ApiServer, mut shutdown: BoxFuture<'_, ()>) {
        let connections = GracefulShutdown::new();
        // A connection that became a session is none of hyper's any more.
        let sessions = CancellationToken::new();
        let _end = sessions.clone().drop_guard();
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let permit = tokio::select! {
                () = &mut shutdown => break,
                permit = Arc::clone(&room).acquire_owned() => permit,
            };
            let stream = tokio::select! {
                () = &mut shutdown => break,
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Mostly "too many open files": it passes when connections close.
                        tracing::warn!(%error, "failed to accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let (tls, server, watcher) = (self.tls.0.clone(), server.clone(), connections.watcher());
            let closing = sessions.clone();
            tokio::spawn(async move {
                if let Err(error) = connection(tls, stream, server, closing, watcher).await {
                    tracing::debug!(%error, "a connection ended");
                }
                drop(permit);
            });
        }
        let _ = tokio::time::timeout(FAREWELL, connections.shutdown()).await;
    }
}

async fn connection(
    tls: TlsAcceptor,
    stream: TcpStream,
    server: ApiServer,
    closing: CancellationToken,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let stream = tokio::time::timeout(PATIENCE, tls.accept(stream)).await??;
    let identity = match stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()) {
        Some(certificate) => identity_of(certificate)?,
        None => Identity::anonymous(),
    };
    let service = hyper_util::service::TowerToHyperService::new(server.as_user(identity).until(closing));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .max_header_list_size(HEAD as u32)
        .keep_alive_interval(PROBE)
        .keep_alive_timeout(PROBE);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    watcher.watch(connection).await
}

/// The user of a client certificate: its common name, and its organisations as groups. One that names nobody is as good
/// as none; one whose names cannot be read ends the connection.
fn identity_of(
    certificate: &CertificateDer<'_>,
) -> Result<Identity, Box<dyn std::error::Error + Send + Sync>> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)?;
    let subject = parsed.subject();
    let Some(name) = subject.iter_common_name().last() else { return Ok(Identity::anonymous()) };
    let name = name.as_str()?.to_owned();
    let groups: Result<Vec<String>, _> =
        subject.iter_organization().map(|group| group.as_str().map(str::to_owned)).collect();
    let mut identity = Identity::new(name, groups?);
    let digest: Vec<String> = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect();
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    identity.extra.insert(credential, vec![format!("X509SHA256={}", digest.concat())]);
    Ok(identity)
}

/// Under which names the server is reached.
fn names(address: IpAddr) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "10.96.0.1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .to_vec();
    let own = address.to_string();
    if !address.is_unspecified() && !names.contains(&own) {
        names.push(own);
    }
    names
}

fn tls_config(
    authority: &Authority,
    credentials: &Credentials,
) -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()?;
    let certificate = CertificateDer::from_pem_slice(credentials.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(credentials.key.as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A kubeconfig for one user of one server.
pub fn kubeconfig(url: &str, authority: &Authority, user: &str, credentials: &Credentials) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let encoded = |text: &str| STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: windlass\n  cluster:\n    server: {url}\n    \
         certificate-authority-data: {ca}\nusers:\n- name: {user}\n  user:\n    client-certificate-data: {certificate}\n    \
         client-key-data: {key}\ncontexts:\n- name: windlass\n  context:\n    cluster: windlass\n    user: {user}\n\
         current-context: windlass\n",
        ca = encoded(&authority.certificate()),
        certificate = encoded(&credentials.certificate),
        key = encoded(&credentials.key),
    )
}
