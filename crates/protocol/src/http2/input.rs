//! Frames out of the bytes of a connection.
//!
//! The bytes come in pieces of the thread's read buffer. A frame that is whole is looked at where it lies; a
//! part of a frame is put by until the rest comes, except for DATA, which is passed on as it comes. So a
//! connection that waits holds nothing.

use bytes::{Buf, Bytes, BytesMut};

use super::frame::{END_STREAM, FRAME_HEAD_BYTES, Fault, FrameHead, FrameKind, PADDED, PAYLOAD_BYTES_MAX};
use crate::pieces::COPIED_BYTES_MAX;

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputPiece {
    /// A whole frame of any kind but DATA.
    Frame(FrameHead, BytesMut),
    /// A part of the payload of a DATA frame.
    Data(DataPiece),
}

/// A part of the payload of one DATA frame, or all of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DataPiece {
    pub(super) stream: u32,
    pub(super) bytes: Bytes,
    /// How much of the windows it takes: padding counts.
    pub(super) counts_for: usize,
    pub(super) is_end: bool,
}

/// Where in the stream of frames we are.
#[derive(Debug, Default)]
pub(super) struct FrameInput {
    /// The beginning of a frame that is not whole.
    partial: BytesMut,
    /// The DATA frame in the middle of which we are.
    data: Option<DataFrame>,
}

#[derive(Debug)]
struct DataFrame {
    stream: u32,
    /// How much of the body is to come, and after it of the padding.
    left: usize,
    padding: usize,
    /// 1 if the byte with the length of the padding is still to be counted, with the next piece; otherwise 0.
    uncounted: usize,
    is_end: bool,
}

impl FrameInput {
    /// The next piece; `None` when nothing is left of `read`.
    pub(super) fn next(&mut self, read: &mut BytesMut) -> Result<Option<InputPiece>, Fault> {
        loop {
            // No frame begins inside another one: bytes that look like a head here are a piece of a stream's
            // body.
            if let Some(data) = &mut self.data {
                let piece = data.take(read);
                if data.left + data.padding == 0 {
                    self.data = None;
                }
                return Ok(piece);
            }
            let Some(head) = self.head(read)? else { return Ok(None) };
            if head.kind == FrameKind::Data {
                match self.begin_data(head, read)? {
                    Some(data) => self.data = Some(data),
                    None => return Ok(None),
                }
                continue;
            }
            let Some(mut frame) = self.whole(FRAME_HEAD_BYTES + head.length, read) else { return Ok(None) };
            frame.advance(FRAME_HEAD_BYTES);
            return Ok(Some(InputPiece::Frame(head, frame)));
        }
    }

    /// Whether a frame other than DATA has come in part.
    pub(super) fn is_within_frame(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether a DATA frame has come in part.
    pub(super) fn is_within_data(&self) -> bool {
        self.data.is_some()
    }

    /// The head of the next frame, which is left where it is.
    fn head(&mut self, read: &mut BytesMut) -> Result<Option<FrameHead>, Fault> {
        // Looked at without being taken: `whole` takes it together with its payload, in one piece if that is
        // here.
        let available = if self.partial.is_empty() {
            &read[..]
        } else {
            self.gather(FRAME_HEAD_BYTES, read);
            &self.partial[..]
        };
        let Some(bytes) = available.first_chunk() else {
            self.put_by(read);
            return Ok(None);
        };
        let head = FrameHead::read(*bytes);
        // Before anything of it is put by: how much we keep for a peer is not the peer's choice.
        if head.length > PAYLOAD_BYTES_MAX {
            return Err(Fault::size("a frame longer than MAX_FRAME_SIZE"));
        }
        Ok(Some(head))
    }

    fn begin_data(&mut self, head: FrameHead, read: &mut BytesMut) -> Result<Option<DataFrame>, Fault> {
        let padding_bytes = usize::from(head.has(PADDED));
        if head.stream == 0 {
            return Err(Fault::protocol("DATA on no stream"));
        }
        if head.length < padding_bytes {
            return Err(Fault::size("a DATA frame without its padding"));
        }
        // The first byte of a padded payload says how long the padding is. Until that byte is here, the
        // length of the body in the frame is unknown.
        let Some(begin) = self.whole(FRAME_HEAD_BYTES + padding_bytes, read) else { return Ok(None) };
        let padding = begin.get(FRAME_HEAD_BYTES).copied().map_or(0, usize::from);
        let left = (head.length - padding_bytes)
            .checked_sub(padding)
            .ok_or(Fault::protocol("padding longer than its frame"))?;
        let is_end = head.has(END_STREAM);
        Ok(Some(DataFrame { stream: head.stream, left, padding, uncounted: padding_bytes, is_end }))
    }

    /// Takes so many bytes from the beginning, once they are there.
    fn whole(&mut self, length: usize, read: &mut BytesMut) -> Option<BytesMut> {
        // Nearly every frame: it is cut out of what was read, and no byte is copied.
        if self.partial.is_empty() && read.len() >= length {
            return Some(read.split_to(length));
        }
        self.gather(length, read);
        (self.partial.len() >= length).then(|| std::mem::take(&mut self.partial))
    }

    /// Moves bytes to the part that was put by, until it is so long.
    fn gather(&mut self, length: usize, read: &mut BytesMut) {
        // Not a byte more: what follows is another frame, which may lie here whole.
        let missing = length.saturating_sub(self.partial.len()).min(read.len());
        if missing > 0 {
            self.partial.reserve(length - self.partial.len());
            self.partial.extend_from_slice(&read.split_to(missing));
        }
    }

    fn put_by(&mut self, read: &mut BytesMut) {
        self.partial.extend_from_slice(read);
        read.clear();
    }
}

impl DataFrame {
    /// Takes the part of the frame that is there. Every frame gives at least one piece, because the end of a
    /// stream may be an empty one.
    fn take(&mut self, read: &mut BytesMut) -> Option<InputPiece> {
        if read.is_empty() && self.left + self.padding > 0 {
            return None;
        }
        let length = self.left.min(read.len());
        self.left -= length;
        let bytes = if length == 0 {
            Bytes::new()
        } else if length <= COPIED_BYTES_MAX {
            let bytes = Bytes::copy_from_slice(&read[..length]);
            read.advance(length);
            bytes
        } else {
            read.split_to(length).freeze()
        };
        // Padding is behind all of the body. No reader gets it, but the peer has paid for it with its
        // windows, and gets it back like the body (RFC 9113 §6.1).
        let padding = if self.left == 0 { self.padding.min(read.len()) } else { 0 };
        self.padding -= padding;
        read.advance(padding);
        let counts_for = length + padding + std::mem::take(&mut self.uncounted);
        // Not with the last byte of the body: the frame is not over, and padding after the end of a stream
        // would belong to none.
        let is_end = self.is_end && self.left == 0 && self.padding == 0;
        Some(InputPiece::Data(DataPiece { stream: self.stream, bytes, counts_for, is_end }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{END_HEADERS, write_frame};
    use super::*;

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        write_frame(FrameKind::Headers, END_HEADERS, 1, b"block", &mut out);
        write_frame(FrameKind::Data, 0, 1, b"hello", &mut out);
        write_frame(FrameKind::Data, PADDED, 1, b"\x03abc\0\0\0", &mut out);
        write_frame(FrameKind::Settings, 1, 0, b"", &mut out);
        write_frame(FrameKind::Data, END_STREAM, 1, b"", &mut out);
        write_frame(FrameKind::Data, END_STREAM | PADDED, 3, b"\x00", &mut out);
        write_frame(FrameKind::Unknown, 0, 9, b"whatever", &mut out);
        out
    }

    #[test]
    fn frames_are_the_same_however_they_are_read() {
        let bytes = written();
        for step in 1..=bytes.len() {
            let mut input = FrameInput::default();
            let (mut frames, mut body, mut counted, mut ends) = (Vec::new(), Vec::new(), 0, Vec::new());
            for part in bytes.chunks(step) {
                let mut read = BytesMut::from(part);
                while let Some(piece) = input.next(&mut read).expect("legal") {
                    match piece {
                        InputPiece::Frame(head, payload) => frames.push((head.kind, payload.to_vec())),
                        InputPiece::Data(DataPiece { stream, bytes, counts_for, is_end }) => {
                            body.extend_from_slice(&bytes);
                            counted += counts_for;
                            if is_end {
                                ends.push(stream);
                            }
                        }
                    }
                }
                assert!(read.is_empty(), "in pieces of {step}");
            }
            let expected = [
                (FrameKind::Headers, b"block".to_vec()),
                (FrameKind::Settings, Vec::new()),
                (FrameKind::Unknown, b"whatever".to_vec()),
            ];
            assert_eq!(frames, expected, "in pieces of {step}");
            assert_eq!((&body[..], counted, &ends[..]), (&b"helloabc"[..], 5 + 7 + 1, &[1, 3][..]));
        }
    }

    #[test]
    fn a_frame_that_cannot_be_is_a_fault() {
        let fault = |kind, flags, stream, payload: &[u8]| {
            let mut out = Vec::new();
            write_frame(kind, flags, stream, payload, &mut out);
            FrameInput::default().next(&mut BytesMut::from(&out[..])).expect_err("a fault")
        };
        let long = vec![0; PAYLOAD_BYTES_MAX + 1];
        assert_eq!(fault(FrameKind::Ping, 0, 0, &long), Fault::size("a frame longer than MAX_FRAME_SIZE"));
        assert_eq!(fault(FrameKind::Data, 0, 0, b"x"), Fault::protocol("DATA on no stream"));
        assert_eq!(fault(FrameKind::Data, PADDED, 1, b""), Fault::size("a DATA frame without its padding"));
        assert_eq!(
            fault(FrameKind::Data, PADDED, 1, b"\x02x"),
            Fault::protocol("padding longer than its frame")
        );
    }
}
