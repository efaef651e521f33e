//! Answer bodies: whole, made while they are read, or without an end.
//!
//! A long answer is an iterator over its pieces. The next piece is made when the client has taken the one before, so an
//! answer that nobody reads holds what it is made from and never a copy of it all; and when a client far away has not
//! taken anything for a minute, not even that.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;

use super::{budget::Charge, flow::Seat};
use crate::audit::Ending;

/// How long a client may take nothing of an answer before the rest of it is given up.
const UNREAD: Duration = Duration::from_mins(1);

/// An answer of which more than this is there is written while the rest is made.
const READY: usize = 128 * 1024;

type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Makes the pieces of an answer.
pub(super) type Rest = Box<dyn Iterator<Item = Bytes> + Send>;

/// The body of an answer.
pub struct Body {
    inner: Inner,
    /// Gives up what nobody reads.
    watchdog: Option<tokio::task::AbortHandle>,
    /// Whether others have had their turn before the next piece.
    yielded: bool,
    /// Tells the audit log of its end.
    ending: Option<Ending>,
}

enum Inner {
    Whole(Option<Bytes>),
    Pieces(Arc<Mutex<Pieces>>),
    Stream(Chunks),
}

/// An answer that was given up because nobody read it.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("failed to send the rest of the answer: nothing of it was read for {} seconds", UNREAD.as_secs())]
pub struct Unread;

/// An answer in pieces.
struct Pieces {
    ready: VecDeque<Bytes>,
    rest: Option<Rest>,
    /// How long all of it is, where that is known.
    length: Option<u64>,
    /// How many pieces were taken.
    taken: u32,
    given_up: bool,
    /// What it is charged to as long as it is there.
    held: (Option<Seat>, Option<Charge>),
}

impl Body {
    fn of(inner: Inner) -> Self {
        Self { inner, watchdog: None, yielded: false, ending: None }
    }

    /// A body that is known.
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Inner::Whole(Some(bytes.into())))
    }

    /// A body that is made while it is read, as long as `length` says if that is known.
    pub(super) fn made(mut rest: Rest, length: Option<u64>, charge: Option<Charge>) -> Self {
        let (mut ready, mut size) = (VecDeque::new(), 0);
        while size <= READY {
            let Some(piece) = rest.next() else {
                let pieces = Pieces { length: Some(size as u64), ..Pieces::of(ready, None) };
                return Self::of(Inner::Pieces(Arc::new(Mutex::new(pieces))));
            };
            size += piece.len();
            ready.push_back(piece);
        }
        let pieces = Pieces { length, held: (None, charge), ..Pieces::of(ready, Some(rest)) };
        Self::of(Inner::Pieces(Arc::new(Mutex::new(pieces))))
    }

    /// A body that goes on until its stream ends.
    pub(super) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Inner::Stream(Box::pin(stream)))
    }

    /// The same body, of whose end the audit log is told.
    pub(super) fn ending(mut self, ending: Ending) -> Self {
        self.ending = Some(ending);
        self
    }

    /// The same body with all of it there, and its bytes; none of a body that goes on.
    pub(super) fn gathered(self) -> (Self, Option<Bytes>) {
        match self.into_rest() {
            Ok((rest, _)) => {
                let pieces: Vec<Bytes> = rest.collect();
                let bytes = match pieces.as_slice() {
                    [one] => one.clone(),
                    several => several.concat().into(),
                };
                (Self::whole(bytes.clone()), Some(bytes))
            }
            Err(stream) => (stream, None),
        }
    }

    /// The bytes of a body that is known.
    pub(super) fn known(&self) -> Option<&Bytes> {
        match &self.inner {
            Inner::Whole(bytes) => bytes.as_ref(),
            Inner::Pieces(_) | Inner::Stream(_) => None,
        }
    }

    /// The same body, to which the seat of its request belongs as long as there is something left to make. The client
    /// of one that is `watched` must go on reading.
    pub(super) fn holding(mut self, seat: Option<Seat>, watched: bool) -> Self {
        let Inner::Pieces(shared) = &self.inner else { return self };
        let unfinished = lock(shared).rest.is_some();
        if unfinished {
            lock(shared).held.0 = seat;
        }
        if unfinished && watched {
            let watchdog = tokio::spawn(give_up_unread(Arc::downgrade(shared)));
            self.watchdog = Some(watchdog.abort_handle());
        }
        self
    }

    /// How the pieces of the body are made, and what they are charged to; the body itself where it has none.
    pub(super) fn into_rest(self) -> Result<(Rest, Option<Charge>), Self> {
        match &self.inner {
            Inner::Whole(bytes) => Ok((Box::new(bytes.clone().into_iter()), None)),
            Inner::Pieces(shared) => {
                let mut pieces = lock(shared);
                let (ready, rest) = (std::mem::take(&mut pieces.ready), pieces.rest.take());
                Ok((Box::new(ready.into_iter().chain(rest.into_iter().flatten())), pieces.held.1.take()))
            }
            Inner::Stream(_) => Err(self),
        }
    }
}

impl Pieces {
    fn of(ready: VecDeque<Bytes>, rest: Option<Rest>) -> Self {
        Self { ready, rest, length: None, taken: 0, given_up: false, held: (None, None) }
    }

    fn next(&mut self) -> Option<Result<Bytes, Unread>> {
        if self.given_up {
            return Some(Err(Unread));
        }
        self.taken = self.taken.wrapping_add(1);
        let piece = match self.ready.pop_front() {
            Some(piece) => Some(piece),
            None => self.rest.as_mut().and_then(Iterator::next),
        };
        if piece.is_none() {
            self.rest = None;
            self.held = (None, None);
        }
        piece.map(Ok)
    }

    /// Lets go of everything.
    fn give_up(&mut self) {
        (self.ready, self.rest, self.held) = (VecDeque::new(), None, (None, None));
        self.given_up = true;
    }

    fn ready_bytes(&self) -> u64 {
        self.ready.iter().map(|piece| piece.len() as u64).sum()
    }
}

fn lock(pieces: &Mutex<Pieces>) -> MutexGuard<'_, Pieces> {
    pieces.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up an answer of which nothing was taken between two looks.
async fn give_up_unread(pieces: Weak<Mutex<Pieces>>) {
    let mut before = None;
    while let Some(pieces) = pieces.upgrade() {
        let taken = {
            let mut pieces = lock(&pieces);
            if before == Some(pieces.taken) {
                tracing::debug!("gave up an answer that nobody reads");
                pieces.give_up();
                return;
            }
            pieces.taken
        };
        drop(pieces);
        before = Some(taken);
        tokio::time::sleep(UNREAD).await;
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.abort();
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Body").finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Unread;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unread>>> {
        let this = &mut *self;
        let next = match &mut this.inner {
            Inner::Whole(bytes) => bytes.take().map(Ok),
            Inner::Stream(stream) => match stream.as_mut().poll_next(context) {
                Poll::Ready(next) => next.map(Ok),
                Poll::Pending => return Poll::Pending,
            },
            Inner::Pieces(pieces) => {
                let mut pieces = lock(pieces);
                // Making a piece is work, and a client that reads fast would have this thread for all of it.
                if pieces.ready.is_empty() && pieces.rest.is_some() && !this.yielded {
                    this.yielded = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                this.yielded = false;
                pieces.next()
            }
        };
        Poll::Ready(next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Whole(bytes) => bytes.is_none(),
            Inner::Pieces(pieces) => {
                let pieces = lock(pieces);
                pieces.ready.is_empty() && pieces.rest.is_none() && !pieces.given_up
            }
            Inner::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.inner {
            Inner::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Inner::Stream(_) => http_body::SizeHint::default(),
            Inner::Pieces(pieces) => {
                let pieces = lock(pieces);
                let mut hint = http_body::SizeHint::default();
                match (&pieces.rest, pieces.length) {
                    (None, _) => hint.set_exact(pieces.ready_bytes()),
                    (Some(_), Some(length)) if pieces.taken == 0 => hint.set_exact(length),
                    (Some(_), _) => hint.set_lower(pieces.ready_bytes()),
                }
                hint
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;

    /// So many pieces, and how many of them were made.
    fn made(count: usize) -> (Body, Arc<Mutex<usize>>) {
        let seen = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&seen);
        let rest = (0..count).map(move |_| {
            *counter.lock().unwrap() += 1;
            Bytes::from(vec![b'x'; 64 * 1024])
        });
        (Body::made(Box::new(rest), Some(count as u64 * 64 * 1024), None), seen)
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_made_when_they_are_wanted_and_not_before() {
        let (body, seen) = made(1000);
        let mut body = body.holding(None, true);
        assert_eq!(body.size_hint().exact(), Some(1000 * 64 * 1024));
        for _ in 0..10 {
            body.frame().await.unwrap().unwrap();
        }
        assert!(*seen.lock().unwrap() <= 11, "{seen:?}");
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!((rest.len(), *seen.lock().unwrap()), (990 * 64 * 1024, 1000));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_given_up_and_ends_in_an_error() {
        let (body, seen) = made(1000);
        let mut body = body.holding(None, true);
        for _ in 0..5 {
            body.frame().await.unwrap().unwrap();
            tokio::time::sleep(UNREAD / 2).await;
        }
        tokio::time::sleep(UNREAD * 2).await;
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!(Arc::strong_count(&seen), 1, "what it was made from must be gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_answer_is_whole_and_its_length_known() {
        let (body, _) = made(1);
        let body = body.holding(None, true);
        assert_eq!(body.size_hint().exact(), Some(64 * 1024));
        tokio::time::sleep(UNREAD * 3).await;
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 64 * 1024);
    }
}
