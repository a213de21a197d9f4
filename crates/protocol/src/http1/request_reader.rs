//! Reads one head of a request after the other, in whatever pieces they come.
//!
//! Nearly always a head comes whole, and is read where it lies. One that does not is gathered, see
//! [`PartialHead`].

#[cfg(test)]
mod strictness;

use bytes::{Buf, Bytes};

use super::HeadLimits;
use super::odd_target;
use super::partial_head::PartialHead;
use super::request_head::{RequestHead, UnreadableRequest, read_plain};
use crate::http2::PREFACE;
use crate::target::TargetProblem;

/// What a client says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextMessage {
    /// A whole head is here, for [`RequestReader::take_head`].
    Request,
    /// It speaks HTTP/2. The preface is not yet read.
    Preface,
}

/// Reads the heads of one connection.
#[derive(Debug)]
pub struct RequestReader {
    limits: HeadLimits,
    /// Whether HTTP/2 may still be spoken.
    is_first: bool,
    partial: Option<PartialHead>,
    /// The head that was read last. It stays here until [`Self::take_head`], because it is large and moving
    /// it costs.
    head: Option<RequestHead>,
}

impl RequestReader {
    /// A reader for a new connection, on which HTTP/2 may still begin.
    pub fn new(limits: HeadLimits) -> Self {
        Self { limits, is_first: true, partial: None, head: None }
    }

    /// Sets the limits that count from now on, also for a head that has begun.
    pub fn limit_heads(&mut self, limits: HeadLimits) {
        self.limits = limits;
    }

    /// Whether a part of the next head is here.
    pub fn has_begun(&self) -> bool {
        self.partial.is_some()
    }

    /// How many bytes of the next head are here.
    pub fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, PartialHead::len)
    }

    /// How much memory the part of the next head takes that is here.
    pub fn partial_memory(&self) -> usize {
        self.partial.as_ref().map_or(0, PartialHead::memory)
    }

    /// The head that was read, while it waits to be taken.
    pub fn head(&self) -> Option<&RequestHead> {
        self.head.as_ref()
    }

    /// The head that was read.
    pub fn take_head(&mut self) -> Option<RequestHead> {
        self.head.take()
    }

    /// Takes what was read. What follows a head comes with the news of it; `None` while there is no whole
    /// one.
    pub fn take(&mut self, fresh: Bytes) -> Result<Option<(NextMessage, Bytes)>, UnreadableRequest> {
        let Some(bytes) = self.gather(fresh) else { return self.check_length() };
        let mut bytes = bytes;
        // Some clients end a body with a line too many (RFC 9112 §2.2).
        while bytes.starts_with(b"\r\n") {
            bytes.advance(2);
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        if self.is_first && is_preface_so_far(&bytes) {
            if bytes.len() >= PREFACE.len() {
                return Ok(Some((NextMessage::Preface, bytes)));
            }
        } else if let Some((head, length)) = read_request(&bytes, self.limits)? {
            self.is_first = false;
            self.head = Some(head);
            return Ok(Some((NextMessage::Request, bytes.slice(length..))));
        }
        self.partial = Some(PartialHead::new(bytes));
        self.check_length()
    }

    /// What was read together with what there was of the head; `None` if it need not be looked at yet.
    fn gather(&mut self, fresh: Bytes) -> Option<Bytes> {
        let Some(mut partial) = self.partial.take() else { return Some(fresh) };
        if partial.add(&fresh) {
            return Some(partial.into_bytes());
        }
        self.partial = Some(partial);
        None
    }

    fn check_length<T>(&self) -> Result<Option<T>, UnreadableRequest> {
        let limit = self.limits.bytes;
        let is_too_long = self.partial.as_ref().is_some_and(|partial| partial.len() > limit);
        if is_too_long { Err(UnreadableRequest::TooLong { limit }) } else { Ok(None) }
    }
}

/// Reads a head and how many bytes it takes; `None` while its end is missing.
pub(super) fn read_request(
    bytes: &Bytes,
    limits: HeadLimits,
) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
    let read = read_plain(bytes, limits);
    if let Err(
        why @ (UnreadableRequest::RequestLine
        | UnreadableRequest::Version
        | UnreadableRequest::Target(TargetProblem::Form)),
    ) = read
    {
        // Only now is the target looked at byte by byte.
        return odd_target::read(bytes, limits, why);
    }
    read
}

fn is_preface_so_far(bytes: &[u8]) -> bool {
    let length = bytes.len().min(PREFACE.len());
    bytes[..length] == PREFACE[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> RequestReader {
        RequestReader::new(HeadLimits::OUTER)
    }

    /// The targets that were read out of `text` in pieces, and what follows them.
    fn targets(text: &[u8], piece: usize) -> Result<(Vec<String>, Vec<u8>), UnreadableRequest> {
        let mut reader = reader();
        let mut found = Vec::new();
        for bytes in text.chunks(piece) {
            let mut fresh = Bytes::copy_from_slice(bytes);
            while let Some((next, rest)) = reader.take(std::mem::take(&mut fresh))? {
                assert_eq!(next, NextMessage::Request);
                found.push(reader.take_head().expect("there is one").request.uri().to_string());
                fresh = rest;
            }
        }
        Ok((found, reader.partial.map(|partial| partial.into_bytes().to_vec()).unwrap_or_default()))
    }

    #[test]
    fn heads_are_found_in_whatever_pieces_they_come() {
        let text = b"\r\nGET /1 HTTP/1.1\r\nHost: h\r\n\r\n\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3";
        for piece in 1..=text.len() {
            let (found, rest) = targets(text, piece).expect("legal");
            assert_eq!(
                (found, rest),
                (vec!["/1".to_owned(), "/2".to_owned()], b"GET /3".to_vec()),
                "{piece}"
            );
        }
    }

    #[test]
    fn a_line_that_ends_as_it_must_not_is_found_out_at_once() {
        let text = b"GET / HTTP/1.1\r\nHost: h\n\n";
        for piece in 1..=text.len() {
            assert_eq!(targets(text, piece), Err(UnreadableRequest::LineEnd), "{piece}");
        }
    }

    #[test]
    fn a_preface_is_one_from_its_first_byte_on_a_new_connection_only() {
        for piece in 1..=PREFACE.len() {
            let mut reader = reader();
            let read: Vec<_> = PREFACE
                .chunks(piece)
                .filter_map(|bytes| reader.take(Bytes::copy_from_slice(bytes)).expect("so far so good"))
                .collect();
            assert!(
                matches!(&read[..], [(NextMessage::Preface, all)] if all == &PREFACE[..]),
                "{piece}: {read:?}"
            );
        }
        let late = [&b"GET / HTTP/1.1\r\n\r\n"[..], PREFACE].concat();
        assert_eq!(targets(&late, late.len()), Err(UnreadableRequest::Version));
        assert_eq!(targets(b"PRI / HTTP/1.1\r\n\r\n", 40).expect("odd, but legal").0, ["/"]);
    }

    #[test]
    fn more_than_the_limit_is_not_gathered() {
        let limits = HeadLimits { bytes: 100, ..HeadLimits::OUTER };
        let too_long = Err(UnreadableRequest::TooLong { limit: 100 });
        for end in ["", "\r\n\r\n"] {
            let mut reader = RequestReader::new(limits);
            let head = format!("GET / HTTP/1.1\r\na: {}{end}", "b".repeat(100));
            assert_eq!(reader.take(Bytes::from(head)).map(|_| ()), too_long);
        }
    }
}
