//! What proves to a queue-proxy that a request comes from an activator?

use std::fmt;

/// Proves to a queue-proxy that a request comes from an activator that its autoscaler trusts. Never shown in
/// logs.
#[derive(Clone, PartialEq, Eq)]
pub struct HopKey(String);

impl HopKey {
    /// Takes the key as it travels in the header: visible ASCII, which the caller guarantees.
    pub fn new(key: String) -> Self {
        Self(key)
    }

    /// The key in clear, for a header and for nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HopKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HopKey(…)")
    }
}
