//! The body of a request, out of the socket of its client.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use protocol::http1::DecodedPiece;

use super::{BodyReader, ServerWire};
use crate::body::BodyError;
use crate::http1::IncomingError;

/// A body that is still read from its client.
pub(crate) struct RequestBody {
    wire: Rc<ServerWire>,
    /// The number of its request on the connection: the wire may have gone on to a later one.
    number: u64,
}

impl RequestBody {
    /// The one that has just begun.
    pub(crate) fn new(wire: Rc<ServerWire>) -> Self {
        let number = wire.bodies.get();
        Self { wire, number }
    }

    /// Whether it is of the present request.
    fn is_present(&self) -> bool {
        self.number == self.wire.bodies.get()
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingError>>> {
        let wire = &*self.wire;
        // The service may keep a body for longer than its request lasts. What is on the wire by then is
        // another request's.
        if !self.is_present() {
            return Poll::Ready(None);
        }
        loop {
            let decoded = wire.decoder.borrow_mut().decode(&mut wire.unread.borrow_mut());
            // The connection waits for this to read the next head, and a task of its own has read the body.
            if wire.is_body_over() && !wire.is_own_turn.get() {
                wire.connection.wake();
            }
            match decoded.map_err(IncomingError::Malformed)? {
                DecodedPiece::Data(data) => {
                    wire.hold(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                DecodedPiece::Trailers(trailers) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                DecodedPiece::End => return Poll::Ready(None),
                DecodedPiece::More if self.is_ended() => return Poll::Ready(None),
                DecodedPiece::More => {}
            }
            ready!(wire.poll_interim(context)).map_err(IncomingError::Io)?;
            let Poll::Ready(read) = wire.poll_read(wire.body_read_bytes(), context) else {
                // The reader has passed the last piece on: the piece is counted where it waits now.
                wire.hold(0);
                // One socket wakes one task: the last one that registered. So the connection must know which
                // task hears of the client now; otherwise none would learn that the client is gone.
                let is_here = wire.is_own_turn.get();
                wire.reader.set(if is_here { BodyReader::WaitsHere } else { BodyReader::WaitsElsewhere });
                return Poll::Pending;
            };
            if wire.reader.replace(BodyReader::Elsewhere) == BodyReader::WaitsElsewhere {
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

    fn is_ended(&self) -> bool {
        !self.is_present() || self.wire.is_body_over()
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.poll_next(context).map_err(BodyError::Incoming)
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended()
    }

    fn size_hint(&self) -> SizeHint {
        let left = if self.is_present() { self.wire.decoder.borrow().left() } else { Some(0) };
        left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if !self.is_present() {
            return;
        }
        self.wire.reader.set(BodyReader::Gone);
        self.wire.hold(0);
        if !self.wire.is_own_turn.get() {
            // It waits for this, or must watch for the client from now on.
            self.wire.connection.wake();
        }
    }
}
