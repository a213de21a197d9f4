//! What went wrong with a request that was to be sent.

use std::error::Error;

use http::Request;
use thiserror::Error;

use crate::body::Body;
use crate::server::Chain;

/// Whether the peer may have begun to work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It certainly has not: the request may go elsewhere.
    No,
    /// It may have.
    Perhaps,
}

/// A request that got no response.
#[derive(Debug, Error)]
#[error("{kind}")]
pub struct SendError {
    /// What was seen.
    pub kind: SendErrorKind,
    /// Whether the peer may have begun.
    pub started: Started,
    /// The request itself, when it is still whole.
    pub request: Option<Box<Request<Body>>>,
}

/// What was seen of a failed exchange. The words are fit for clients: they name no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendErrorKind {
    /// Nobody listens.
    #[error("connection refused")]
    ConnectRefused,
    /// No answer to the attempt to connect.
    #[error("no connection within the limit")]
    ConnectTimedOut,
    /// Any other failure to connect.
    #[error("no connection: {0}")]
    ConnectFailed(String),
    /// Our own limit.
    #[error("{limit} connections are open, which is the limit")]
    TooManyConnections {
        /// How many one address may have.
        limit: usize,
    },
    /// The peer closed or reset the connection before it answered.
    #[error("connection closed before an answer")]
    Closed,
    /// The peer refused this stream and says that it did not begin (HTTP/2).
    #[error("stream refused")]
    StreamRefused,
    /// The peer reset this stream (HTTP/2).
    #[error("stream reset: {0}")]
    StreamReset(String),
    /// What came is not HTTP, or not the HTTP that was agreed.
    #[error("malformed answer")]
    Malformed,
    /// The request's own body failed; nothing is wrong with the peer.
    #[error("the request's body broke off")]
    RequestBody,
}

impl SendError {
    /// A failure before anything was written.
    pub(super) fn not_started(kind: SendErrorKind, request: Box<Request<Body>>) -> Self {
        Self { kind, started: Started::No, request: Some(request) }
    }

    /// What hyper says about a request that was handed to a connection.
    pub(super) fn from_hyper(error: &hyper::Error, recovered: Option<Request<Body>>) -> Self {
        tracing::debug!(error = %Chain(error), "a request got no response");
        let (kind, started) = classify(error);
        match recovered {
            Some(request) => Self::not_started(SendErrorKind::Closed, Box::new(request)),
            None => Self { kind, started, request: None },
        }
    }
}

fn classify(error: &hyper::Error) -> (SendErrorKind, Started) {
    if let Some(stream) = find::<h2::Error>(error) {
        return classify_stream(stream);
    }
    if error.is_user() || find::<crate::body::BodyError>(error).is_some() {
        return (SendErrorKind::RequestBody, Started::Perhaps);
    }
    if error.is_parse() {
        return (SendErrorKind::Malformed, Started::Perhaps);
    }
    (SendErrorKind::Closed, Started::Perhaps)
}

/// A peer that refuses a stream, or goes away without having processed it, says so; HTTP/2 makes that a promise (RFC 9113 §8.7).
fn classify_stream(error: &h2::Error) -> (SendErrorKind, Started) {
    if error.is_remote() && error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM) {
        return (SendErrorKind::StreamRefused, Started::No);
    }
    if error.is_remote() && error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) {
        // Only streams above the last processed one are ended by a graceful GOAWAY; the others get their answers.
        return (SendErrorKind::StreamRefused, Started::No);
    }
    if error.is_io() {
        return (SendErrorKind::Closed, Started::Perhaps);
    }
    let reason =
        error.reason().map_or("connection error".to_owned(), |reason| reason.description().to_owned());
    (SendErrorKind::StreamReset(reason), Started::Perhaps)
}

fn find<'a, Wanted: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a Wanted> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        current = error.source();
    }
    None
}
