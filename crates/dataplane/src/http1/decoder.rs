//! The body of a message, out of the bytes of its connection.

use bytes::{Buf, Bytes};
use http::HeaderMap;

use super::Malformed;
use super::framing::Framing;
use super::headers::read_headers;

/// As long as the line of a chunk's size may be, with its extensions.
const SIZE_LINE_BYTES_MAX: u32 = 16 * 1024;

/// As long as trailers may be.
const TRAILER_BYTES_MAX: usize = 16 * 1024;

/// As many trailers as there may be.
const TRAILERS_MAX: usize = 64;

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Part of the body.
    Data(Bytes),
    /// What follows the last chunk; the body is over.
    Trailers(HeaderMap),
    /// The body is over.
    End,
    /// Nothing is left of the input.
    More,
}

/// Where in a body we are.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// So many bytes are to come.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Ended,
}

#[derive(Debug)]
pub(crate) enum Chunked {
    /// The size of a chunk; `None` before its first digit.
    Size {
        size: Option<u64>,
        line_bytes: u32,
    },
    /// After the size, which nobody needs to understand.
    Extension {
        size: u64,
        line_bytes: u32,
    },
    /// The line feed after the size.
    SizeLineFeed {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// Carriage return and line feed after a chunk.
    DataEnd {
        is_returned: bool,
    },
    /// After the last chunk: lines, until an empty one.
    Trailers(Vec<u8>),
}

impl Chunked {
    const BEGIN: Self = Self::Size { size: None, line_bytes: 0 };
}

impl Decoder {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(0) => Self::Ended,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunked::BEGIN),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Whether the body is over.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// How many bytes are to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Ended => Some(0),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }

    /// The connection ended. Returns whether the body may end like that.
    pub(crate) fn close(&mut self) -> bool {
        let is_legal = matches!(self, Self::UntilClose | Self::Ended);
        *self = Self::Ended;
        is_legal
    }

    /// Takes what it can from the beginning of `input`.
    pub(crate) fn decode(&mut self, input: &mut Bytes) -> Result<Decoded, Malformed> {
        match self {
            Self::Ended => Ok(Decoded::End),
            _ if input.is_empty() => Ok(Decoded::More),
            Self::Length(left) => {
                let data = take(input, left);
                if *left == 0 {
                    *self = Self::Ended;
                }
                Ok(Decoded::Data(data))
            }
            Self::UntilClose => Ok(Decoded::Data(std::mem::take(input))),
            Self::Chunked(chunked) => {
                let decoded = chunked.decode(input)?;
                if matches!(decoded, Decoded::End | Decoded::Trailers(_)) {
                    *self = Self::Ended;
                }
                Ok(decoded)
            }
        }
    }
}

/// The first bytes of `input`, at most as many as are left.
fn take(input: &mut Bytes, left: &mut u64) -> Bytes {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    *left -= length as u64;
    input.split_to(length)
}

impl Chunked {
    fn decode(&mut self, input: &mut Bytes) -> Result<Decoded, Malformed> {
        while let Some(&byte) = input.first() {
            match self {
                Self::Data { left } => {
                    let data = take(input, left);
                    if *left == 0 {
                        *self = Self::DataEnd { is_returned: false };
                    }
                    return Ok(Decoded::Data(data));
                }
                Self::Trailers(lines) => {
                    lines.push(byte);
                    input.advance(1);
                    if lines.len() > TRAILER_BYTES_MAX {
                        return Err(Malformed::Chunk);
                    }
                    if *lines == b"\r\n" {
                        return Ok(Decoded::End);
                    }
                    if lines.ends_with(b"\r\n\r\n") {
                        return trailers(std::mem::take(lines)).map(Decoded::Trailers);
                    }
                }
                Self::Size { .. }
                | Self::Extension { .. }
                | Self::SizeLineFeed { .. }
                | Self::DataEnd { .. } => {
                    self.step(byte)?;
                    input.advance(1);
                }
            }
        }
        Ok(Decoded::More)
    }

    /// One byte between chunks.
    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        *self = match (&*self, byte) {
            (Self::Size { size: Some(size), .. } | Self::Extension { size, .. }, b'\r') => {
                Self::SizeLineFeed { size: *size }
            }
            (&Self::Size { size: Some(size), line_bytes }, b';' | b' ' | b'\t') => {
                Self::Extension { size, line_bytes }
            }
            (&Self::Size { size, line_bytes }, digit) => {
                let digit = char::from(digit).to_digit(16).ok_or(Malformed::Chunk)?;
                let size = size.unwrap_or(0).checked_mul(16).ok_or(Malformed::Chunk)?;
                Self::Size { size: Some(size + u64::from(digit)), line_bytes: longer(line_bytes)? }
            }
            (Self::Extension { .. }, b'\n') => return Err(Malformed::Chunk),
            (&Self::Extension { size, line_bytes }, _) => {
                Self::Extension { size, line_bytes: longer(line_bytes)? }
            }
            (Self::SizeLineFeed { size: 0 }, b'\n') => Self::Trailers(Vec::new()),
            (Self::SizeLineFeed { size }, b'\n') => Self::Data { left: *size },
            (Self::DataEnd { is_returned: false }, b'\r') => Self::DataEnd { is_returned: true },
            (Self::DataEnd { is_returned: true }, b'\n') => Self::BEGIN,
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }
}

fn longer(line_bytes: u32) -> Result<u32, Malformed> {
    if line_bytes < SIZE_LINE_BYTES_MAX { Ok(line_bytes + 1) } else { Err(Malformed::Chunk) }
}

fn trailers(lines: Vec<u8>) -> Result<HeaderMap, Malformed> {
    let lines = Bytes::from(lines);
    let mut headers = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    match httparse::parse_headers(&lines, &mut headers) {
        Ok(httparse::Status::Complete((_, headers))) => Ok(read_headers(&lines, headers)?.0),
        Ok(httparse::Status::Partial) | Err(_) => Err(Malformed::Chunk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `text` in pieces: the body, its trailers, and what was left over. `None` if it is not over.
    fn decode(
        framing: Framing,
        text: &[u8],
        piece: usize,
    ) -> Result<Option<(Vec<u8>, HeaderMap, usize)>, Malformed> {
        let mut decoder = Decoder::new(framing);
        let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
        let mut read = 0;
        for bytes in text.chunks(piece) {
            read += bytes.len();
            let mut input = Bytes::copy_from_slice(bytes);
            loop {
                match decoder.decode(&mut input)? {
                    Decoded::Data(data) => body.extend_from_slice(&data),
                    Decoded::Trailers(found) => trailers = found,
                    Decoded::End => return Ok(Some((body, trailers, text.len() - read + input.len()))),
                    Decoded::More => break,
                }
            }
        }
        Ok(decoder.is_ended().then_some((body, trailers, 0)))
    }

    #[test]
    fn chunks_are_joined_however_they_are_read() {
        let text = b"4\r\nWiki\r\n006;a=\"b\"\r\npedia \r\nE \r\nin \r\n\r\nchunks.\r\n0\r\n\r\nnext";
        for piece in 1..=text.len() {
            let (body, trailers, left) =
                decode(Framing::Chunked, text, piece).expect("legal").expect("whole");
            assert_eq!(body, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!((trailers.len(), left), (0, 4), "in pieces of {piece}");
        }
    }

    #[test]
    fn trailers_are_read_however_they_come() {
        let text = b"1\r\nx\r\n0\r\ngrpc-status: 0\r\nA:\tb\r\n\r\n";
        for piece in 1..=text.len() {
            let (body, trailers, _) = decode(Framing::Chunked, text, piece).expect("legal").expect("whole");
            assert_eq!(body, b"x");
            assert_eq!(
                (&trailers["grpc-status"], &trailers["a"]),
                (&"0".parse().unwrap(), &"b".parse().unwrap())
            );
        }
    }

    #[test]
    fn what_two_readers_could_divide_differently_is_refused() {
        let long_line = format!("1;{}\r\nx", "a".repeat(20_000));
        let long_trailer = format!("0\r\na: {}\r\n\r\n", "a".repeat(20_000));
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1\nx",
            "1;a\nx",
            "1\rx",
            "1\r\nxy",
            "1\r\nx\n",
            "10000000000000000\r\n",
            ";a\r\n",
            "0\r\nno colon\r\n\r\n",
            &long_line,
            &long_trailer,
        ] {
            assert_eq!(decode(Framing::Chunked, text.as_bytes(), 7), Err(Malformed::Chunk), "{text:.40}");
        }
    }

    #[test]
    fn a_length_ends_where_it_says_and_not_before() {
        for piece in 1..=8 {
            let (body, _, left) =
                decode(Framing::Length(5), b"12345678", piece).expect("legal").expect("whole");
            assert_eq!((&body[..], left), (&b"12345"[..], 3));
        }
        assert_eq!(decode(Framing::Length(5), b"1234", 2), Ok(None));
        let mut decoder = Decoder::new(Framing::Length(5));
        assert!(!decoder.close(), "it broke off");
        assert!(Decoder::new(Framing::UntilClose).close());
    }
}
