//! One TLS connection to the server under load, as thin as possible: the client must not be what is measured.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    header,
};
use hyper_util::rt::TokioIo;
use kube::{
    Config,
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Where the server is and how to prove who we are.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Arc<ClientConfig>,
}

impl Target {
    pub(crate) async fn read(kubeconfig: &str) -> Result<Self, Error> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let host = config.cluster_url.host().ok_or("the server's URL has no host")?.to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        Ok(Self { host, port, tls: Arc::new(tls) })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Error> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { sender, host: self.host.clone() })
    }
}

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    /// Sends a request and returns the answer's head; the body is still to come.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Error> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, kind)
            .body(Full::new(body.into()))?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Sends a request, reads the whole answer, and insists on a success. Returns the length of the body.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: impl Into<Bytes>,
    ) -> Result<u64, Error> {
        let response = self.send(method, path, kind, body).await?;
        let status = response.status();
        let mut incoming = response.into_body();
        let mut length = 0;
        let mut failure = Vec::new();
        while let Some(frame) = incoming.frame().await {
            if let Ok(data) = frame?.into_data() {
                length += data.len() as u64;
                if !status.is_success() {
                    failure.extend_from_slice(&data);
                }
            }
        }
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&failure)).into());
        }
        Ok(length)
    }
}
