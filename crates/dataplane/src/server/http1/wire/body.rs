//! The body of a request, out of the socket of its client.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;

use super::{Reader, Wire};
use crate::http1::{Decoded, IncomingError, READ_BYTES};

/// A body that is still read from its client.
pub(crate) struct RequestBody(Rc<Wire>);

impl RequestBody {
    pub(super) fn new(wire: Rc<Wire>) -> Self {
        Self(wire)
    }

    /// The next piece.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingError>>> {
        let wire = &*self.0;
        loop {
            let decoded = wire.decoder.borrow_mut().decode(&mut wire.unread.borrow_mut());
            if wire.is_body_over() && !wire.is_own_turn.get() {
                wire.connection.wake();
            }
            match decoded.map_err(IncomingError::Malformed)? {
                Decoded::Data(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Decoded::Trailers(trailers) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Decoded::End => return Poll::Ready(None),
                Decoded::More if self.is_ended() => return Poll::Ready(None),
                Decoded::More => {}
            }
            ready!(wire.poll_interim(context)).map_err(IncomingError::Io)?;
            let Poll::Ready(read) = wire.poll_read(READ_BYTES, context) else {
                let is_here = wire.is_own_turn.get();
                wire.reader.set(if is_here { Reader::WaitsHere } else { Reader::WaitsElsewhere });
                return Poll::Pending;
            };
            if wire.reader.replace(Reader::Elsewhere) == Reader::WaitsElsewhere {
                // Until we wait again, which may take long, it is the connection that watches for the client.
                wire.connection.wake();
            }
            let bytes = read.map_err(IncomingError::Io)?;
            if bytes.is_empty() {
                return Poll::Ready(Some(Err(IncomingError::Truncated)));
            }
            wire.put_unread(bytes);
        }
    }

    /// Whether nothing will come.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.is_body_over()
    }

    /// How many bytes are to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.0.decoder.borrow().left()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.0.reader.set(Reader::Gone);
        if !self.0.is_own_turn.get() {
            // It waits for this, or must watch for the client from now on.
            self.0.connection.wake();
        }
    }
}
