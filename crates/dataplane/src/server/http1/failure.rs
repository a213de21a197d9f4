//! Why a connection of HTTP/1.1, or an exchange on it, ends early.

use protocol::http1::WrongLength;
use thiserror::Error;

/// Anything that ends a connection early.
pub(crate) type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// Why an exchange ended before its response did.
#[derive(Debug, Error)]
pub(super) enum BrokenResponse {
    #[error("the client has gone")]
    ClientGone,
    #[error("the client has ended its sending side, and got no byte of its response for too long")]
    Silent,
    #[error("the body of a response is not as long as its head says")]
    Length,
}

impl From<WrongLength> for BrokenResponse {
    fn from(_: WrongLength) -> Self {
        Self::Length
    }
}
