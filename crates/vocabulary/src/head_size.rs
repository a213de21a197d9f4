//! The size that the head of one message may have: a setting, and a field of messages between programs.

use std::fmt;

use serde::{Deserialize, Serialize};

const KIB: u32 = 1024;

/// How many bytes the head of a request or of a response may have at the front, 8 KiB … 512 KiB. One of our
/// own hops may add to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct HeadSizeLimit(u32);

impl HeadSizeLimit {
    /// The lowest limit: common servers take as much, so clients rely on it.
    pub const MIN: Self = Self(8 * KIB);
    /// The highest limit. A head takes twice its size in memory, and a queue-proxy of 16 MiB lets one
    /// connection hold 1.6 MiB.
    pub const MAX: Self = Self(512 * KIB);
    /// The limit where none is set. Clients send cookies of 64 KB.
    pub const DEFAULT: Self = Self(128 * KIB);

    /// A limit of so many bytes; `None` outside of 8 KiB … 512 KiB.
    pub fn new(bytes: u32) -> Option<Self> {
        let limit = Self(bytes);
        (Self::MIN..=Self::MAX).contains(&limit).then_some(limit)
    }

    /// The limit as a number of bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl Default for HeadSizeLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// As Kubernetes writes it: `128Ki`.
impl fmt::Display for HeadSizeLimit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(KIB) { write!(to, "{}Ki", self.0 / KIB) } else { write!(to, "{}", self.0) }
    }
}

impl TryFrom<u32> for HeadSizeLimit {
    type Error = String;

    fn try_from(bytes: u32) -> Result<Self, String> {
        Self::new(bytes).ok_or_else(|| {
            format!("is {bytes} bytes; a limit of a head has {} to {}", Self::MIN.0, Self::MAX.0)
        })
    }
}

impl From<HeadSizeLimit> for u32 {
    fn from(limit: HeadSizeLimit) -> Self {
        limit.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_8_to_512_kib_and_is_written_as_kubernetes_does() {
        for (bytes, text) in
            [(8_191, None), (8_192, Some("8Ki")), (10_000, Some("10000")), (524_288, Some("512Ki"))]
        {
            assert_eq!(HeadSizeLimit::new(bytes).map(|limit| limit.to_string()).as_deref(), text);
        }
        assert_eq!(HeadSizeLimit::try_from(131_072), Ok(HeadSizeLimit::default()));
        let error = HeadSizeLimit::try_from(524_289).expect_err("too large");
        assert_eq!(error, "is 524289 bytes; a limit of a head has 8192 to 524288");
    }
}
