//! The body of a request: bytes that are there, sent in pieces so that somebody can watch.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

const PIECE: usize = 64 * 1024;

/// Who is told how many bytes of a blob have been handed over.
pub(super) type Watcher = Arc<dyn Fn(u64) + Send + Sync>;

#[derive(Clone)]
pub(super) struct Watched {
    rest: Bytes,
    sent: u64,
    watcher: Option<Watcher>,
}

impl Watched {
    pub(super) fn new(content: Bytes, watcher: Option<Watcher>) -> Self {
        Self { rest: content, sent: 0, watcher }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let size = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(size);
        self.sent += size as u64;
        if let Some(watcher) = &self.watcher {
            watcher(self.sent);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
