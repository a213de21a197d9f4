//! Reads the head of a response, and what comes before it, in whatever pieces they come.

use bytes::{Buf, Bytes};
use http::{Method, StatusCode};

use super::partial_head::PartialHead;
use super::response_head::{ResponseHead, read_response};
use super::{HeadLimits, INTERIM_BYTES_MAX, INTERIM_RESPONSES_MAX, MalformedMessage};

/// What a server says before the body of its response.
#[derive(Debug)]
pub struct ResponseReader {
    limits: HeadLimits,
    /// What was read last; behind the head, once that was found.
    unread: Bytes,
    /// What was read before that, while it is no whole head.
    partial: Option<PartialHead>,
    is_begun: bool,
    interim_responses: u32,
    interim_bytes: usize,
}

impl ResponseReader {
    /// A reader for the response to one request.
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            unread: Bytes::new(),
            partial: None,
            is_begun: false,
            interim_responses: 0,
            interim_bytes: 0,
        }
    }

    /// Hands in the bytes that were read next from the connection.
    pub fn put(&mut self, bytes: Bytes) {
        self.is_begun = true;
        self.unread = bytes;
    }

    /// Whether something is here that [`Self::take_head`] has not looked at.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether there was one byte of an answer.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// What was read behind the head.
    pub fn into_rest(self) -> Bytes {
        self.unread
    }

    /// The head of the response, if it is whole. Interim responses before it are passed over, because clients
    /// get those of our server only; of each `100 Continue` the caller is told.
    pub fn take_head(
        &mut self,
        method: &Method,
        mut on_continue: impl FnMut(),
    ) -> Result<Option<ResponseHead>, MalformedMessage> {
        while let Some(mut bytes) = self.gather()? {
            // Some apps end a body with a line too many.
            while bytes.starts_with(b"\r\n") {
                bytes.advance(2);
                self.pass_over(2)?;
            }
            if bytes.is_empty() {
                break;
            }
            let Some((head, length)) = read_response(&bytes, method, self.limits)? else {
                self.partial = Some(PartialHead::new(bytes));
                self.check_length()?;
                break;
            };
            self.unread = bytes.slice(length..);
            let status = head.response.status();
            if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
            self.interim_responses += 1;
            self.pass_over(length)?;
            if status == StatusCode::CONTINUE {
                on_continue();
            }
        }
        Ok(None)
    }

    /// What was read, with what there was of the head; `None` if it need not be looked at yet.
    fn gather(&mut self) -> Result<Option<Bytes>, MalformedMessage> {
        let fresh = std::mem::take(&mut self.unread);
        if fresh.is_empty() {
            return Ok(None);
        }
        let Some(mut partial) = self.partial.take() else { return Ok(Some(fresh)) };
        if partial.add(&fresh) {
            return Ok(Some(partial.into_bytes()));
        }
        self.partial = Some(partial);
        self.check_length()?;
        Ok(None)
    }

    fn check_length(&self) -> Result<(), MalformedMessage> {
        let is_too_long = self.partial.as_ref().is_some_and(|partial| partial.len() > self.limits.bytes);
        if is_too_long { Err(MalformedMessage::HeadTooLarge(self.limits)) } else { Ok(()) }
    }

    /// So much came before the response. An app that goes on like that for ever would keep us busy for as
    /// long.
    fn pass_over(&mut self, bytes: usize) -> Result<(), MalformedMessage> {
        self.interim_bytes += bytes;
        let is_too_much =
            self.interim_responses > INTERIM_RESPONSES_MAX || self.interim_bytes > INTERIM_BYTES_MAX;
        if is_too_much { Err(MalformedMessage::Interim) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a head in pieces of `size` and counts how often it was looked at from its beginning.
    fn looks(text: &str, size: usize) -> u32 {
        let mut reader = ResponseReader::new(HeadLimits::OUTER);
        let (mut looks, mut looked_at) = (0, 0);
        for piece in text.as_bytes().chunks(size) {
            reader.put(Bytes::copy_from_slice(piece));
            let head = reader.take_head(&Method::GET, || {}).expect("a head");
            let now = reader.partial.as_ref().map_or(looked_at, PartialHead::looked_at);
            if head.is_some() || now != looked_at {
                looks += 1;
            }
            looked_at = now;
            if let Some(head) = head {
                assert_eq!(head.response.headers().len(), 91);
                return looks;
            }
        }
        panic!("the head has an end");
    }

    #[test]
    fn a_head_in_many_reads_is_parsed_a_few_times_and_a_whole_one_once() {
        let text = format!("HTTP/1.1 200 OK\r\n{}x: y\r\n\r\n", "a-header: with a value\r\n".repeat(90));
        assert_eq!(looks(&text, text.len()), 1);
        for size in [1, 2, 7, 100, 1000] {
            let reads = text.len().div_ceil(size);
            let looks = looks(&text, size);
            assert!(looks <= reads.ilog2() + 2, "{looks} looks in {reads} reads of {size} bytes");
        }
    }
}
