//! A server behind its real listener, over TLS on the loopback, and clients of any manners.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, combinators::BoxBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::{io::AsyncReadExt, net::TcpStream, sync::oneshot, task::JoinHandle};
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass_apiserver::{
    ApiServer,
    authority::{Authority, Credentials},
    environment::{Environment, TokioClock},
    http, listener,
    listener::Listener,
    registry::Registry,
    store::Store,
};

pub(crate) type SentBody = BoxBody<Bytes, std::io::Error>;

/// Long enough for anything that happens at all, on a machine that is busy.
pub(crate) const AT_LAST: Duration = Duration::from_mins(2);

pub(crate) struct Bed {
    pub(crate) authority: Authority,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl Bed {
    pub(crate) async fn new(connections: listener::Limits, requests: http::Limits) -> Self {
        Self::of(Authority::new(now()).unwrap(), connections, requests).await
    }

    /// The same with an authority of the test's own.
    pub(crate) async fn of(
        authority: Authority,
        connections: listener::Limits,
        requests: http::Limits,
    ) -> Self {
        let environment = Environment::new(TokioClock::starting_at(now()), 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &authority).await.unwrap();
        let listener = listener.with_limits(connections);
        let server = ApiServer::with_limits(Arc::new(registry), requests);
        let (stop, stopped) = oneshot::channel::<()>();
        let address = listener.address();
        let serving = tokio::spawn(listener.serve(server, async {
            let _ = stopped.await;
        }));
        Self { authority, address, stop: Some(stop), serving: Some(serving) }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.serving.take().unwrap().await.unwrap();
    }

    pub(crate) fn certificate(&self, user: &str, groups: &[&str]) -> Credentials {
        self.authority.client(user, groups).unwrap()
    }

    /// A TLS connection that speaks one protocol, as somebody or nobody.
    pub(crate) async fn connect(
        &self,
        who: Option<&Credentials>,
        protocol: &[u8],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let pem = self.authority.certificate();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match who {
            None => config.with_no_client_auth(),
            Some(who) => {
                let chain = vec![CertificateDer::from_pem_slice(who.certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(who.key.as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    pub(crate) async fn http1(&self, who: Option<&Credentials>) -> http1::SendRequest<SentBody> {
        let stream = self.connect(who, b"http/1.1").await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub(crate) async fn http2(&self, who: Option<&Credentials>) -> http2::SendRequest<SentBody> {
        let stream = self.connect(who, b"h2").await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

#[expect(clippy::disallowed_methods, reason = "certificates are checked against the machine's clock")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A request with a body that is whole, or that never ends.
pub(crate) fn request(method: Method, path: &str, body: SentBody) -> Request<SentBody> {
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    request.header("host", "localhost").header("content-type", "application/json").body(body).unwrap()
}

pub(crate) fn nothing() -> SentBody {
    whole(Vec::new())
}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> SentBody {
    http_body_util::Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// So many bytes, and then nothing more, ever.
pub(crate) fn stuck(bytes: usize) -> SentBody {
    use futures::StreamExt;
    let begun = futures::stream::iter([Ok(http_body::Frame::data(Bytes::from(vec![b' '; bytes])))]);
    BodyExt::boxed(http_body_util::StreamBody::new(
        begun.chain(futures::stream::pending::<Result<_, std::io::Error>>()),
    ))
}

pub(crate) async fn read(response: Response<hyper::body::Incoming>) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Waits until the other side has closed the connection.
pub(crate) async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin, what: &str) {
    let mut buffer = vec![0; 4096];
    let reading = async { while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(AT_LAST, reading).await.unwrap_or_else(|_| panic!("{what} was never closed"));
}
