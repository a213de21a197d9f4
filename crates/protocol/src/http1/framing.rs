//! What a head says of its own message.

use crate::content_length::parse_length;
use crate::fields::FieldName;

/// How the end of a message's body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// It has so many bytes.
    Length(u64),
    /// The body is divided into chunks; an empty one ends it.
    Chunked,
    /// The peer closes after it.
    UntilClose,
}

/// What the headers say of the message and its connection. One look at each header, while it is read, is
/// cheaper than a search for each name.
#[derive(Debug, Default)]
pub(crate) struct FramingHeaders {
    /// How the message is encoded for its transfer, if it says so.
    pub(crate) coding: Option<TransferCoding>,
    /// The value of the last `Content-Length`.
    pub(crate) length: Option<u64>,
    /// How many lengths there are.
    pub(crate) lengths: u32,
    /// Whether a length is no number, or two differ.
    pub(crate) is_length_ambiguous: bool,
    /// Whether the sender waits for `100 Continue`.
    pub(crate) expects_continue: bool,
    /// What is to become of the connection.
    pub(crate) connection: ConnectionOptions,
}

/// What the message says of its encoding for the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferCoding {
    /// In chunks, and nothing else.
    Chunked,
    /// In chunks at last, after something that we do not undo.
    ChunkedAtLast,
    /// In something that we do not know.
    Unknown,
}

/// The words of `Connection` that concern us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionOptions {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: bool,
}

impl FramingHeaders {
    /// Takes one header into account, in the order of the head.
    pub(super) fn note(&mut self, field: FieldName, value: &[u8]) {
        match field {
            FieldName::TransferEncoding => self.coding = Some(TransferCoding::of(value, self.coding)),
            FieldName::ContentLength => self.note_length(parse_length(value)),
            FieldName::Connection => self.connection.note(value),
            FieldName::Expect => self.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            FieldName::Passing
            | FieldName::Host
            | FieldName::Date
            | FieldName::UserAgent
            | FieldName::ContentType
            | FieldName::Dropped
            | FieldName::OfHops => {}
        }
    }

    fn note_length(&mut self, length: Option<u64>) {
        let differs = self.lengths > 0 && self.length != length;
        self.is_length_ambiguous |= length.is_none() || differs;
        self.lengths += 1;
        self.length = length;
    }

    /// Whether the connection may be used again.
    pub(crate) fn keeps_alive(&self, is_http10: bool) -> bool {
        !self.connection.close && (!is_http10 || self.connection.keep_alive)
    }
}

impl TransferCoding {
    /// Of one more line of `Transfer-Encoding` after those `before`.
    fn of(value: &[u8], before: Option<Self>) -> Self {
        let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default();
        if !last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            Self::Unknown
        } else if last.len() == value.len() && before.is_none() {
            Self::Chunked
        } else {
            Self::ChunkedAtLast
        }
    }
}

impl ConnectionOptions {
    pub(crate) fn note(&mut self, value: &[u8]) {
        for word in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= word.eq_ignore_ascii_case(b"close");
            self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= word.eq_ignore_ascii_case(b"upgrade");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_and_between_others() {
        let mut words = ConnectionOptions::default();
        words.note(b"foo,\tClose , keep-alive2");
        words.note(b"UPGRADE");
        assert_eq!(words, ConnectionOptions { close: true, keep_alive: false, upgrade: true });
    }
}
