//! Reads one head after the other, in whatever pieces they come.
//!
//! Nearly always a head comes whole, and is read where it lies. One that does not is gathered, see [`PartialHead`].

#[cfg(test)]
mod strictness;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::time::Sleep;

use super::head::{Head, Unreadable, read_request};
use super::wire::Wire;
use crate::drain::{Drain, Phase};
use crate::http1::PartialHead;
use crate::http2::PREFACE;
use crate::server::ServerLimits;

/// As much as is read at once while a head is awaited. Heads are shorter, and what is read waits with its request.
const READ_BYTES: usize = 8 * 1024;

/// What a client says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// See [`HeadReader::take_head`].
    Request,
    /// It speaks HTTP/2. The preface is not yet read.
    Preface,
    /// It says no more, or need not be listened to any longer.
    End,
}

/// Reads the heads of one connection.
pub(super) struct HeadReader {
    limits: ServerLimits,
    /// Whether HTTP/2 may still be spoken.
    is_first: bool,
    partial: Option<PartialHead>,
    /// What was read last. It stays where it is until somebody needs it, because it is large.
    head: Option<Head>,
    /// When the patience with it ends.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl HeadReader {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self { limits, is_first: true, partial: None, head: None, deadline: None }
    }

    /// Reads until there is a head, and leaves what follows it.
    pub(super) fn poll_next(
        &mut self,
        wire: &Wire,
        drain: &Drain,
        context: &mut Context<'_>,
    ) -> Poll<Result<Next, Unreadable>> {
        loop {
            if let Some((next, rest)) = self.take(wire.take_unread())? {
                wire.put_unread(rest);
                return Poll::Ready(Ok(next));
            }
            match wire.poll_read(READ_BYTES, context) {
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() => wire.put_unread(bytes),
                Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Ok(Next::End)),
                Poll::Pending => break,
            }
        }
        // What has arrived by now is still served. Who connected and asked nothing yet holds nothing; a drain need not wait for it.
        let is_unwanted = drain.phase() == Phase::Closing || self.partial.is_none() && wire.is_dismissed();
        if is_unwanted && !wire.has_more_in_kernel() {
            return Poll::Ready(Ok(Next::End));
        }
        if self.partial.is_none() {
            return Poll::Pending;
        }
        let deadline =
            self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limits.head_time)));
        deadline.as_mut().poll(context).map(|()| Err(Unreadable::TooSlow))
    }

    /// Whether a part of the next head is here.
    pub(super) fn has_begun(&self) -> bool {
        self.partial.is_some()
    }

    /// The head that was read.
    pub(super) fn take_head(&mut self) -> Option<Head> {
        self.head.take()
    }

    /// Takes what was read. What follows a head comes with the news of it.
    fn take(&mut self, fresh: Bytes) -> Result<Option<(Next, Bytes)>, Unreadable> {
        let Some(bytes) = self.gather(fresh) else { return self.check_length() };
        let mut bytes = bytes;
        // Some clients end a body with a line too many (RFC 9112 §2.2).
        while bytes.starts_with(b"\r\n") {
            bytes.advance(2);
        }
        if bytes.is_empty() {
            self.deadline = None;
            return Ok(None);
        }
        if self.is_first && is_preface_so_far(&bytes) {
            if bytes.len() >= PREFACE.len() {
                return Ok(Some((Next::Preface, bytes)));
            }
        } else if let Some((head, length)) = read_request(&bytes, self.limits.head)? {
            self.is_first = false;
            self.deadline = None;
            self.head = Some(head);
            return Ok(Some((Next::Request, bytes.slice(length..))));
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

    fn check_length<T>(&self) -> Result<Option<T>, Unreadable> {
        let limit = self.limits.head.bytes;
        let is_too_long = self.partial.as_ref().is_some_and(|partial| partial.len() > limit);
        if is_too_long { Err(Unreadable::TooLong { limit }) } else { Ok(None) }
    }
}

fn is_preface_so_far(bytes: &[u8]) -> bool {
    let length = bytes.len().min(PREFACE.len());
    bytes[..length] == PREFACE[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::HeadLimits;

    fn reader() -> HeadReader {
        HeadReader::new(ServerLimits::default())
    }

    /// The targets that were read out of `text` in pieces, and what follows them.
    fn targets(text: &[u8], piece: usize) -> Result<(Vec<String>, Vec<u8>), Unreadable> {
        let mut reader = reader();
        let mut found = Vec::new();
        for bytes in text.chunks(piece) {
            let mut fresh = Bytes::copy_from_slice(bytes);
            while let Some((next, rest)) = reader.take(std::mem::take(&mut fresh))? {
                assert_eq!(next, Next::Request);
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
            assert_eq!(targets(text, piece), Err(Unreadable::LineEnd), "{piece}");
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
            assert!(matches!(&read[..], [(Next::Preface, all)] if all == &PREFACE[..]), "{piece}: {read:?}");
        }
        let late = [&b"GET / HTTP/1.1\r\n\r\n"[..], PREFACE].concat();
        assert_eq!(targets(&late, late.len()), Err(Unreadable::Version));
        assert_eq!(targets(b"PRI / HTTP/1.1\r\n\r\n", 40).expect("odd, but legal").0, ["/"]);
    }

    #[test]
    fn more_than_the_limit_is_not_gathered() {
        let head = HeadLimits { bytes: 100, ..HeadLimits::OUTER };
        let limits = ServerLimits { head, ..ServerLimits::default() };
        let too_long = Err(Unreadable::TooLong { limit: 100 });
        for end in ["", "\r\n\r\n"] {
            let mut reader = HeadReader::new(limits);
            let head = format!("GET / HTTP/1.1\r\na: {}{end}", "b".repeat(100));
            assert_eq!(reader.take(Bytes::from(head)).map(|_| ()), too_long);
        }
    }
}
