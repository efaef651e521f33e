//! The socket: TLS, who the client is, and the end of it all.
//!
//! A connection enters; its certificate becomes an [`Identity`], which travels with every request of the
//! connection into the [`ApiServer`]. A connection without a certificate is anonymous. How many connections there may
//! be stands in `connections`, how long one may be silent in `connection`.

mod connection;
mod connections;

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
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
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service;

pub use self::connections::Limits;
use self::{
    connection::{Busy, Connection, Line, Watched},
    connections::Connections,
};
use crate::{
    auth::Identity,
    authority::{self, Authority, Credentials},
    http::{ApiServer, Body},
};

/// How long the head of a request may be: its path, its query and its headers.
const HEAD: usize = 128 * 1024;

/// How many requests may share a connection: as many as with the real server, and fewer where no certificate was shown.
const STREAMS: u32 = 250;
const STREAMS_OF_STRANGERS: u32 = 100;

/// How much of a body may come on a stream, and on all streams of a connection, before anybody wants it.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How much of an answer may wait on a stream until its client takes it.
const SEND_BUFFER: usize = 64 * 1024;

/// How long open requests may go on after the end was announced. Watches never end by themselves.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

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

/// What a server proves itself with, and whose client certificates it takes. All of it is PEM.
#[derive(Clone, Copy)]
pub struct Serving<'a> {
    /// The server's certificate, and those that lead from it to its authority.
    pub certificates: &'a str,
    /// The private key of the first one.
    pub key: &'a str,
    /// The authorities of client certificates; without any nobody is known by one.
    pub client_authorities: Option<&'a str>,
}

impl std::fmt::Debug for Serving<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must never reach a log.
        formatter.debug_struct("Serving").finish_non_exhaustive()
    }
}

/// A bound socket that is ready to serve.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Acceptor,
    limits: Limits,
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
        let credentials = authority.server(&names(address.ip())).map_err(Error::Certificates)?;
        let (certificates, key) = (credentials.certificate.as_str(), credentials.key.as_str());
        let clients = authority.certificate();
        Self::bind_with(address, Serving { certificates, key, client_authorities: Some(&clients) }).await
    }

    /// The same with certificates of somebody else's.
    pub async fn bind_with(address: SocketAddr, serving: Serving<'_>) -> Result<Self, Error> {
        let socket = TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })?;
        let address = socket.local_addr().map_err(|source| Error::Bind { address, source })?;
        let config = tls_config(serving).map_err(Error::Tls)?;
        let tls = Acceptor(TlsAcceptor::from(Arc::new(config)));
        Ok(Self { socket, address, tls, limits: Limits::default() })
    }

    /// The same listener, within other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
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
        let all = Connections::new(self.limits);
        loop {
            let (stream, address) = tokio::select! {
                () = &mut shutdown => break,
                accepted = self.socket.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Mostly "too many open files": it passes when connections close.
                        tracing::warn!(%error, "failed to accept a connection");
                        all.relieve();
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let accepted = all.accept(address.ip());
            let (tls, server, watcher) = (self.tls.0.clone(), server.clone(), connections.watcher());
            let (closing, limits) = (sessions.clone(), self.limits);
            tokio::spawn(async move {
                let served = connection(tls, stream, server, closing, watcher, &accepted, limits);
                if let Err(error) = served.await {
                    tracing::debug!(%error, "a connection ended");
                }
                accepted.ended();
            });
        }
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.shutdown()).await;
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn connection(
    tls: TlsAcceptor,
    stream: TcpStream,
    server: ApiServer,
    closing: CancellationToken,
    watcher: hyper_util::server::graceful::Watcher,
    connection: &Arc<Connection>,
    limits: Limits,
) -> Result<(), AnyError> {
    stream.set_nodelay(true)?;
    let stream = Watched { stream, connection: Arc::clone(connection) };
    let stream = tokio::select! {
        handshake = tokio::time::timeout(limits.patience, tls.accept(stream)) => handshake??,
        () = connection.cut_off() => return Err("others need its place".into()),
    };
    let identity = match stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()) {
        Some(certificate) => identity_of(certificate)?,
        None => Identity::anonymous(),
    };
    let mut streams = STREAMS_OF_STRANGERS;
    if identity != Identity::anonymous() {
        connection.is_of(&identity)?;
        streams = STREAMS;
    }
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        connection.multiplexed();
    }
    let line = Arc::new(Line(Arc::downgrade(connection)));
    let server = server.as_user(identity).until(closing).over(line);
    let (noted, mut builder) = (Arc::clone(connection), auto::Builder::new(TokioExecutor::new()));
    let service = service_fn(move |request: Request<Incoming>| {
        if request.version() == http::Version::HTTP_2 {
            noted.multiplexed();
        }
        let (busy, answered) = (noted.begin(), server.clone().call(request));
        async move { answered.await.map(|response| response.map(|body| Sent { body, _busy: busy })) }
    });
    // How long a head may take is not left to the builder, which counts the time before it as well.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEAD as u32)
        .keep_alive_interval(limits.probe)
        .keep_alive_timeout(limits.probe);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    tokio::select! {
        ended = watcher.watch(serving) => ended,
        why = connection.overdue() => Err(format!("closed it: {why}").into()),
    }
}

/// The body of an answer, until it is sent.
struct Sent {
    body: Body,
    _busy: Busy,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The user of a client certificate: its common name, and its organisations as groups. One that names nobody is as good
/// as none; one whose names cannot be read ends the connection.
fn identity_of(certificate: &CertificateDer<'_>) -> Result<Identity, AnyError> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)?;
    let subject = parsed.subject();
    // The last of several counts, as in the real server.
    let name = match subject.iter_common_name().last() {
        Some(name) => name.as_str()?.to_owned(),
        None => String::new(),
    };
    if name.is_empty() {
        return Ok(Identity::anonymous());
    }
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

fn tls_config(serving: Serving<'_>) -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match serving.client_authorities {
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
                roots.add(authority?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(serving.certificates.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes())?;
    let mut config = builder.with_single_cert(chain?, key)?;
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

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    /// The user of a certificate with this subject.
    fn user(subject: &[(DnType, DnValue)], change: impl FnOnce(&mut Vec<u8>)) -> Result<Identity, AnyError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let certificate = params.self_signed(&KeyPair::generate()?)?;
        let mut bytes = certificate.der().to_vec();
        change(&mut bytes);
        identity_of(&CertificateDer::from(bytes))
    }

    #[test]
    fn a_certificate_is_of_who_it_names_or_of_nobody() {
        let text = |text: &str| DnValue::Utf8String(text.to_owned());
        let masters = (DnType::OrganizationName, text("system:masters"));
        let common = |name: &str| (DnType::CommonName, text(name));
        // The same attribute, written so that there can be two of it.
        let another = |name: &str| (DnType::CustomDnType(vec![2, 5, 4, 3]), text(name));
        let plain = user(&[common("jürgen"), masters.clone()], |_| ()).unwrap();
        assert_eq!((plain.name.as_str(), plain.is_master()), ("jürgen", true));
        let last = user(&[common("eve"), another("mary"), masters.clone()], |_| ()).unwrap();
        assert_eq!(last.name, "mary");
        for nobody in [
            vec![masters.clone()],
            vec![common(""), masters.clone()],
            vec![common("eve"), another(""), masters.clone()],
        ] {
            assert_eq!(user(&nobody, |_| ()).unwrap(), Identity::anonymous(), "{nobody:?}");
        }
        let replace = |from: &'static [u8]| {
            move |bytes: &mut Vec<u8>| {
                let at = bytes.windows(from.len()).rposition(|window| window == from).unwrap();
                bytes[at] = 0xff;
            }
        };
        user(&[common("eve"), masters.clone()], replace(b"eve")).unwrap_err();
        user(&[common("eve"), masters.clone()], replace(b"system:masters")).unwrap_err();
        user(&[common("eve"), masters], |bytes| bytes.truncate(20)).unwrap_err();
        let long = user(&[common(&"x".repeat(70_000))], |_| ()).unwrap();
        assert_eq!(long.name.len(), 70_000);
    }
}
