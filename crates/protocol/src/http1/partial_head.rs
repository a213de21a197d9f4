//! The beginning of a head, until the rest of it comes.
//!
//! Nearly always a head comes whole, and is read where it lies. One that does not is gathered, and looked at
//! again only when its end may be there or it has grown to twice its size: a peer that sends single bytes
//! must not make us read the same bytes again and again.

use bytes::{Bytes, BytesMut};
use memchr::memchr_iter;

/// The beginning of a head.
#[derive(Debug)]
pub(crate) struct PartialHead {
    bytes: BytesMut,
    /// How long it was when it was looked at.
    looked_at: usize,
}

impl PartialHead {
    /// What was looked at and is not whole.
    pub(crate) fn new(bytes: Bytes) -> Self {
        let looked_at = bytes.len();
        let bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        Self { bytes, looked_at }
    }

    /// How many bytes have come.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How much memory it takes: its letters twice, as those of a whole head, or its buffer if that is more.
    /// So what a head takes hardly grows when it is whole.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity().max(2 * self.bytes.len())
    }

    /// Adds what came, and says whether it is time for another look.
    pub(crate) fn add(&mut self, fresh: &[u8]) -> bool {
        let from = self.bytes.len().saturating_sub(2);
        self.bytes.extend_from_slice(fresh);
        self.bytes.len() >= 2 * self.looked_at || has_empty_line(&self.bytes[from..])
    }

    /// How long it was when it was looked at last.
    #[cfg(test)]
    pub(crate) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// All of it, for another look.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }
}

/// Whether a head may end here, also one whose lines end as they must not.
fn has_empty_line(bytes: &[u8]) -> bool {
    memchr_iter(b'\n', bytes).any(|at| matches!(bytes[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_head_in_single_bytes_is_looked_at_seldom() {
        let text = format!("GET / HTTP/1.1\r\n{}", "a-header: with a value\r\n".repeat(90));
        let mut partial = PartialHead::new(Bytes::copy_from_slice(&text.as_bytes()[..1]));
        let mut looks = 0;
        for byte in &text.as_bytes()[1..] {
            if partial.add(&[*byte]) {
                looks += 1;
                partial = PartialHead::new(partial.into_bytes());
            }
        }
        assert!(looks <= text.len().ilog2() + 1, "{looks}");
        assert!(!partial.add(b"\r"));
        assert!(partial.add(b"\n"), "its end is there");
    }

    #[test]
    fn the_letters_of_a_part_count_twice_and_come_once() {
        let mut partial = PartialHead::new(Bytes::from(vec![b'a'; 9000]));
        assert!(!partial.add(&[b'a'; 1000]));
        assert_eq!(partial.len(), 10_000);
        assert!((20_000..30_000).contains(&partial.memory()), "{}", partial.memory());
    }
}
