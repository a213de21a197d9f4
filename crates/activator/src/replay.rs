//! A request body that can be sent again: a pod may refuse a request after its body has begun to flow.
//!
//! What has been read from the client is kept until the request is known to have started, up to a limit. On
//! HTTP/1.1 a body that fits the limit goes out with its head, because it can be sent again whatever happens;
//! of any other nothing leaves until the queue-proxy has admitted the request ([`Gate`]).

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use dataplane::{Body, BodyError, BodyPieces, Gate};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::context::Context;

/// The body of one request, for as many attempts as it takes.
pub(crate) struct Replay(Rc<RefCell<ReplayState>>);

struct ReplayState {
    source: Body,
    size: SizeHint,
    /// What was read, while it may be needed again.
    kept: BodyPieces,
    /// As much of the context's room is ours: what is kept, and what is going to be.
    reserved_bytes: usize,
    /// The end of a piece that was read and may not be kept: sent next, and then there is no other attempt.
    rest: Option<Bytes>,
    trailers: Option<HeaderMap>,
    is_read: bool,
    keeping: KeptBeginning,
    /// Only the latest attempt may read.
    attempt: u64,
    context: Arc<Context>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeptBeginning {
    /// Everything that was read is there.
    Everything,
    /// The request has started: what was sent is forgotten.
    NoLonger,
    /// There was more than may be kept: there can be no other attempt.
    TooMuch,
}

impl Replay {
    pub(crate) fn new(source: Body, context: &Arc<Context>) -> Self {
        let size = source.size_hint();
        Self(Rc::new(RefCell::new(ReplayState {
            source,
            size,
            kept: BodyPieces::default(),
            reserved_bytes: 0,
            rest: None,
            trailers: None,
            is_read: false,
            keeping: KeptBeginning::Everything,
            attempt: 0,
            context: Arc::clone(context),
        })))
    }

    /// Sets room aside for the whole body. `false` if it is longer than what may be kept, if its length is
    /// not known, or if there is no room.
    pub(crate) fn reserve(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let limit = state.context.limits.replay_bytes_per_request;
        let length = state.size.exact().and_then(|length| usize::try_from(length).ok());
        length.filter(|length| *length <= limit).is_some_and(|length| state.reserve(length))
    }

    /// The body from its beginning; earlier attempts' bodies fail from now on. `None` if its beginning is no
    /// longer there.
    pub(crate) fn attempt(&self, gate: Option<Gate>) -> Option<Body> {
        let mut state = self.0.borrow_mut();
        if state.keeping != KeptBeginning::Everything {
            return None;
        }
        state.attempt += 1;
        let attempt = state.attempt;
        Some(Body::custom(Attempt {
            state: Rc::clone(&self.0),
            number: attempt,
            position: 0,
            has_begun: false,
            to_repeat: state.kept.settle(),
            are_trailers_sent: false,
            gate,
        }))
    }

    /// The request has started: there will be no other attempt.
    pub(crate) fn started(&self) {
        let mut state = self.0.borrow_mut();
        if state.keeping == KeptBeginning::Everything {
            state.keeping = KeptBeginning::NoLonger;
        }
    }
}

impl ReplayState {
    /// Keeps what was read, and returns what of it is to be sent now. On HTTP/2 a queue-proxy that has not
    /// admitted a request takes exactly as much as may be kept, so a piece that reaches across the limit is
    /// divided there: its end is asked for only by a pod that has begun.
    fn keep(&mut self, mut piece: Bytes) -> Bytes {
        if self.keeping != KeptBeginning::Everything {
            return piece;
        }
        let room = self.context.limits.replay_bytes_per_request - self.kept.bytes();
        let fits = piece.len().min(room);
        if (fits == 0 && !piece.is_empty()) || !self.reserve(self.kept.bytes() + fits) {
            self.exceed();
            return piece;
        }
        let head = piece.split_to(fits);
        self.rest = Some(piece).filter(|rest| !rest.is_empty());
        if !head.is_empty() {
            self.kept.push(head.clone());
        }
        head
    }

    /// Sees to room for so many bytes from the beginning.
    fn reserve(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.reserved_bytes);
        let has_room = more == 0 || self.context.reserve_replay(more);
        if has_room {
            self.reserved_bytes += more;
        }
        has_room
    }

    /// More goes out than may be kept.
    fn exceed(&mut self) {
        self.keeping = KeptBeginning::TooMuch;
        self.forget();
    }

    fn forget(&mut self) {
        self.kept.clear();
        self.context.release_replay(std::mem::take(&mut self.reserved_bytes));
    }
}

impl Drop for ReplayState {
    fn drop(&mut self) {
        self.forget();
    }
}

/// One attempt's body: first what is kept, then what the client sends.
struct Attempt {
    state: Rc<RefCell<ReplayState>>,
    number: u64,
    /// How many of the pieces that were kept when it began were sent.
    position: usize,
    /// How many pieces were kept when the attempt began.
    to_repeat: usize,
    has_begun: bool,
    are_trailers_sent: bool,
    gate: Option<Gate>,
}

impl HttpBody for Attempt {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let mut state = this.state.borrow_mut();
        // An attempt that was given up may still be read for a moment, by the task that sends its rest. Two
        // readers of one source would each get a part.
        if state.attempt != this.number {
            return Poll::Ready(Some(Err(BodyError::Source("another attempt has begun".to_owned()))));
        }
        if let Some(gate) = &this.gate
            && gate.poll_open(context).is_pending()
        {
            return Poll::Pending;
        }
        if this.position < this.to_repeat
            && let Some(piece) = state.kept.get(this.position)
        {
            this.position += 1;
            this.has_begun = true;
            return Poll::Ready(Some(Ok(Frame::data(piece.clone()))));
        }
        // Some pod has begun, and what was kept for others is of no use any more. Dropped here and not when
        // that was known, because this attempt may have had some of it still to send.
        if state.keeping != KeptBeginning::Everything && state.reserved_bytes > 0 {
            state.forget();
            this.to_repeat = 0;
        }
        // Behind what may be kept. The attempt that asks for it has begun, and from now on there is no other
        // attempt.
        if let Some(rest) = state.rest.take() {
            if state.keeping == KeptBeginning::Everything {
                state.exceed();
            }
            return Poll::Ready(Some(Ok(Frame::data(rest))));
        }
        if state.is_read {
            let trailers = if this.are_trailers_sent { None } else { state.trailers.clone() };
            this.are_trailers_sent = true;
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let frame = match Pin::new(&mut state.source).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(None) => {
                state.is_read = true;
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
            Poll::Pending => return Poll::Pending,
        };
        let frame = match frame.into_data() {
            Ok(piece) => {
                this.has_begun = true;
                let piece = state.keep(piece);
                Frame::data(piece)
            }
            Err(other) => {
                if let Some(trailers) = other.trailers_ref() {
                    state.trailers = Some(trailers.clone());
                    state.is_read = true;
                    this.are_trailers_sent = true;
                }
                other
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        // Said by reading: an attempt that has not begun has something to send.
        false
    }

    fn size_hint(&self) -> SizeHint {
        if self.has_begun { SizeHint::default() } else { self.state.borrow().size }
    }
}

#[cfg(test)]
mod tests;
