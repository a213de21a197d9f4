//! Bytes that an app sent behind a whole response over HTTP/1.1.

use std::time::Duration;

/// An app sent bytes behind whole responses. They cost their connections, and for a while each further
/// connection to the app is used for one request alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateBytes {
    /// The connections on which such bytes came since the queue-proxy started.
    pub connections: u32,
    /// The time until connections are used for further requests again; above zero.
    pub reuse_in: Duration,
}
