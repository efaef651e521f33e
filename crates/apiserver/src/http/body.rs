//! Answer bodies: whole, in chunks, or without an end.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;

type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of an answer.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Chunks(std::collections::VecDeque<Bytes>),
    Stream(Chunks),
}

impl Body {
    /// A body that is known.
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into())))
    }

    /// A body of shared pieces.
    pub(super) fn chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self(Inner::Chunks(chunks.into_iter().collect()))
    }

    /// A body that goes on until its stream ends.
    pub(super) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)))
    }

    /// What the body is made of, unless that is not known yet.
    pub(super) fn into_pieces(self) -> Result<std::collections::VecDeque<Bytes>, Self> {
        match self.0 {
            Inner::Whole(bytes) => Ok(bytes.into_iter().collect()),
            Inner::Chunks(chunks) => Ok(chunks),
            Inner::Stream(stream) => Err(Self(Inner::Stream(stream))),
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
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take()),
            Inner::Chunks(chunks) => Poll::Ready(chunks.pop_front()),
            Inner::Stream(stream) => stream.as_mut().poll_next(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.is_none(),
            Inner::Chunks(chunks) => chunks.is_empty(),
            Inner::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let length = match &self.0 {
            Inner::Whole(bytes) => bytes.as_ref().map_or(0, Bytes::len),
            Inner::Chunks(chunks) => chunks.iter().map(Bytes::len).sum(),
            Inner::Stream(_) => return http_body::SizeHint::default(),
        };
        http_body::SizeHint::with_exact(length as u64)
    }
}
