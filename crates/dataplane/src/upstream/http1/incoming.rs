//! The body of a response while it is read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use protocol::http1::{BodyDecoder, DecodedPiece};

use super::lease::Http1Lease;
use crate::body::{Body, BodyError};
use crate::http1::IncomingError;

/// A body that is still read from its connection.
pub(crate) struct IncomingBody {
    /// Bytes that were read and not yet handed on.
    rest: Bytes,
    decoder: BodyDecoder,
    /// `None` once the body is over: then the connection is free for the next request.
    lease: Option<Http1Lease>,
    /// The failure that the next poll reports.
    failure: Option<IncomingError>,
}

impl IncomingBody {
    pub(super) fn new(rest: Bytes, decoder: BodyDecoder, lease: Http1Lease) -> Self {
        Self { rest, decoder, lease: Some(lease), failure: None }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingError>>> {
        loop {
            let decoded = self.decoder.decode(&mut self.rest).map_err(IncomingError::Malformed)?;
            if self.decoder.is_ended()
                && let Some(lease) = self.lease.take()
            {
                // Before the last piece is handed on, so that the connection is in the pool when the client's
                // next request comes.
                lease.end(&self.rest);
            }
            match decoded {
                DecodedPiece::Data(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                DecodedPiece::Trailers(trailers) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                DecodedPiece::End => return Poll::Ready(None),
                DecodedPiece::More => {}
            }
            let Some(lease) = &self.lease else { return Poll::Ready(None) };
            self.rest = ready!(lease.poll_read(context)).map_err(IncomingError::Io)?;
            if self.rest.is_empty() {
                // A response without a length ends with its connection. If we broke that ourselves, because
                // the request failed, the end says nothing.
                let is_whole = self.decoder.close() && !lease.is_broken_off();
                self.lease = None;
                return Poll::Ready(if is_whole { None } else { Some(Err(IncomingError::Truncated)) });
            }
        }
    }
}

impl From<IncomingBody> for Body {
    fn from(incoming: IncomingBody) -> Self {
        if incoming.is_end_stream() { Self::empty() } else { Self::custom(incoming) }
    }
}

impl HttpBody for IncomingBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(BodyError::Incoming(failure))));
        }
        match self.poll_next(context) {
            Poll::Ready(Some(Err(failure))) => {
                // The task that sends this body on drops what is not yet written when the body fails. What
                // came before the failure may go out first.
                self.lease = None;
                self.failure = Some(failure);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(frame))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.decoder.is_ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.decoder.left().map(SizeHint::with_exact).unwrap_or_default()
    }
}
