//! One connection: what is happening on it, and when that has taken too long.
//!
//! The bytes of a connection pass through [`Watched`], its requests through [`Connection::begin`]; both only take notes.
//! [`Connection::overdue`] reads them and resolves when the connection has to end.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::connections::{Connections, Limits};
use crate::{auth::Identity, http::Remote};

/// How long a client may need for its first byte.
pub(super) const SPEECHLESS: Duration = Duration::from_secs(1);

/// A connection, as all who have to do with it see it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) address: IpAddr,
    all: Arc<Connections>,
    cut: CancellationToken,
    known: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Debug)]
struct Notes {
    /// Requests that are being answered.
    requests: usize,
    /// Whether requests can come at the same time, and bytes without one.
    multiplexed: bool,
    /// Since when there has been none.
    idle_since: Instant,
    /// When the first byte of the next request came.
    head_since: Option<Instant>,
    /// Since when the client has not taken what is sent to it.
    unread_since: Option<Instant>,
    silent: bool,
}

impl Connection {
    pub(super) fn new(number: u64, address: IpAddr, all: Arc<Connections>) -> Self {
        let notes = Notes {
            requests: 0,
            multiplexed: false,
            idle_since: Instant::now(),
            head_since: None,
            unread_since: None,
            silent: true,
        };
        let cut = CancellationToken::new();
        Self { number, address, all, cut, known: AtomicBool::new(false), notes: Mutex::new(notes) }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    #[cfg(test)]
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Whether nothing has come from the client, although there was time for it.
    pub(super) fn is_silent(&self) -> bool {
        let notes = self.notes();
        notes.silent && notes.idle_since.elapsed() > SPEECHLESS
    }

    /// Whether no request is being answered.
    pub(super) fn is_idle(&self) -> bool {
        self.notes().requests == 0
    }

    /// Notes that requests can share the connection.
    pub(super) fn multiplexed(&self) {
        self.notes().multiplexed = true;
    }

    /// Notes that bytes have come.
    pub(super) fn heard(&self, bytes: usize) {
        let mut notes = self.notes();
        notes.silent &= bytes == 0;
        if bytes > 0 && notes.requests == 0 && notes.head_since.is_none() {
            notes.head_since = Some(Instant::now());
        }
    }

    /// Notes whether the client takes what is sent to it.
    fn sent(&self, taken: bool) {
        let mut notes = self.notes();
        if taken {
            notes.unread_since = None;
        } else if notes.unread_since.is_none() {
            notes.unread_since = Some(Instant::now());
        }
    }

    /// Notes that a request is being answered, for as long as what is returned is held.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        let mut notes = self.notes();
        notes.requests += 1;
        notes.head_since = None;
        Busy(Arc::clone(self))
    }

    /// Notes whose connection it is.
    pub(super) fn is_of(self: &Arc<Self>, who: &Identity) -> Result<(), String> {
        self.all.shown(self, who)?;
        self.known.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Resolves when the handshake is over and the connection has to end all the same.
    pub(super) async fn overdue(&self) -> &'static str {
        let limits = self.all.limits;
        self.notes().head_since = None;
        self.notes().idle_since = Instant::now();
        // What happens on a connection is noted and not announced: so it is looked at now and then.
        let shortest = limits.patience.min(limits.idle).min(limits.stranger_idle).min(limits.unread);
        let interval = (shortest / 2).clamp(Duration::from_millis(10), Duration::from_secs(5));
        loop {
            if let Some(why) = self.overdue_at(Instant::now(), &limits) {
                return why;
            }
            tokio::select! {
                () = self.cut.cancelled() => return "others need its place",
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Resolves when others need its place.
    pub(super) async fn cut_off(&self) {
        self.cut.cancelled().await;
    }

    fn overdue_at(&self, now: Instant, limits: &Limits) -> Option<&'static str> {
        let notes = self.notes();
        let longer = |since: Option<Instant>, limit| since.is_some_and(|since| now - since > limit);
        if longer(notes.unread_since, limits.unread) {
            return Some("its client does not read");
        }
        if notes.requests > 0 {
            return None;
        }
        if !notes.multiplexed && longer(notes.head_since, limits.patience) {
            return Some("the head of a request took too long");
        }
        let idle = if self.known.load(Ordering::Relaxed) { limits.idle } else { limits.stranger_idle };
        longer(Some(notes.idle_since), idle).then_some("it was idle")
    }
}

impl Connection {
    pub(super) fn ended(&self) {
        self.all.ended(self.number);
    }
}

/// What requests know of their connection. They may outlive it.
#[derive(Debug)]
pub(super) struct Line(pub(super) Weak<Connection>);

impl Remote for Line {
    fn shown(&self, who: &Identity) -> Result<(), String> {
        match self.0.upgrade() {
            Some(connection) => connection.is_of(who),
            None => Err("the connection has ended".to_owned()),
        }
    }

    fn address(&self) -> Option<IpAddr> {
        self.0.upgrade().map(|connection| connection.address)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut notes = self.0.notes();
        notes.requests -= 1;
        if notes.requests == 0 {
            notes.idle_since = Instant::now();
            notes.head_since = None;
        }
    }
}

/// The bytes of a connection, on their way.
#[derive(Debug)]
pub(super) struct Watched<S> {
    pub(super) stream: S,
    pub(super) connection: Arc<Connection>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.connection.heard(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.connection.sent(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.connection.sent(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
