//! A client that does what it is told: with or without a certificate, whole requests over HTTP/1.1, or raw bytes.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use fs_err as fs;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const PATCH: &str = "application/json-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(45);

/// Who a client is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// The administrator of the kubeconfig.
    Admin,
    /// Somebody without credentials.
    Nobody,
}

/// A server as a kubeconfig describes it.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) address: SocketAddr,
    admin: Arc<ClientConfig>,
    nobody: Arc<ClientConfig>,
}

/// An answer that has been read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Answer {
    /// What a `Status` says, or the beginning of the body.
    pub(super) fn message(&self) -> String {
        let text = serde_json::from_slice::<Value>(&self.body).ok();
        let text = text.and_then(|status| status["message"].as_str().map(str::to_owned));
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        text.chars().take(300).collect()
    }

    pub(super) fn value(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).context("the answer is no JSON")
    }

    /// Insists on a success.
    pub(super) fn succeed(self) -> Result<Self> {
        anyhow::ensure!(self.status < 300, "{}: {}", self.status, self.message());
        Ok(self)
    }
}

impl Api {
    /// Reads a kubeconfig as `windlass` writes it: every key stands once, on a line of its own.
    pub(super) fn read(kubeconfig: &Path) -> Result<Self> {
        let text = fs::read_to_string(kubeconfig)?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            line.map(str::trim).with_context(|| format!("the kubeconfig has no {name}"))
        };
        let pem = |name: &str| anyhow::Ok(STANDARD.decode(field(name)?)?);
        let address = field("server:")?.trim_start_matches("https://").parse()?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem("certificate-authority-data:")?)?)?;
        let certificate = CertificateDer::from_pem_slice(&pem("client-certificate-data:")?)?;
        let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data:")?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = || {
            let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
            anyhow::Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots.clone()))
        };
        let admin = Arc::new(builder()?.with_client_auth_cert(vec![certificate], key)?);
        let nobody = Arc::new(builder()?.with_no_client_auth());
        Ok(Self { address, admin, nobody })
    }

    /// A TLS stream that speaks the protocol.
    pub(super) async fn stream(&self, who: Who, protocol: &str) -> Result<TlsStream<TcpStream>> {
        let mut config = match who {
            Who::Admin => (*self.admin).clone(),
            Who::Nobody => (*self.nobody).clone(),
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connect = async {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::IpAddress(self.address.ip().into());
            anyhow::Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
        };
        tokio::time::timeout(CONNECT, connect).await.context("no connection within 20 s")?
    }

    pub(super) async fn connect(&self, who: Who) -> Result<Connection> {
        let stream = self.stream(who, "http/1.1").await?;
        let (sender, connection) =
            http1::Builder::new().max_headers(1000).handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { sender, headers: HeaderMap::new() })
    }

    /// The administrator's connection.
    pub(super) async fn admin(&self) -> Result<Connection> {
        self.connect(Who::Admin).await
    }

    /// A connection whose requests are an ordinary user's.
    pub(super) async fn user(&self, name: &str) -> Result<Connection> {
        let mut connection = self.admin().await?;
        connection.header("impersonate-user", name.as_bytes())?;
        Ok(connection)
    }
}

/// One connection, one request at a time.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    headers: HeaderMap,
}

impl Connection {
    /// Adds a header to every request; any bytes that HTTP lets through.
    pub(super) fn header(&mut self, name: &'static str, value: &[u8]) -> Result<()> {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value)?);
        Ok(())
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Answer> {
        self.send("GET", path, JSON, Bytes::new()).await
    }

    pub(super) async fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send("POST", path, JSON, body.to_string()).await
    }

    pub(super) async fn delete(&mut self, path: &str) -> Result<Answer> {
        self.send("DELETE", path, JSON, Bytes::new()).await
    }

    pub(super) async fn patch(
        &mut self,
        path: &str,
        media: &str,
        body: impl Into<Bytes> + Send,
    ) -> Result<Answer> {
        self.send("PATCH", path, media, body).await
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes> + Send,
    ) -> Result<Answer> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", "localhost").header("content-type", media);
        if !self.headers.contains_key("accept") {
            request = request.header("accept", JSON);
        }
        let mut request = request.body(Full::new(body.into()))?;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        let exchange = async {
            self.sender.ready().await?;
            let (parts, body) = self.sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            anyhow::Ok(Answer { status: parts.status.as_u16(), body })
        };
        let answered = tokio::time::timeout(ANSWER, exchange).await;
        answered.with_context(|| format!("{method} {path} was not answered within 45 s"))?
    }
}
