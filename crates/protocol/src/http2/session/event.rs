//! What a session reports of what was read.

use std::rc::Rc;

use super::super::frame::ErrorCode;
use super::super::stream::Stream;
use crate::message::Request;
use crate::target::TargetProblem;

/// The head of a request that has come, with its stream.
#[derive(Debug)]
pub struct ArrivedRequest {
    /// The stream on which the request came, and on which it is answered.
    pub stream: Rc<Stream>,
    /// Its head, or why it is not served.
    pub request: Result<Request<()>, RefusedHead>,
    /// How large the head is, as HTTP/2 counts it.
    pub head_bytes: usize,
}

/// Why the head of a request is answered before it is a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedHead {
    /// The head is larger than the limit.
    TooLarge,
    /// The head was read, and its connection has no memory for it beside what it holds.
    NoMemory,
    /// Its target has no form that a request may have.
    Target {
        /// The text for its client.
        problem: TargetProblem,
        /// Decides over the form of the answer. `None` where it was not said.
        method: Option<http::Method>,
    },
}

/// What the owner of the socket has to do after some of the input was looked at.
#[derive(Debug)]
pub enum SessionEvent {
    /// The head of a request has come whole.
    Request(ArrivedRequest),
    /// The peer goes away, and not because all is well.
    Farewell {
        /// Why the peer is sent away; `NO_ERROR` if only the connection ends.
        code: ErrorCode,
        /// The text of the GOAWAY, cut to a short length.
        why: String,
    },
    /// All of what was handed in was looked at.
    All,
    /// There is more input, and it is the turn of other connections.
    TurnOver,
    /// There is no memory for a head, or heads that were too large have used up their sender's credit.
    /// Nothing more is to be handed in before [`Session::resume`](super::Session::resume), which comes when
    /// [`Session::has_memory_again`](super::Session::has_memory_again), and after a while otherwise.
    Paused,
}
