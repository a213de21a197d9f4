//! What answers requests, as the server knows it.

use std::convert::Infallible;
use std::rc::Rc;

use protocol::http1::HeadLimits;
use protocol::{Request, Response};
use thiserror::Error;

use crate::body::{Body, ResponseBody};
use crate::connection::Connection;
use crate::refusal::RefusalReason;

/// A service that answers requests: a plain async function, whose state is shared by `Rc`, not locked.
pub trait Service: 'static {
    /// The type of the bodies of the service's responses.
    type Body: ResponseBody;

    /// Answers one request. When the future is dropped, the client has gone. Every connection has room for a
    /// future, also while it waits for a request: one that is large is better boxed.
    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Abort>> + 'static;

    /// How large a head is read before its sender is known; asked before each, so that it may change. `usual`
    /// is [`ServerLimits::head`](super::ServerLimits::head).
    fn head_limits_max(&self, usual: HeadLimits) -> HeadLimits {
        usual
    }

    /// Which setting bounds the size of heads, for people; `None` where none does.
    fn head_size_setting(&self) -> Option<&'static str> {
        None
    }

    /// How large the head of this request may be. Asked where it is not small; what is larger than
    /// [`Service::head_limits_max`] is refused unasked.
    fn head_limits(&self, request: &Request<()>) -> HeadLimits {
        let _ = request;
        HeadLimits::OUTER
    }

    /// The server answered a request itself, which this service therefore never sees: it may count it.
    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        let _ = unserved;
    }
}

/// Break the exchange off without an answer: HTTP/1.1 closes the connection, HTTP/2 resets the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the exchange was broken off on purpose")]
pub struct Abort;

impl From<Infallible> for Abort {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A request that no service sees, and what its client is told.
#[derive(Debug)]
pub struct UnservedRequest<'a> {
    /// Its head. `None` if that could not be read.
    pub request: Option<&'a Request<()>>,
    /// The reason as metrics count it.
    pub reason: RefusalReason,
    /// The answer that the client gets.
    pub answer: &'a Response<Body>,
    /// The connection on which the request came.
    pub connection: &'a Connection,
}
