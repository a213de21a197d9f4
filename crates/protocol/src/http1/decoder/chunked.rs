//! Chunks (RFC 9112 §7.1): where one ends, and what follows the last.
//!
//! Everything between the data is read to the letter, because a reader before us or behind us may be less
//! strict, and would then find another end of the message than we do: a size is hexadecimal digits, what
//! follows it is nothing or extensions as the grammar has them, and every line ends with carriage return and
//! line feed. One thing more than the grammar is taken: blanks behind a size. Old servers pad their sizes
//! with them, and all readers that take them read the same size.

use bytes::{Buf, Bytes};
use http::HeaderMap;
use memchr::memchr;

use super::super::MalformedMessage;
use super::piece::{DecodedPiece, take};
use crate::fields::{is_token_byte, map_of};

/// As long as the line of a chunk's size may be, with its extensions.
const SIZE_LINE_BYTES_MAX: u32 = 16 * 1024;

/// As long as trailers may be, with the empty line behind them. What we write is never longer than what we
/// read, so the next hop of ours takes it too.
const TRAILER_BYTES_MAX: usize = 16 * 1024;

/// As many trailers as there may be.
const TRAILERS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) enum ChunkedState {
    /// The size of a chunk; `None` before its first digit.
    Size {
        size: Option<u64>,
        line_bytes: u32,
    },
    /// After the size, which is all that a reader needs.
    Extension {
        size: u64,
        line_bytes: u32,
        part: ExtensionPart,
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

/// Where in the extensions of a chunk we are: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ]
/// )`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtensionPart {
    /// Blanks right after the size.
    Padding,
    /// After a semicolon, before the name of an extension.
    Begin,
    Name,
    /// Blanks between the name of an extension and what follows.
    NameEnd,
    /// After an equals sign, before the value of an extension.
    Equals,
    Token,
    Quoted,
    /// The character after a backslash.
    Escaped,
    /// After the closing quote of a quoted value.
    QuotedEnd,
    /// Blanks between the value of an extension and what follows.
    ValueEnd,
}

impl ExtensionPart {
    /// The part that follows with this byte; `None` if it has no place here.
    fn next(self, byte: u8) -> Option<Self> {
        let is_blank = matches!(byte, b' ' | b'\t');
        let next = match (self, byte) {
            (Self::Padding, _) if is_blank => Self::Padding,
            (
                Self::Padding | Self::Name | Self::NameEnd | Self::Token | Self::QuotedEnd | Self::ValueEnd,
                b';',
            ) => Self::Begin,
            (Self::Begin, _) if is_blank => Self::Begin,
            (Self::Begin | Self::Name, _) if is_token_byte(byte) => Self::Name,
            (Self::Name | Self::NameEnd, b'=') => Self::Equals,
            (Self::Name | Self::NameEnd, _) if is_blank => Self::NameEnd,
            (Self::Equals, _) if is_blank => Self::Equals,
            (Self::Equals, b'"') | (Self::Escaped, b'\t' | b' '..=b'~' | 0x80..) => Self::Quoted,
            (Self::Equals | Self::Token, _) if is_token_byte(byte) => Self::Token,
            (Self::Quoted, b'"') => Self::QuotedEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted, b'\t' | b' '..=b'~' | 0x80..) => Self::Quoted,
            (Self::Token | Self::QuotedEnd | Self::ValueEnd, _) if is_blank => Self::ValueEnd,
            _ => return None,
        };
        Some(next)
    }

    /// Whether the line may end here.
    fn may_end(self) -> bool {
        matches!(self, Self::Padding | Self::Name | Self::Token | Self::QuotedEnd)
    }
}

impl ChunkedState {
    pub(super) const BEGIN: Self = Self::Size { size: None, line_bytes: 0 };

    pub(super) fn decode(&mut self, input: &mut Bytes) -> Result<DecodedPiece, MalformedMessage> {
        while let Some(&byte) = input.first() {
            match self {
                Self::Data { left } => {
                    let data = take(input, left);
                    if *left == 0 {
                        *self = Self::DataEnd { is_returned: false };
                    }
                    return Ok(DecodedPiece::Data(data));
                }
                Self::Trailers(lines) => {
                    if let Some(ended) = take_line(lines, input)? {
                        return Ok(ended);
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
        Ok(DecodedPiece::More)
    }

    /// Takes one byte of what stands between the data of two chunks.
    fn step(&mut self, byte: u8) -> Result<(), MalformedMessage> {
        *self = match (&*self, byte) {
            (&Self::Size { size: Some(size), .. }, b'\r') => Self::SizeLineFeed { size },
            (&Self::Extension { size, part, .. }, b'\r') if part.may_end() => Self::SizeLineFeed { size },
            (&Self::Size { size: Some(size), line_bytes }, b';') => {
                Self::Extension { size, line_bytes, part: ExtensionPart::Begin }
            }
            (&Self::Size { size: Some(size), line_bytes }, b' ' | b'\t') => {
                Self::Extension { size, line_bytes, part: ExtensionPart::Padding }
            }
            (&Self::Size { size, line_bytes }, digit) => {
                let digit = char::from(digit).to_digit(16).ok_or(MalformedMessage::Chunk)?;
                let size = size.unwrap_or(0).checked_mul(16).ok_or(MalformedMessage::Chunk)?;
                Self::Size { size: Some(size + u64::from(digit)), line_bytes: longer(line_bytes)? }
            }
            (&Self::Extension { size, line_bytes, part }, _) => {
                let part = part.next(byte).ok_or(MalformedMessage::Chunk)?;
                Self::Extension { size, line_bytes: longer(line_bytes)?, part }
            }
            (Self::SizeLineFeed { size: 0 }, b'\n') => Self::Trailers(Vec::new()),
            (Self::SizeLineFeed { size }, b'\n') => Self::Data { left: *size },
            (Self::DataEnd { is_returned: false }, b'\r') => Self::DataEnd { is_returned: true },
            (Self::DataEnd { is_returned: true }, b'\n') => Self::BEGIN,
            _ => return Err(MalformedMessage::Chunk),
        };
        Ok(())
    }
}

fn longer(line_bytes: u32) -> Result<u32, MalformedMessage> {
    if line_bytes < SIZE_LINE_BYTES_MAX { Ok(line_bytes + 1) } else { Err(MalformedMessage::Chunk) }
}

/// Takes what there is of a line behind the last chunk. The body is over with an empty one.
fn take_line(lines: &mut Vec<u8>, input: &mut Bytes) -> Result<Option<DecodedPiece>, MalformedMessage> {
    if lines.is_empty() && input.starts_with(b"\r\n") {
        // Nearly always, and then nothing need be gathered.
        input.advance(2);
        return Ok(Some(DecodedPiece::End));
    }
    let line_feed = memchr(b'\n', input);
    let length = line_feed.map_or(input.len(), |at| at + 1);
    if lines.len() + length > TRAILER_BYTES_MAX {
        return Err(MalformedMessage::Trailers);
    }
    lines.extend_from_slice(&input[..length]);
    if line_feed.is_some() {
        if !lines.ends_with(b"\r\n") {
            return Err(MalformedMessage::Trailers);
        }
        if lines.len() == 2 {
            input.advance(length);
            return Ok(Some(DecodedPiece::End));
        }
        if lines.ends_with(b"\r\n\r\n") {
            let trailers = trailers(std::mem::take(lines))?;
            input.advance(length);
            return Ok(Some(DecodedPiece::Trailers(trailers)));
        }
    }
    input.advance(length);
    Ok(None)
}

fn trailers(lines: Vec<u8>) -> Result<HeaderMap, MalformedMessage> {
    let lines = Bytes::from(lines);
    let mut headers = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    match httparse::parse_headers(&lines, &mut headers) {
        // Every line was seen to end with carriage return and line feed, so what was read is all there is.
        Ok(httparse::Status::Complete((length, headers))) if length == lines.len() => {
            map_of(&lines, headers).ok_or(MalformedMessage::Trailers)
        }
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => {
            Err(MalformedMessage::Trailers)
        }
    }
}
