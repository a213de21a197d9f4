//! A message on its way out: its head, then its body as it comes.

use std::cell::Cell;
use std::io::Write;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Frame;

use super::framing::BodyFraming;
use crate::fields::write_header;
use crate::headers::may_be_trailer;

/// A piece of the body up to this size is copied to what waits to be written, so that the next piece can go
/// out with it. That is as much as comes with the head of a request.
const JOINED_BYTES_MAX: usize = 8 * 1024;

/// While this much waits to be written, nothing is copied behind it.
const CROWDED_BYTES: usize = 16 * 1024;

/// The size of a new buffer: most heads are shorter.
const HEAD_BYTES: usize = 512;

/// A buffer that has grown beyond this is not kept.
const SPARE_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    /// Usually a message is written at once, so that one buffer serves all of them.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for a head. It returns to where it came from when it was written.
pub fn spare_buffer() -> Vec<u8> {
    let mut buffer = SPARE.take();
    buffer.reserve(HEAD_BYTES);
    buffer
}

/// The body is not as long as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongLength;

/// What is still to be written of a message.
#[derive(Debug)]
pub struct OutgoingMessage {
    body: UnsentBody,
    /// What goes out next: the head, or the line before a chunk, or trailers.
    before: Vec<u8>,
    before_written: usize,
    /// After that, a piece of the body.
    data: Bytes,
    /// After that, the end of a chunk.
    after: &'static [u8],
    is_begun: bool,
}

/// Which of its body is still to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsentBody {
    Length(u64),
    Chunks,
    UntilClose,
    Complete,
}

impl OutgoingMessage {
    /// A message with this head.
    pub fn new(head: Vec<u8>, framing: BodyFraming) -> Self {
        let body = match framing {
            // A message without a body is whole with its head, in one write.
            BodyFraming::Length(0) => UnsentBody::Complete,
            BodyFraming::Length(length) => UnsentBody::Length(length),
            BodyFraming::Chunked => UnsentBody::Chunks,
            BodyFraming::UntilClose => UnsentBody::UntilClose,
        };
        Self { body, before: head, before_written: 0, data: Bytes::new(), after: b"", is_begun: false }
    }

    /// Whether the end of the message was written to the peer.
    pub fn is_done(&self) -> bool {
        matches!(self.body, UnsentBody::Complete) && self.is_written()
    }

    /// Whether any byte of the message was written to the peer.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Whether all of the head was written, and perhaps more.
    pub fn is_head_written(&self) -> bool {
        self.is_begun && self.before.is_empty()
    }

    /// Whether nothing is there to be written now.
    pub fn is_written(&self) -> bool {
        self.before.is_empty() && self.data.is_empty() && self.after.is_empty()
    }

    /// How many bytes are still to be written, once all of the body was taken.
    pub fn rest(&self) -> Option<usize> {
        let written = self.before_written;
        matches!(self.body, UnsentBody::Complete)
            .then(|| self.before.len() - written + self.data.len() + self.after.len())
    }

    /// Whether a piece of the body may be taken: what is there already goes out together, because each write
    /// costs the kernel far more than a copy. Not before the end of the last chunk is out: what the next one
    /// puts before its data would overtake it. And not while the peer takes nothing: small pieces would pile
    /// up behind the head.
    pub fn wants_body(&self) -> bool {
        let is_crowded = self.before.len() >= CROWDED_BYTES;
        !is_crowded
            && self.data.is_empty()
            && self.after.is_empty()
            && !matches!(self.body, UnsentBody::Complete)
    }

    /// Takes what comes next of the body; `None` is its end.
    pub fn take(&mut self, frame: Option<Frame<Bytes>>) -> Result<(), WrongLength> {
        let Some(frame) = frame else { return self.end(None) };
        match frame.into_data() {
            Ok(data) => self.take_data(data),
            Err(frame) => self.end(frame.into_trailers().ok().as_ref()),
        }
    }

    /// Takes the piece that comes next of the body.
    pub fn take_data(&mut self, data: Bytes) -> Result<(), WrongLength> {
        // A chunk of no bytes is the end of a body (RFC 9112 §7.1).
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.body {
            UnsentBody::Length(left) => {
                // Not one byte beyond: the peer would read it as the beginning of the next message.
                *left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
                if *left == 0 {
                    self.body = UnsentBody::Complete;
                }
            }
            UnsentBody::Chunks => {
                write!(self.before, "{:X}\r\n", data.len()).expect("writing to memory does not fail");
                self.after = b"\r\n";
            }
            UnsentBody::UntilClose => {}
            UnsentBody::Complete => return Err(WrongLength),
        }
        if data.len() <= JOINED_BYTES_MAX {
            if self.before.capacity() == 0 {
                self.before = spare_buffer();
            }
            self.before.extend_from_slice(&data);
            self.before.extend_from_slice(self.after);
            self.after = b"";
        } else {
            self.data = data;
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), WrongLength> {
        match self.body {
            // Less than the head promised, and nothing can be said any more: only closing the connection
            // keeps the peer from taking the next message for the rest of this one.
            UnsentBody::Length(_) => return Err(WrongLength),
            UnsentBody::Chunks => {
                self.before.extend_from_slice(b"0\r\n");
                // Never one that frames or routes a message: there are readers that merge trailers into the
                // headers, and obey them.
                for (name, value) in trailers.into_iter().flatten().filter(|(name, _)| may_be_trailer(name)) {
                    write_header(name, value, &mut self.before);
                }
                self.before.extend_from_slice(b"\r\n");
            }
            UnsentBody::UntilClose | UnsentBody::Complete => {}
        }
        self.body = UnsentBody::Complete;
        Ok(())
    }

    /// What is there to be written, in this order; none of the three where there is nothing.
    pub fn pieces(&self) -> [&[u8]; 3] {
        [&self.before[self.before_written..], &self.data[..], self.after]
    }

    /// So many bytes of the pieces were written.
    pub fn advance(&mut self, mut written: usize) {
        self.is_begun = true;
        let of_before = written.min(self.before.len() - self.before_written);
        self.before_written += of_before;
        written -= of_before;
        // Given back now and not with the message: a message that waits for the rest of a slow body keeps no
        // buffer meanwhile.
        if self.before_written == self.before.len() {
            recycle(&mut self.before);
            self.before_written = 0;
        }
        let of_data = written.min(self.data.len());
        self.data.advance(of_data);
        // An empty piece still holds the whole buffer that it was cut from.
        if of_data > 0 && self.data.is_empty() {
            self.data = Bytes::new();
        }
        self.after = &self.after[written - of_data..];
    }
}

/// Leaves an empty buffer behind that holds nothing.
fn recycle(buffer: &mut Vec<u8>) {
    let mut written = std::mem::take(buffer);
    if (1..=SPARE_BYTES_MAX).contains(&written.capacity()) {
        written.clear();
        SPARE.set(written);
    }
}

#[cfg(test)]
mod tests {

    use http::HeaderValue;

    use super::*;

    /// Writes what is there, a few bytes at a time.
    fn flush(outgoing: &mut OutgoingMessage, out: &mut Vec<u8>) {
        while !outgoing.is_written() {
            let taken: Vec<u8> = outgoing.pieces().concat().into_iter().take(1000).collect();
            outgoing.advance(taken.len());
            out.extend(taken);
        }
    }

    fn data(text: &str) -> Frame<Bytes> {
        Frame::data(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// What arrives of a message with these frames.
    fn written(framing: BodyFraming, frames: Vec<Frame<Bytes>>) -> Result<String, WrongLength> {
        let mut out = Vec::new();
        let mut head = spare_buffer();
        head.extend_from_slice(b"head;");
        let mut outgoing = OutgoingMessage::new(head, framing);
        for frame in frames.into_iter().map(Some).chain([None]) {
            outgoing.take(frame)?;
            flush(&mut outgoing, &mut out);
        }
        assert_eq!((outgoing.is_done(), outgoing.rest()), (true, Some(0)));
        Ok(String::from_utf8(out).expect("ASCII"))
    }

    #[test]
    fn a_body_is_framed_as_its_head_says() {
        let long = "x".repeat(JOINED_BYTES_MAX + 1);
        let chunked = format!("head;3\r\nabc\r\n2001\r\n{long}\r\n0\r\n\r\n");
        let plain = format!("head;abc{long}");
        let frames = || vec![data("abc"), data(""), data(&long)];
        assert_eq!(written(BodyFraming::Chunked, frames()), Ok(chunked));
        assert_eq!(written(BodyFraming::UntilClose, frames()), Ok(plain.clone()));
        let length = 3 + long.len() as u64;
        assert_eq!(written(BodyFraming::Length(length), frames()), Ok(plain));
        assert_eq!(written(BodyFraming::Length(length + 1), frames()), Err(WrongLength));
        assert_eq!(written(BodyFraming::Length(length - 1), frames()), Err(WrongLength));
    }

    #[test]
    fn trailers_follow_the_last_chunk_but_never_those_that_frame_a_message() {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        for kept_back in ["content-length", "upgrade", "x-forwarded-for", "ebb-error", "ebb_error"] {
            trailers.insert(kept_back, HeaderValue::from_static("7"));
        }
        let frames = vec![data("a"), Frame::trailers(trailers)];
        let expected = "head;1\r\na\r\n0\r\nx-sum: 1\r\n\r\n".to_owned();
        assert_eq!(written(BodyFraming::Chunked, frames), Ok(expected));
    }

    #[test]
    fn small_pieces_do_not_pile_up_while_the_peer_takes_nothing() {
        let mut outgoing = OutgoingMessage::new(b"head;".to_vec(), BodyFraming::Chunked);
        let mut taken = 0;
        while outgoing.wants_body() {
            outgoing.take(Some(data("piece"))).expect("chunks have any length");
            taken += 1;
        }
        assert!(taken > 1, "the first go with the head");
        assert!(outgoing.before.len() < CROWDED_BYTES + JOINED_BYTES_MAX);
        flush(&mut outgoing, &mut Vec::new());
        assert!(outgoing.wants_body());
    }

    #[test]
    fn a_small_piece_waits_for_a_large_one_that_is_there_too() {
        for framing in [BodyFraming::Chunked, BodyFraming::UntilClose, BodyFraming::Length(100_000)] {
            let mut outgoing = OutgoingMessage::new(b"head;".to_vec(), framing);
            for (length, is_more_wanted) in
                [(1, true), (JOINED_BYTES_MAX, true), (JOINED_BYTES_MAX + 1, false)]
            {
                outgoing.take(Some(data(&"x".repeat(length)))).expect("the body may be as long");
                assert_eq!(outgoing.wants_body(), is_more_wanted, "{framing:?} after {length} bytes");
            }
        }
    }

    #[test]
    fn a_chunk_never_overtakes_the_end_of_the_one_before() {
        let mut out = Vec::new();
        let mut outgoing = OutgoingMessage::new(Vec::new(), BodyFraming::Chunked);
        // The kernel took everything but the last byte of a chunk.
        outgoing.after = b"\n";
        assert!(!outgoing.wants_body());
        flush(&mut outgoing, &mut out);
        for frame in [Some(data("a")), None] {
            assert!(outgoing.wants_body());
            outgoing.take(frame).expect("chunks have any length");
            flush(&mut outgoing, &mut out);
        }
        assert_eq!(String::from_utf8(out).expect("ASCII"), "\n1\r\na\r\n0\r\n\r\n");
    }
}
