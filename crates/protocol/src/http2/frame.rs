//! The frames of HTTP/2 (RFC 9113 §4 and §6), how they begin, and what the small ones carry.

use std::fmt;

/// How long the head of a frame is.
pub const FRAME_HEAD_BYTES: usize = 9;

/// As long as the payload of a frame may be, in both directions: the least that every peer must accept.
/// Longer frames would only delay what else is to be sent.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16_384;

/// The window of a connection or stream of which nothing else was said.
pub(super) const WINDOW_DEFAULT: u32 = 65_535;

/// As large as a window may be.
pub(super) const WINDOW_MAX: i64 = (1 << 31) - 1;

/// What a client begins with, before its first frame.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Nothing more follows on the stream.
pub const END_STREAM: u8 = 0x1;
/// What was settled or asked is acknowledged.
pub const ACK: u8 = 0x1;
/// The frame ends the head: no CONTINUATION follows.
pub const END_HEADERS: u8 = 0x4;
/// The payload begins with the length of its padding.
pub const PADDED: u8 = 0x8;
/// The payload begins with a priority.
pub const PRIORITY: u8 = 0x20;

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The next bytes of a stream's body, perhaps with padding.
    Data,
    /// A head, or its beginning.
    Headers,
    /// Nothing that a reader looks at any more.
    Priority,
    /// A stream is broken off (`RST_STREAM`).
    Reset,
    /// The settings of the peer, or the acknowledgement of ours.
    Settings,
    /// A promise of a pushed response, which no peer may send here.
    PushPromise,
    /// A question that only asks for an answer.
    Ping,
    /// The sender takes no further streams on the connection (`GOAWAY`).
    GoAway,
    /// Room for more of a body.
    WindowUpdate,
    /// The next part of a head that HEADERS has begun.
    Continuation,
    /// An extension that we did not agree on; to be ignored.
    Unknown,
}

impl FrameKind {
    const ALL: [Self; 10] = [
        Self::Data,
        Self::Headers,
        Self::Priority,
        Self::Reset,
        Self::Settings,
        Self::PushPromise,
        Self::Ping,
        Self::GoAway,
        Self::WindowUpdate,
        Self::Continuation,
    ];

    fn of(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown)
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The length of the payload behind the head, in bytes.
    pub length: usize,
    /// The kind of the frame, which decides how its payload is read.
    pub kind: FrameKind,
    /// What its kind says of it.
    pub flags: u8,
    /// 0 for the connection itself.
    pub stream: u32,
}

impl FrameHead {
    /// Reads the nine bytes with which each frame begins.
    pub fn read(bytes: [u8; FRAME_HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind: FrameKind::of(kind),
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
        }
    }

    /// The nine bytes with which the frame begins on the wire.
    pub fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let length = u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [
            length[1],
            length[2],
            length[3],
            self.kind as u8,
            self.flags,
            stream[0],
            stream[1],
            stream[2],
            stream[3],
        ]
    }

    /// Whether this flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes the head of a frame and its payload.
pub fn write_frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&FrameHead { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Writes a head, in as many frames as it takes; `write_block` gives its compressed fields.
pub(super) fn write_headers(
    stream: u32,
    flags: u8,
    out: &mut Vec<u8>,
    write_block: impl FnOnce(&mut Vec<u8>),
) {
    let begin = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    let block_begin = out.len();
    write_block(out);
    let length = out.len() - block_begin;
    if length <= PAYLOAD_BYTES_MAX {
        let head = FrameHead { length, kind: FrameKind::Headers, flags: flags | END_HEADERS, stream };
        out[begin..block_begin].copy_from_slice(&head.bytes());
        return;
    }
    let block = out.split_off(block_begin);
    out.truncate(begin);
    let mut pieces = block.chunks(PAYLOAD_BYTES_MAX).peekable();
    let mut kind = (FrameKind::Headers, flags);
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() { END_HEADERS } else { 0 };
        write_frame(kind.0, kind.1 | end, stream, piece, out);
        kind = (FrameKind::Continuation, 0);
    }
}

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The connection or the stream ends without a fault.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Something unexpected went wrong here.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than it was allowed to.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// The stream was half closed already.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was refused before anything was done for it.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A head could not be read.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer makes work out of all proportion.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "NO_ERROR",
            1 => "PROTOCOL_ERROR",
            2 => "INTERNAL_ERROR",
            3 => "FLOW_CONTROL_ERROR",
            4 => "SETTINGS_TIMEOUT",
            5 => "STREAM_CLOSED",
            6 => "FRAME_SIZE_ERROR",
            7 => "REFUSED_STREAM",
            8 => "CANCEL",
            9 => "COMPRESSION_ERROR",
            10 => "CONNECT_ERROR",
            11 => "ENHANCE_YOUR_CALM",
            12 => "INADEQUATE_SECURITY",
            13 => "HTTP_1_1_REQUIRED",
            other => return write!(formatter, "error {other:#x}"),
        };
        formatter.write_str(name)
    }
}

/// What a peer did that it must not do, and what ends for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Stream(u32, ErrorCode),
    Connection(ErrorCode, &'static str),
}

impl Fault {
    pub(super) fn protocol(what: &'static str) -> Self {
        Self::Connection(ErrorCode::PROTOCOL_ERROR, what)
    }

    pub(super) fn size(what: &'static str) -> Self {
        Self::Connection(ErrorCode::FRAME_SIZE_ERROR, what)
    }
}

/// What a peer has settled (RFC 9113 §6.5.2), as far as it concerns us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// How many streams it takes at once, if it has said so.
    pub(super) streams_max: Option<u32>,
    pub(super) stream_window: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { streams_max: None, stream_window: WINDOW_DEFAULT }
    }
}

pub(super) const SETTING_ENABLE_PUSH: u16 = 2;
pub(super) const SETTING_STREAMS_MAX: u16 = 3;
pub(super) const SETTING_STREAM_WINDOW: u16 = 4;
pub(super) const SETTING_PAYLOAD_MAX: u16 = 5;
pub(super) const SETTING_HEAD_BYTES: u16 = 6;

impl Settings {
    /// Takes over what a frame says.
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Fault::size("SETTINGS of a size that is no multiple of six"));
        }
        for [id_high, id_low, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*id_high, *id_low]) {
                SETTING_ENABLE_PUSH if value > 1 => {
                    return Err(Fault::protocol("ENABLE_PUSH is neither 0 nor 1"));
                }
                SETTING_STREAMS_MAX => self.streams_max = Some(value),
                SETTING_STREAM_WINDOW => {
                    if i64::from(value) > WINDOW_MAX {
                        let what = "INITIAL_WINDOW_SIZE beyond 2^31 - 1";
                        return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
                    }
                    self.stream_window = value;
                }
                SETTING_PAYLOAD_MAX if !(16_384..1 << 24).contains(&value) => {
                    return Err(Fault::protocol("MAX_FRAME_SIZE out of range"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes a setting as it stands in the payload of SETTINGS.
pub fn write_setting(id: u16, value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}
