//! Why do handshakes come to nothing, and how often?

use std::io;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use thiserror::Error;

/// Why a handshake came to nothing.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    #[error("a client took too long for the TLS handshake")]
    TooSlow,
    #[error("a client that said nothing had to go")]
    Dismissed,
    #[error("the TLS handshake failed")]
    Failed(#[from] io::Error),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeReasonLabel {
    reason: &'static str,
}

/// Counts the handshakes that came to nothing. Cheap to clone; register once per process.
#[derive(Clone, Debug)]
pub struct FailedHandshakes {
    by_reason: Family<HandshakeReasonLabel, Counter>,
    too_slow: Counter,
    gone: Counter,
    protocol: Counter,
}

impl Default for FailedHandshakes {
    fn default() -> Self {
        let by_reason = Family::<HandshakeReasonLabel, Counter>::default();
        let counter = |reason| by_reason.get_or_create_owned(&HandshakeReasonLabel { reason });
        Self { too_slow: counter("timeout"), gone: counter("gone"), protocol: counter("protocol"), by_reason }
    }
}

impl FailedHandshakes {
    /// Lists the counter under `name`.
    pub fn register(&self, registry: &mut Registry, name: &str) {
        registry.register(name, "TLS handshakes that came to nothing, by reason", self.by_reason.clone());
    }

    pub(super) fn count(&self, error: &HandshakeError) {
        match error {
            HandshakeError::TooSlow => self.too_slow.inc(),
            // Counted where it was asked to go.
            HandshakeError::Dismissed => return,
            // What rustls itself says of what it read; everything else is the socket's end.
            HandshakeError::Failed(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.protocol.inc()
            }
            HandshakeError::Failed(_) => self.gone.inc(),
        };
    }
}
