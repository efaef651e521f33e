//! One TLS connection to the server under load, as thin as possible: the client must not be what is measured.
//!
//! Client and server share the machine, so HTTP is spoken by hand: a request is one write, an answer is parsed where
//! it was read, and no task stands between the two.

use std::sync::Arc;

use kube::{
    Config,
    client::ConfigExt,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// How much is read at once at most; the longest head that is understood.
const BUFFER: usize = 64 * 1024;

/// Where the server is and how to prove who we are.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Arc<ClientConfig>,
    /// The same without a certificate of ours.
    nameless: Arc<ClientConfig>,
    /// What proves who we are where no certificate does.
    token: Option<Arc<str>>,
}

impl Target {
    pub(crate) async fn read(kubeconfig: &str) -> Result<Self, Error> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        config.auth_info = AuthInfo::default();
        let mut nameless = config.rustls_client_config()?;
        for tls in [&mut tls, &mut nameless] {
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let host = config.cluster_url.host().ok_or("the server's URL has no host")?.to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        Ok(Self { host, port, tls: Arc::new(tls), nameless: Arc::new(nameless), token: None })
    }

    /// The same server for the bearer of a token.
    pub(crate) fn bearing(&self, token: &str) -> Self {
        let nameless = Arc::clone(&self.nameless);
        Self { tls: Arc::clone(&nameless), nameless, token: Some(token.into()), ..self.clone() }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Error> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
        let (out, input) = (Vec::with_capacity(4096), vec![0; BUFFER]);
        let bearer = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let (host, bearer) = (self.host.clone(), bearer.unwrap_or_default());
        Ok(Connection { stream, host, bearer, out, input, begin: 0, end: 0, left: Left::Nothing })
    }
}

/// What is still to come of an answer.
#[derive(Clone, Copy)]
enum Left {
    Nothing,
    Bytes(usize),
    /// Chunks, of which the present one has so many bytes left.
    Chunk(usize),
    /// Chunks, and the present one has ended but for its line.
    ChunkEnd,
}

pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    host: String,
    /// The header with the token, if there is one.
    bearer: String,
    out: Vec<u8>,
    input: Vec<u8>,
    begin: usize,
    end: usize,
    left: Left,
}

impl Connection {
    /// Sends a request and reads the answer's head; the body is still to come. Returns the status.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &str,
    ) -> Result<u16, Error> {
        use std::io::Write;
        self.out.clear();
        let (host, bearer, length) = (&self.host, &self.bearer, body.len());
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nContent-Type: {kind}\r\n\
             {bearer}Content-Length: {length}\r\n\r\n{body}"
        )?;
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        self.head().await
    }

    /// Sends a request, reads the whole answer, and insists on a success. Returns the length of the body.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &str,
    ) -> Result<u64, Error> {
        let status = self.send(method, path, kind, body).await?;
        let mut length = 0;
        let mut failure = Vec::new();
        while let Some(piece) = self.piece().await? {
            length += piece.len() as u64;
            if status >= 300 {
                failure.extend_from_slice(piece);
            }
        }
        if status >= 300 {
            return Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&failure)).into());
        }
        Ok(length)
    }

    /// The same, and returns the body.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>, Error> {
        let status = self.send(method, path, "application/json", body).await?;
        let mut answer = Vec::new();
        while let Some(piece) = self.piece().await? {
            answer.extend_from_slice(piece);
        }
        if status >= 300 {
            return Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(answer)
    }

    async fn head(&mut self) -> Result<u16, Error> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut response = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(length) = response.parse(&self.input[self.begin..self.end])? {
                self.left = left(response.headers)?;
                self.begin += length;
                return Ok(response.code.unwrap_or_default());
            }
            self.fill().await?;
        }
    }

    /// The next piece of the answer's body; none at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            let wanted = match self.left {
                Left::Nothing | Left::Bytes(0) => return Ok(None),
                Left::Chunk(0) | Left::ChunkEnd => {
                    self.chunk().await?;
                    continue;
                }
                Left::Bytes(left) | Left::Chunk(left) => left,
            };
            if self.begin == self.end {
                self.fill().await?;
            }
            let (begin, taken) = (self.begin, wanted.min(self.end - self.begin));
            self.begin += taken;
            self.left = match self.left {
                Left::Bytes(left) => Left::Bytes(left - taken),
                _ if taken == wanted => Left::ChunkEnd,
                _ => Left::Chunk(wanted - taken),
            };
            return Ok(Some(&self.input[begin..begin + taken]));
        }
    }

    /// Reads the line that says how long the next chunk is, and the end of the one before it.
    async fn chunk(&mut self) -> Result<(), Error> {
        let before = if matches!(self.left, Left::ChunkEnd) { 2 } else { 0 };
        loop {
            let unread = &self.input[self.begin..self.end];
            if let Some(line) = unread.get(before..)
                && let httparse::Status::Complete((read, length)) =
                    httparse::parse_chunk_size(line).map_err(|_| "an answer's chunk has no length")?
            {
                // The last chunk is empty, and an empty line follows it.
                let last = length == 0;
                let used = before + read + if last { 2 } else { 0 };
                if used <= unread.len() {
                    self.begin += used;
                    self.left = if last { Left::Nothing } else { Left::Chunk(usize::try_from(length)?) };
                    return Ok(());
                }
            }
            self.fill().await?;
        }
    }

    /// Reads more, after what has not been taken yet.
    async fn fill(&mut self) -> Result<(), Error> {
        self.input.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end == self.input.len() {
            return Err("the head of an answer is too long".into());
        }
        match self.stream.read(&mut self.input[self.end..]).await? {
            0 => Err("the server closed the connection".into()),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }
}

/// How the body after these headers ends.
fn left(headers: &[httparse::Header<'_>]) -> Result<Left, Error> {
    for header in headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok(Left::Chunk(0));
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            return Ok(Left::Bytes(std::str::from_utf8(header.value)?.parse()?));
        }
    }
    Ok(Left::Nothing)
}
