//! What a peer may send, legal or not, and how it is written.

use protocol::http2::frame::{ACK, END_HEADERS, END_STREAM, FrameKind, write_frame, write_setting};

/// Settings number of the window that new streams have (RFC 9113 §6.5.2).
const INITIAL_WINDOW_SIZE: u16 = 4;

/// One frame of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerFrame {
    Head {
        stream: u32,
        kind: HeadKind,
        is_end: bool,
        /// The rest of its fields comes in CONTINUATION.
        is_divided: bool,
    },
    Continuation {
        stream: u32,
    },
    Data {
        stream: u32,
        length: usize,
        is_end: bool,
    },
    Priority {
        stream: u32,
        form: PriorityForm,
    },
    Reset {
        stream: u32,
    },
    Settings {
        stream_window: Option<u32>,
    },
    SettingsAck,
    Ping,
    PushPromise {
        stream: u32,
    },
    GoAway {
        last: u32,
    },
    WindowUpdate {
        stream: u32,
        more: u32,
    },
    /// A frame of a type that no RFC defines.
    Unknown {
        stream: u32,
    },
}

/// What the fields of a head make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    Request,
    /// The fields of a request without a path.
    Malformed,
    Response,
    Interim,
    Trailers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorityForm {
    Legal,
    /// A stream that depends on itself.
    OnItself,
    /// Fewer bytes than it must have.
    Short,
}

impl HeadKind {
    fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Request => &[(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/")],
            Self::Malformed => &[(":method", "POST"), (":scheme", "http"), (":authority", "h")],
            Self::Response => &[(":status", "200"), ("a", "b")],
            Self::Interim => &[(":status", "103"), ("a", "b")],
            Self::Trailers => &[("x-sum", "7"), ("x-other", "8")],
        }
    }

    /// Its fields as literals, which no table remembers, in two parts.
    fn parts(self) -> (Vec<u8>, Vec<u8>) {
        let mut block = Vec::new();
        for (name, value) in self.fields() {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).expect("short"));
                block.extend_from_slice(text.as_bytes());
            }
        }
        let rest = block.split_off(block.len() / 2);
        (block, rest)
    }
}

impl PeerFrame {
    /// Which stream it is about; none if about all.
    pub(crate) fn stream(self) -> Option<u32> {
        match self {
            Self::Head { stream, .. }
            | Self::Continuation { stream }
            | Self::Data { stream, .. }
            | Self::Priority { stream, .. }
            | Self::Reset { stream }
            | Self::PushPromise { stream }
            | Self::WindowUpdate { stream, .. }
            | Self::Unknown { stream } => Some(stream).filter(|stream| *stream > 0),
            Self::Settings { .. } | Self::SettingsAck | Self::Ping | Self::GoAway { .. } => None,
        }
    }

    /// As it is written. What a CONTINUATION says depends on the head that it goes on with.
    pub(crate) fn bytes(self, divided: Option<HeadKind>) -> Vec<u8> {
        let mut out = Vec::new();
        let end = |is_end| if is_end { END_STREAM } else { 0 };
        match self {
            Self::Head { stream, kind, is_end, is_divided } => {
                let (first, rest) = kind.parts();
                if is_divided {
                    write_frame(FrameKind::Headers, end(is_end), stream, &first, &mut out);
                } else {
                    let whole = [first, rest].concat();
                    write_frame(FrameKind::Headers, END_HEADERS | end(is_end), stream, &whole, &mut out);
                }
            }
            Self::Continuation { stream } => {
                let rest = divided.map(|kind| kind.parts().1).unwrap_or_default();
                write_frame(FrameKind::Continuation, END_HEADERS, stream, &rest, &mut out);
            }
            Self::Data { stream, length, is_end } => {
                write_frame(FrameKind::Data, end(is_end), stream, &vec![b'x'; length], &mut out);
            }
            Self::Priority { stream, form } => {
                let on = if form == PriorityForm::OnItself { stream } else { 0 };
                let [a, b, c, d] = on.to_be_bytes();
                let payload = [a, b, c, d, 16];
                let length = if form == PriorityForm::Short { 4 } else { 5 };
                write_frame(FrameKind::Priority, 0, stream, &payload[..length], &mut out);
            }
            Self::Reset { stream } => {
                write_frame(FrameKind::Reset, 0, stream, &8_u32.to_be_bytes(), &mut out);
            }
            Self::Settings { stream_window } => {
                let mut payload = Vec::new();
                if let Some(window) = stream_window {
                    write_setting(INITIAL_WINDOW_SIZE, window, &mut payload);
                }
                write_frame(FrameKind::Settings, 0, 0, &payload, &mut out);
            }
            Self::SettingsAck => write_frame(FrameKind::Settings, ACK, 0, &[], &mut out),
            Self::Ping => write_frame(FrameKind::Ping, 0, 0, b"anything", &mut out),
            Self::PushPromise { stream } => {
                write_frame(FrameKind::PushPromise, END_HEADERS, stream, &[0, 0, 0, 2], &mut out);
            }
            Self::GoAway { last } => {
                write_frame(
                    FrameKind::GoAway,
                    0,
                    0,
                    &u64::from(last).rotate_left(32).to_be_bytes(),
                    &mut out,
                );
            }
            Self::WindowUpdate { stream, more } => {
                write_frame(FrameKind::WindowUpdate, 0, stream, &more.to_be_bytes(), &mut out);
            }
            Self::Unknown { stream } => write_frame(FrameKind::Unknown, 0, stream, b"anything", &mut out),
        }
        out
    }
}
