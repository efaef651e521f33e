//! Connections inside the process, for a server whose clients are in it too.
//!
//! Enters: a [`Connector::connect`] for each. Leaves: the other end, to whoever listens. No socket is involved, so that
//! tokio's paused clock, which does not wait for sockets, does not run ahead of an answer.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use axum::serve::Listener;
use tokio::{io::DuplexStream, sync::mpsc};

/// The address of what has none.
pub(crate) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How many bytes wait in each direction of a connection.
const BUFFER: usize = 64 << 10;

/// Makes connections to a server in this process. Clones connect to the same server.
#[derive(Clone, Debug)]
pub struct Connector {
    service: String,
    sender: mpsc::UnboundedSender<DuplexStream>,
}

/// The connections that a [`Connector`] makes.
#[derive(Debug)]
pub(crate) struct Connections(mpsc::UnboundedReceiver<DuplexStream>);

/// The two ends of the way to a server that is known as a Service.
pub(crate) fn connections(service: String) -> (Connector, Connections) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Connector { service, sender }, Connections(receiver))
}

impl Connector {
    /// The name of the Service that leads here, on its port 443.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// A new connection. It ends at once if nobody listens any more.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(BUFFER);
        // Without a receiver the far end is dropped, and the near end reads the end of the stream.
        let _ = self.sender.send(far);
        near
    }
}

impl Listener for Connections {
    type Io = DuplexStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DuplexStream, SocketAddr) {
        match self.0.recv().await {
            Some(stream) => (stream, NOWHERE),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(NOWHERE)
    }
}
