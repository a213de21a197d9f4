//! The states of a stream as RFC 9113 §5.1 draws them, and nothing of how a session keeps them: which frames
//! a peer may send in which state, what must become of those that it may not, and what we ourselves may say.
//!
//! Where the standard leaves a choice, all of its answers are allowed, and the state follows the one that was
//! chosen.

use std::collections::BTreeMap;

use protocol::http2::ErrorCode;
use protocol::http2::Role;
use protocol::http2::frame::{END_STREAM, FrameHead, FrameKind};

use super::frames::{HeadKind, PeerFrame, PriorityForm};

/// The window of a stream or connection of which nothing else was said (§6.9.2).
const WINDOW_DEFAULT: i64 = 65_535;

/// As large as a window may be (§6.9.1).
const WINDOW_MAX: i64 = (1 << 31) - 1;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is taken, or ignored.
    Accepted,
    StreamError(ErrorCode),
    ConnectionError(ErrorCode),
}

use Outcome::{Accepted, ConnectionError, StreamError};

const STREAM_PROTOCOL: Outcome = StreamError(ErrorCode::PROTOCOL_ERROR);
const STREAM_FLOW: Outcome = StreamError(ErrorCode::FLOW_CONTROL_ERROR);
const STREAM_CLOSED: Outcome = StreamError(ErrorCode::STREAM_CLOSED);
const PROTOCOL: Outcome = ConnectionError(ErrorCode::PROTOCOL_ERROR);
const FLOW: Outcome = ConnectionError(ErrorCode::FLOW_CONTROL_ERROR);
const CLOSED: Outcome = ConnectionError(ErrorCode::STREAM_CLOSED);

/// §5.1, figure 2, without the two states that only pushes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamState {
    #[default]
    Idle,
    Open,
    /// We have ended our half of the stream.
    HalfClosedLocal,
    /// The peer has said everything.
    HalfClosedRemote,
    Closed(Closing),
}

/// How a stream was closed: what comes afterwards is judged by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// Both ends have said everything, or the peer broke it off.
    ByPeer,
    /// We broke it off while the peer might still send: whatever it sends now is ignored.
    ByUs,
    /// We broke it off when the peer had no more to send.
    ByUsAfterwards,
    /// A stream with a higher number was opened (§5.1.1).
    Skipped,
    /// We had said that we take no more (§6.8).
    Unserved,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FramingHeaders {
    #[default]
    Nothing,
    Head,
}

#[derive(Clone, Copy, Debug)]
struct StreamModel {
    state: StreamState,
    from_peer: FramingHeaders,
    from_us: FramingHeaders,
    /// How much the peer may send.
    receive_window: i64,
    /// How much we may send.
    send_window: i64,
}

/// A connection as an onlooker knows it who sees both directions.
#[derive(Debug)]
pub(crate) struct Model {
    role: Role,
    streams_max: usize,
    streams: BTreeMap<u32, StreamModel>,
    /// The highest number of a stream that was opened.
    last: u32,
    send_window: i64,
    peers_stream_window: i64,
    /// A head whose end has not come.
    block: Option<(u32, HeadKind, bool)>,
    has_left: bool,
}

impl StreamModel {
    fn can_receive(&self) -> bool {
        matches!(self.state, StreamState::Open | StreamState::HalfClosedLocal)
    }

    fn can_send(&self) -> bool {
        matches!(self.state, StreamState::Open | StreamState::HalfClosedRemote)
    }

    fn is_active(&self) -> bool {
        self.can_receive() || self.can_send()
    }

    fn end_of_peer(&mut self) {
        self.state = match self.state {
            StreamState::Open => StreamState::HalfClosedRemote,
            StreamState::HalfClosedLocal => StreamState::Closed(Closing::ByPeer),
            StreamState::Idle | StreamState::HalfClosedRemote | StreamState::Closed(_) => self.state,
        };
    }

    fn end_of_ours(&mut self) {
        self.state = match self.state {
            StreamState::Open => StreamState::HalfClosedLocal,
            StreamState::HalfClosedRemote => StreamState::Closed(Closing::ByPeer),
            StreamState::Idle | StreamState::HalfClosedLocal | StreamState::Closed(_) => self.state,
        };
    }
}

impl Model {
    pub(crate) fn new(role: Role, streams_max: usize) -> Self {
        Self {
            role,
            streams_max,
            streams: BTreeMap::new(),
            last: 0,
            send_window: WINDOW_DEFAULT,
            peers_stream_window: WINDOW_DEFAULT,
            block: None,
            has_left: false,
        }
    }

    /// We have said that we take no further stream.
    pub(crate) fn leave(&mut self) {
        self.has_left = true;
    }

    fn stream(&self, id: u32) -> StreamModel {
        self.streams.get(&id).copied().unwrap_or_else(|| {
            // Only clients open streams here, and theirs have odd numbers.
            let is_skipped = id % 2 == 1 && id < self.last;
            StreamModel {
                state: if is_skipped { StreamState::Closed(Closing::Skipped) } else { StreamState::Idle },
                from_peer: FramingHeaders::Nothing,
                from_us: FramingHeaders::Nothing,
                receive_window: WINDOW_DEFAULT,
                send_window: self.peers_stream_window,
            }
        })
    }

    /// Everything that may become of a frame.
    pub(crate) fn judge(&self, frame: PeerFrame) -> Vec<Outcome> {
        if let Some((block, kind, is_end)) = self.block {
            // §6.10: nothing comes between the parts of a head.
            let goes_on = frame == PeerFrame::Continuation { stream: block };
            return if goes_on { self.head(block, kind, is_end) } else { vec![PROTOCOL] };
        }
        match frame {
            PeerFrame::Head { stream: 0, .. }
            | PeerFrame::Data { stream: 0, .. }
            | PeerFrame::Priority { stream: 0, .. }
            | PeerFrame::Reset { stream: 0 }
            | PeerFrame::Continuation { .. }
            | PeerFrame::PushPromise { .. } => vec![PROTOCOL],
            PeerFrame::Head { stream, kind, is_end, is_divided: false } => self.head(stream, kind, is_end),
            PeerFrame::Data { stream, length, .. } => self.data(stream, length),
            // RFC 9113 has no word on this any more; RFC 7540 had.
            PeerFrame::Priority { stream, form: PriorityForm::OnItself } => {
                vec![Accepted, self.error_of(stream, ErrorCode::PROTOCOL_ERROR)]
            }
            PeerFrame::Priority { stream, form: PriorityForm::Short } => {
                vec![self.error_of(stream, ErrorCode::FRAME_SIZE_ERROR)]
            }
            PeerFrame::Reset { stream } if self.stream(stream).state == StreamState::Idle => {
                if self.may_be_unserved(stream) { vec![Accepted, PROTOCOL] } else { vec![PROTOCOL] }
            }
            PeerFrame::WindowUpdate { stream: 0, more } => match i64::from(more) {
                0 => vec![PROTOCOL],
                more if self.send_window + more > WINDOW_MAX => vec![FLOW],
                _ => vec![Accepted],
            },
            PeerFrame::WindowUpdate { stream, more } => self.window_update(stream, more.into()),
            PeerFrame::Settings { stream_window } => self.settings(stream_window),
            // A divided head is judged as a whole.
            PeerFrame::Head { is_divided: true, .. }
            | PeerFrame::Priority { form: PriorityForm::Legal, .. }
            | PeerFrame::Reset { .. }
            | PeerFrame::SettingsAck
            | PeerFrame::Ping
            | PeerFrame::GoAway { .. }
            | PeerFrame::Unknown { .. } => vec![Accepted],
        }
    }

    /// A stream error, which one that is idle cannot have: no end may break it off (§6.4).
    fn error_of(&self, id: u32, code: ErrorCode) -> Outcome {
        let is_idle = self.stream(id).state == StreamState::Idle && !self.may_be_unserved(id);
        if is_idle { ConnectionError(code) } else { StreamError(code) }
    }

    /// Whether frames of a stream that we never saw may be those of one that we said we would not serve.
    fn may_be_unserved(&self, id: u32) -> bool {
        self.has_left && id % 2 == 1
    }

    fn head(&self, id: u32, kind: HeadKind, is_end: bool) -> Vec<Outcome> {
        let stream = self.stream(id);
        match (stream.state, self.role) {
            (StreamState::Idle, Role::Server) if id % 2 == 1 => {
                if self.has_left {
                    return vec![Accepted];
                }
                let mut allowed = Vec::new();
                let active = self.streams.values().filter(|stream| stream.is_active()).count();
                if active >= self.streams_max {
                    allowed.push(StreamError(ErrorCode::REFUSED_STREAM));
                }
                if kind != HeadKind::Request {
                    allowed.push(STREAM_PROTOCOL);
                }
                if allowed.is_empty() { vec![Accepted] } else { allowed }
            }
            (StreamState::Idle, _) => vec![PROTOCOL],
            (StreamState::Open | StreamState::HalfClosedLocal, Role::Client)
                if stream.from_peer == FramingHeaders::Nothing =>
            {
                let is_legal = kind == HeadKind::Response || (kind == HeadKind::Interim && !is_end);
                vec![if is_legal { Accepted } else { STREAM_PROTOCOL }]
            }
            (StreamState::Open | StreamState::HalfClosedLocal, _) => {
                let is_legal = kind == HeadKind::Trailers && is_end;
                vec![if is_legal { Accepted } else { STREAM_PROTOCOL }]
            }
            (StreamState::HalfClosedRemote, _) => vec![STREAM_CLOSED],
            // §5.1.1: a number that is lower than others must not come as if it were new.
            (StreamState::Closed(Closing::Skipped), _) => vec![PROTOCOL, CLOSED],
            (StreamState::Closed(closing), _) => after(closing),
        }
    }

    fn data(&self, id: u32, length: usize) -> Vec<Outcome> {
        let stream = self.stream(id);
        match stream.state {
            StreamState::Idle if self.may_be_unserved(id) => vec![Accepted, PROTOCOL],
            StreamState::Idle => vec![PROTOCOL],
            StreamState::HalfClosedRemote => vec![STREAM_CLOSED],
            StreamState::Closed(closing) => after(closing),
            StreamState::Open | StreamState::HalfClosedLocal => {
                if stream.from_peer == FramingHeaders::Nothing {
                    vec![STREAM_PROTOCOL]
                } else if i64::try_from(length).expect("frames are short") > stream.receive_window {
                    vec![STREAM_FLOW]
                } else {
                    vec![Accepted]
                }
            }
        }
    }

    fn window_update(&self, id: u32, more: i64) -> Vec<Outcome> {
        let stream = self.stream(id);
        let error = match more {
            0 => Some(STREAM_PROTOCOL),
            more if stream.send_window + more > WINDOW_MAX => Some(STREAM_FLOW),
            _ => None,
        };
        match (stream.state, error) {
            (StreamState::Idle, _) if self.may_be_unserved(id) => vec![Accepted, PROTOCOL],
            (StreamState::Idle, _) => vec![PROTOCOL],
            (StreamState::Closed(_), Some(error)) => vec![Accepted, error],
            (_, Some(error)) => vec![error],
            (_, None) => vec![Accepted],
        }
    }

    fn settings(&self, stream_window: Option<u32>) -> Vec<Outcome> {
        let Some(window) = stream_window.map(i64::from) else { return vec![Accepted] };
        if window > WINDOW_MAX {
            return vec![FLOW];
        }
        let change = window - self.peers_stream_window;
        let overflows = |stream: &&StreamModel| stream.send_window + change > WINDOW_MAX;
        let overflowing: Vec<&StreamModel> = self.streams.values().filter(overflows).collect();
        if overflowing.is_empty() {
            vec![Accepted]
        } else if overflowing.iter().any(|stream| stream.is_active()) {
            vec![FLOW]
        } else {
            // No end has to keep windows of what is closed, and each may.
            vec![Accepted, FLOW]
        }
    }

    /// A frame came, and this became of it. Whether a stream was opened for it.
    pub(crate) fn apply(&mut self, frame: PeerFrame, outcome: Outcome) -> bool {
        let block = self.block.take();
        if outcome != Accepted {
            // What we break off, we say ourselves: see `sent`. It was opened all the same, if only to be
            // refused.
            if let Some((stream, ..)) = head_of(frame, block) {
                self.note_opened(stream);
            }
            return false;
        }
        if let Some((stream, kind, is_end)) = head_of(frame, block) {
            return self.take_head(stream, kind, is_end);
        }
        match frame {
            PeerFrame::Head { stream, kind, is_end, .. } => self.block = Some((stream, kind, is_end)),
            PeerFrame::Data { stream, length, is_end } => {
                let Some(model) = self.streams.get_mut(&stream).filter(|model| model.can_receive()) else {
                    return false;
                };
                model.receive_window -= i64::try_from(length).expect("frames are short");
                if is_end {
                    model.end_of_peer();
                }
            }
            PeerFrame::Reset { stream } => {
                if let Some(model) = self.streams.get_mut(&stream)
                    && model.is_active()
                {
                    model.state = StreamState::Closed(Closing::ByPeer);
                }
            }
            PeerFrame::WindowUpdate { stream: 0, more } => self.send_window += i64::from(more),
            PeerFrame::WindowUpdate { stream, more } => {
                if let Some(model) = self.streams.get_mut(&stream) {
                    model.send_window += i64::from(more);
                }
            }
            PeerFrame::Settings { stream_window: Some(window) } => {
                let change = i64::from(window) - self.peers_stream_window;
                self.peers_stream_window += change;
                for model in self.streams.values_mut() {
                    model.send_window += change;
                }
            }
            PeerFrame::GoAway { last } if self.role == Role::Client => {
                for (_, model) in self.streams.range_mut(last + 1..) {
                    if model.is_active() {
                        model.state = StreamState::Closed(Closing::ByPeer);
                    }
                }
            }
            PeerFrame::Settings { stream_window: None }
            | PeerFrame::GoAway { .. }
            | PeerFrame::Continuation { .. }
            | PeerFrame::Priority { .. }
            | PeerFrame::SettingsAck
            | PeerFrame::Ping
            | PeerFrame::PushPromise { .. }
            | PeerFrame::Unknown { .. } => {}
        }
        false
    }

    fn note_opened(&mut self, id: u32) {
        if self.role == Role::Server && id % 2 == 1 && id > self.last && !self.has_left {
            let stream = StreamModel { state: StreamState::Open, ..self.stream(id) };
            self.streams.insert(id, stream);
            self.last = id;
        }
    }

    fn take_head(&mut self, id: u32, kind: HeadKind, is_end: bool) -> bool {
        let before = self.stream(id).state;
        self.note_opened(id);
        let is_opened = before == StreamState::Idle && self.streams.contains_key(&id);
        if before == StreamState::Idle && !is_opened {
            let unserved = StreamState::Closed(Closing::Unserved);
            self.streams.insert(id, StreamModel { state: unserved, ..self.stream(id) });
            return false;
        }
        let Some(model) = self.streams.get_mut(&id).filter(|model| model.can_receive()) else { return false };
        if kind != HeadKind::Interim {
            model.from_peer = FramingHeaders::Head;
        }
        if is_end {
            model.end_of_peer();
        }
        is_opened
    }

    /// We wrote a frame: whether we may.
    pub(crate) fn sent(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), String> {
        let id = head.stream;
        let mut stream = self.stream(id);
        let before = stream;
        let wrong = |why: &str| Err(format!("{why}: {head:?} in {before:?}"));
        match head.kind {
            FrameKind::Headers => {
                let is_opening = stream.state == StreamState::Idle && self.role == Role::Client;
                if is_opening {
                    if id.is_multiple_of(2) || id <= self.last {
                        return wrong("a request on a stream of that number");
                    }
                    self.last = id;
                    stream.state = StreamState::Open;
                } else if !stream.can_send() {
                    return wrong("a head on a stream that is closed to us");
                } else if stream.from_us == FramingHeaders::Head && !head.has(END_STREAM) {
                    return wrong("a second head that is not the end");
                }
                stream.from_us = FramingHeaders::Head;
            }
            FrameKind::Data => {
                let length = i64::try_from(head.length).expect("frames are short");
                if !stream.can_send() || stream.from_us == FramingHeaders::Nothing {
                    return wrong("DATA where there is none");
                }
                stream.send_window -= length;
                self.send_window -= length;
                // An empty frame needs no window, and a window may be negative.
                if length > 0 && (stream.send_window < 0 || self.send_window < 0) {
                    return wrong("more DATA than the windows");
                }
            }
            FrameKind::Reset => {
                stream.state = match stream.state {
                    StreamState::Idle if self.may_be_unserved(id) => return Ok(()),
                    StreamState::Idle => return wrong("RST_STREAM of what is idle"),
                    StreamState::Open | StreamState::HalfClosedLocal => StreamState::Closed(Closing::ByUs),
                    StreamState::Closed(Closing::ByUs) => stream.state,
                    StreamState::HalfClosedRemote | StreamState::Closed(_) => {
                        StreamState::Closed(Closing::ByUsAfterwards)
                    }
                };
            }
            FrameKind::WindowUpdate if id > 0 => {
                let more = u32::from_be_bytes(payload.try_into().map_err(|_| "four bytes")?);
                if !stream.is_active() {
                    return wrong("room for what is over");
                }
                stream.receive_window += i64::from(more);
            }
            FrameKind::Settings | FrameKind::Ping | FrameKind::GoAway | FrameKind::WindowUpdate => {
                return if id == 0 { Ok(()) } else { wrong("a frame of the connection on a stream") };
            }
            FrameKind::Priority | FrameKind::PushPromise | FrameKind::Continuation | FrameKind::Unknown => {
                return wrong("a frame that nobody asked for");
            }
        }
        if head.has(END_STREAM) && matches!(head.kind, FrameKind::Headers | FrameKind::Data) {
            stream.end_of_ours();
        }
        self.streams.insert(id, stream);
        Ok(())
    }
}

/// The head that is whole with this frame.
fn head_of(frame: PeerFrame, block: Option<(u32, HeadKind, bool)>) -> Option<(u32, HeadKind, bool)> {
    if let PeerFrame::Head { stream, kind, is_end, is_divided: false } = frame {
        return Some((stream, kind, is_end));
    }
    block.filter(|_| matches!(frame, PeerFrame::Continuation { .. }))
}

/// A message goes on after its stream was closed.
fn after(closing: Closing) -> Vec<Outcome> {
    match closing {
        Closing::ByPeer | Closing::Skipped => vec![STREAM_CLOSED, CLOSED],
        Closing::ByUs | Closing::Unserved => vec![Accepted],
        Closing::ByUsAfterwards => vec![Accepted, STREAM_CLOSED, CLOSED],
    }
}
