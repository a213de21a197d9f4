//! What went wrong with a request that was to be sent.

use protocol::Request;
use protocol::http1::MalformedMessage;
use thiserror::Error;

use crate::body::Body;

/// Whether the peer may have begun to work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerStart {
    /// The peer has certainly not begun: the request may go elsewhere.
    No,
    /// The peer may have begun: sending the request again could do its work twice.
    Perhaps,
}

/// A request that got no response.
#[derive(Debug, Error)]
#[error("{kind}")]
pub struct SendError {
    /// What was seen of the failure.
    pub kind: SendErrorKind,
    /// Whether the peer may have begun.
    pub started: PeerStart,
    /// The request itself, when it is still whole.
    pub request: Option<Box<Request<Body>>>,
}

/// What was seen of a failed exchange. The words are fit for clients: they name no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendErrorKind {
    /// No program listens at the address and port.
    #[error("connection refused")]
    ConnectRefused,
    /// No answer to the attempt to connect.
    #[error("no connection within the limit")]
    ConnectTimedOut,
    /// Any other failure to connect.
    #[error("no connection: {0}")]
    ConnectFailed(String),
    /// The address has as many connections as one may have from us.
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
    /// The answer is not HTTP/1.1, or its head is larger than the limit.
    #[error("malformed answer: {0}")]
    MalformedAnswer(MalformedMessage),
    /// Asked over HTTP/2, the peer said something else, or closed the connection without a word.
    #[error("no HTTP/2 is spoken")]
    NotHttp2,
    /// The answer breaks the rules of HTTP/2, which the two ends had agreed on.
    #[error("malformed answer")]
    Malformed,
    /// The client sends another body than its head announced; nothing is wrong with the peer.
    #[error("the request's body is malformed: {0}")]
    MalformedRequest(MalformedMessage),
    /// The request's own body failed; nothing is wrong with the peer.
    #[error("the request's body broke off")]
    RequestBody,
}

impl SendErrorKind {
    /// Whether there was not even a connection.
    pub(crate) fn is_without_connection(&self) -> bool {
        match self {
            Self::ConnectRefused
            | Self::ConnectTimedOut
            | Self::ConnectFailed(_)
            | Self::TooManyConnections { .. } => true,
            Self::Closed
            | Self::StreamRefused
            | Self::StreamReset(_)
            | Self::MalformedAnswer(_)
            | Self::NotHttp2
            | Self::Malformed
            | Self::MalformedRequest(_)
            | Self::RequestBody => false,
        }
    }
}

impl SendError {
    /// A failure before anything was written.
    pub(super) fn not_started(kind: SendErrorKind, request: Box<Request<Body>>) -> Self {
        Self { kind, started: PeerStart::No, request: Some(request) }
    }
}
