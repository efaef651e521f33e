//! Connections to webhooks: TCP, TLS, and HTTP/1.1 on top, as the real server speaks to Services.

use std::{io, net::SocketAddr};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{
    ClientConfig, Destination, Resolver, ServiceReference, outgoing,
    resolve::ServicePort,
    tls::{self, Config},
};
use crate::store::Store;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    /// Whether the other side still listens.
    pub(super) async fn is_alive(&mut self) -> bool {
        self.0.ready().await.is_ok()
    }

    /// Sends a request; the answer's body follows.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        self.0.send_request(request).await.map_err(|error| {
            let lost = std::error::Error::source(&error).is_some_and(|source| source.is::<io::Error>());
            if lost || error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
                "EOF".to_owned()
            } else {
                error.to_string()
            }
        })
    }
}

/// Connects to a webhook.
pub(super) async fn open(
    store: &Store,
    resolver: &dyn Resolver,
    config: &ClientConfig,
    destination: &Destination,
    tls: Config,
) -> Result<Connection, String> {
    if let Some(stream) = config.service.as_ref().and_then(|service| resolver.connect(&port(service))) {
        return over(stream, destination, &tls).await;
    }
    let address = address(store, resolver, config, destination).await?;
    let stream = TcpStream::connect(address).await.map_err(|error| refused(address, &error))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    over(stream, destination, &tls).await
}

/// TLS and HTTP over a stream.
async fn over<S>(stream: S, destination: &Destination, tls: &Config) -> Result<Connection, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = tls.connect(&destination.name, stream).await.map_err(|error| tls::words(&error))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // It ends by itself when the sender is dropped or the other side goes away.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended");
        }
    });
    Ok(Connection(sender))
}

fn port(service: &ServiceReference) -> ServicePort {
    let (namespace, name) = (service.namespace.clone(), service.name.clone());
    ServicePort { namespace, name, port: service.port.unwrap_or(443) }
}

/// The address to dial: that of the Service, or the first one of the URL's host that may be dialled.
async fn address(
    store: &Store,
    resolver: &dyn Resolver,
    config: &ClientConfig,
    destination: &Destination,
) -> Result<SocketAddr, String> {
    if let Some(service) = &config.service {
        return resolver.resolve(store, &port(service));
    }
    let missing = || format!("dial tcp: lookup {}: no such host", destination.name);
    let found = tokio::net::lookup_host(&destination.authority).await.map_err(|_| missing())?;
    let mut refused = None;
    for address in found {
        match outgoing::check(store, Some(&destination.name), address.ip()) {
            Ok(()) => return Ok(address),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    Err(refused.unwrap_or_else(missing))
}

fn refused(address: SocketAddr, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {address}: connect: {why}")
}
