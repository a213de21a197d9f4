//! Why a link ends, and the times after which.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::wire::WireError;

/// A link without a complete frame for this long is dead: five heartbeats.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The longest one message may take to leave: as long as a peer may be silent.
pub(crate) const WRITE_MAX: Duration = Duration::from_secs(10);

/// How long a connection may take to its first frame, which the dialler sends with the connection: room for a
/// packet to be lost twice.
pub(crate) const FIRST_FRAME_WITHIN: Duration = Duration::from_secs(3);

/// Why a link ended, or did not come about.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The address took no connection.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// No answer to the connection attempt came within 10 s.
    #[error("no answer to the connection attempt within {} s", WRITE_MAX.as_secs())]
    ConnectTimeout,
    /// No complete frame of the peer arrived within 10 s.
    #[error("the peer sent no complete frame for {} s", SILENCE_MAX.as_secs())]
    Silent,
    /// The first frame of a new connection did not arrive within 3 s.
    #[error("no first frame within {} s", FIRST_FRAME_WITHIN.as_secs())]
    FirstFrameLate,
    /// The first frame did not carry the token of the process that was called.
    #[error("the first frame does not carry this process's link token")]
    Unauthorised,
    /// The caller did not prove to be an autoscaler.
    #[error("the peer did not prove to be an autoscaler")]
    Unproved(#[source] io::Error),
    /// The peer read nothing of a message for 10 s.
    #[error("the peer took none of a message for {} s", WRITE_MAX.as_secs())]
    Stalled,
    /// The bytes that arrived are not a message, or hold a bad value.
    #[error("the peer sent garbage: {0}")]
    Garbage(#[from] WireError),
    /// A frame or message is longer than this direction allows, sent or received.
    #[error("a message of more than {max} bytes")]
    TooLarge {
        /// The largest number of bytes that a message may have.
        max: usize,
    },
    /// The connection broke within a frame, or a socket failed.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}
