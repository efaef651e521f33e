//! A connection to a registry, or through a proxy to one.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::Service;

use crate::registry::proxy::{Proxies, Proxy};

/// How long the head of a proxy's answer may be.
const LONGEST_HEAD: usize = 16 * 1024;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub(super) direct: HttpConnector,
    pub(super) proxies: Arc<Proxies>,
}

/// A connection, which may end at a proxy that wants to be told whom a request is for.
#[derive(Debug)]
pub(super) struct Line {
    stream: TokioIo<TcpStream>,
    at_proxy: bool,
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<Line, AnyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.of(&uri).cloned() else {
            let connecting = self.direct.call(uri);
            return Box::pin(async move { Ok(Line { stream: connecting.await?, at_proxy: false }) });
        };
        let connecting = self.direct.call(proxy.uri.clone());
        Box::pin(async move {
            let stream = match connecting.await {
                Ok(stream) => stream,
                Err(error) => {
                    let why = format!("the proxy {}: {}", place(&proxy), last(&error));
                    return Err(io::Error::other(why).into());
                }
            };
            if uri.scheme_str() != Some("https") {
                return Ok(Line { stream, at_proxy: true });
            }
            let stream = tunnel(stream.into_inner(), &uri, &proxy).await?;
            Ok(Line { stream: TokioIo::new(stream), at_proxy: false })
        })
    }
}

fn place(proxy: &Proxy) -> &str {
    proxy.uri.authority().map_or("", |authority| authority.as_str())
}

/// What the system said.
fn last(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Asks a proxy for a connection to somebody.
async fn tunnel(mut stream: TcpStream, uri: &Uri, proxy: &Proxy) -> io::Result<TcpStream> {
    let host = uri.host().unwrap_or_default();
    let whom = format!("{host}:{}", uri.port_u16().unwrap_or(443));
    let login = proxy.authorization.as_ref().and_then(|value| value.to_str().ok());
    let login = login.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {whom} HTTP/1.1\r\nHost: {whom}\r\n{login}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let odd = |why: &str| io::Error::other(format!("the proxy {} {why}", place(proxy)));
    let mut head = Vec::new();
    // One byte after the other: what follows the head is not the proxy's any more.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD {
            return Err(odd("answers too much"));
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Err(odd("closed the connection")),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    match line.split_once(' ').map(|(_, rest)| rest) {
        Some(status) if status.starts_with('2') => Ok(stream),
        Some(status) if status.starts_with("407") => {
            Err(odd("wants to know who asks: write http://NAME:PASSWORD@HOST:PORT into HTTPS_PROXY"))
        }
        Some(status) => Err(odd(&format!("refuses a connection to {whom}: {status}"))),
        None => Err(odd("is none: it does not speak HTTP")),
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.at_proxy)
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
