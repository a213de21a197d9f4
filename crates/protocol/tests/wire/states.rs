//! Any order of frames, from a peer that may break every rule, against a model of what RFC 9113 §5.1 allows:
//! each frame is accepted, ends its stream or ends the connection exactly where it must, and what we say
//! ourselves is legal in the state that the stream then has, within its windows.

mod frames;
mod model;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body::Body;
use proptest::prelude::*;
use protocol::Response;
use protocol::http2::frame::{FRAME_HEAD_BYTES, FrameHead, FrameKind};
use protocol::http2::{
    ArrivedRequest, ErrorCode, HasBody, MemoryBudget, PREFACE, Receiver, Role, Sender, Session, SessionEvent,
    SessionLimits,
};
use vocabulary::Timestamp;

use frames::{HeadKind, PeerFrame, PriorityForm};
use model::{Model, Outcome};

/// So few that the limit is met.
const STREAMS_MAX: u32 = 3;

/// What the test does next, at either end.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The peer sends this. What would end the connection it sends only if it is bold: otherwise hardly any
    /// test would get far.
    Peer { frame: PeerFrame, is_bold: bool },
    /// We do this, on the stream that is the so-many-th of those that we hold.
    Ours { at: usize, deed: Deed },
}

/// What those who hold the ends of a stream do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// A client opens a stream, a server answers one.
    Speak(HasBody),
    Send {
        length: usize,
        is_end: bool,
    },
    Trailers,
    /// Takes all that has come on the stream.
    Read,
    BreakOff,
    DropSender,
    DropReceiver,
    /// No further stream is served.
    Leave,
}

/// Both ends of a stream, as far as they are still held.
struct Ends {
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    has_spoken: bool,
    has_ended: bool,
}

struct World {
    session: Rc<Session>,
    role: Role,
    model: Model,
    ends: BTreeMap<u32, Ends>,
    divided: Option<HeadKind>,
    is_over: bool,
}

fn now() -> Timestamp {
    Timestamp::ZERO
}

impl World {
    fn new(role: Role) -> Self {
        let limits = SessionLimits {
            streams: STREAMS_MAX,
            stream_window: 65_535,
            proven_window: 65_535,
            read_window: 65_535,
            head_bytes: 64 * 1024,
            headers: 100,
            memory: <&MemoryBudget>::default(),
        };
        let mut world = Self {
            session: Rc::new(Session::new(role, limits, now())),
            role,
            model: Model::new(role, STREAMS_MAX as usize),
            ends: BTreeMap::new(),
            divided: None,
            is_over: false,
        };
        let first = world.written();
        let kinds: Vec<FrameKind> = first.iter().map(|(head, _)| head.kind).collect();
        assert_eq!(kinds, [FrameKind::Settings, FrameKind::WindowUpdate]);
        world.peer(PeerFrame::Settings { stream_window: None }, usize::MAX);
        world
    }

    fn step(&mut self, step: Step, piece: usize) {
        match step {
            Step::Peer { frame, is_bold } => {
                let ends_it = |outcome: &Outcome| matches!(outcome, Outcome::ConnectionError(_));
                if is_bold || !self.model.judge(frame).iter().any(ends_it) {
                    self.peer(frame, piece);
                }
            }
            Step::Ours { at, deed } => self.ours(at, deed),
        }
    }

    /// The peer sends a frame, in pieces.
    fn peer(&mut self, frame: PeerFrame, piece: usize) {
        let allowed = self.model.judge(frame);
        let bytes = frame.bytes(self.divided.take());
        // An unread piece of DATA costs its sender credit, of which a test has as much as a
        // connection at its beginning.
        let piece = if bytes.len() > 1_000 { piece.max(512) } else { piece };
        if let PeerFrame::Head { kind, is_divided: true, .. } = frame {
            self.divided = Some(kind);
        }
        let mut arrived = None;
        let mut fault = None;
        self.session.begin_turn(&Context::from_waker(Waker::noop()));
        'pieces: for part in bytes.chunks(piece.min(bytes.len()).max(1)) {
            let mut read = BytesMut::from(part);
            loop {
                match self.session.receive(&mut read, &now) {
                    Ok(SessionEvent::Request(request)) => arrived = Some(request),
                    Ok(SessionEvent::Farewell { .. }) => panic!("nobody says why it goes away"),
                    Ok(SessionEvent::All) => break,
                    Ok(SessionEvent::Paused) => panic!("there is memory"),
                    Ok(SessionEvent::TurnOver) => {
                        self.session.begin_turn(&Context::from_waker(Waker::noop()));
                    }
                    Err((code, _)) => {
                        fault = Some(code);
                        self.session.refuse(code);
                        break 'pieces;
                    }
                }
            }
        }
        let written = self.written();
        let outcome = match (fault, reset_of(&written, frame)) {
            (Some(code), _) => Outcome::ConnectionError(code),
            (None, Some(code)) => Outcome::StreamError(code),
            (None, None) => Outcome::Accepted,
        };
        assert!(
            allowed.contains(&outcome),
            "{frame:?} gives {outcome:?}, not {allowed:?}; {:#?}",
            self.model
        );
        if frame == PeerFrame::Ping && outcome == Outcome::Accepted {
            assert!(written.iter().any(|(head, _)| head.kind == FrameKind::Ping), "a ping is answered");
        }
        let is_opened = self.model.apply(frame, outcome);
        self.check(&written);
        self.is_over = fault.is_some();
        if self.is_over {
            let last = written.last().expect("it is told why");
            assert_eq!((last.0.kind, Some(code_of(&last.1[4..]))), (FrameKind::GoAway, fault));
            return;
        }
        let stream = frame.stream().filter(|_| self.role == Role::Server);
        assert_eq!(arrived.is_some(), is_opened && self.role == Role::Server, "{frame:?}: {arrived:?}");
        if let (Some(id), Some(ArrivedRequest { stream, request, .. })) = (stream, arrived) {
            assert!(request.is_ok(), "no head here is too large: {request:?}");
            let sender = Sender::new(Rc::clone(&self.session), Rc::clone(&stream));
            let receiver = Receiver::new(Rc::clone(&self.session), stream);
            self.hold(id, sender, receiver, false);
        }
    }

    fn hold(&mut self, id: u32, sender: Sender, receiver: Receiver, has_spoken: bool) {
        let ends = Ends { sender: Some(sender), receiver: Some(receiver), has_spoken, has_ended: false };
        self.ends.insert(id, ends);
    }

    fn ours(&mut self, at: usize, deed: Deed) {
        match (deed, self.role) {
            (Deed::Leave, Role::Server) => {
                self.session.leave_now();
                self.model.leave();
            }
            (Deed::Speak(body), Role::Client) => self.ask(body),
            (_, _) => {
                let at = at % self.ends.len().max(1);
                if let Some(ends) = self.ends.values_mut().nth(at) {
                    ends.act(deed);
                }
            }
        }
        let written = self.written();
        self.check(&written);
    }

    fn ask(&mut self, body: HasBody) {
        if self.session.is_closed() || !self.session.has_room() {
            return;
        }
        let request = protocol::Request::from(Request::post("http://h/path").body(()).expect("legal"));
        let (sender, receiver) = self.session.open(&request, body);
        let id = u32::try_from(self.ends.len()).expect("few") * 2 + 1;
        self.hold(id, sender, receiver, true);
        if let Some(ends) = self.ends.get_mut(&id) {
            ends.has_ended = body == HasBody::No;
        }
    }

    /// Everything that the session has to write, frame by frame.
    fn written(&mut self) -> Vec<(FrameHead, Vec<u8>)> {
        let mut out = Vec::new();
        // Streams that wait for one another's output go on when it is gone.
        let _ = self.session.end_turn(|pieces| {
            let before = out.len();
            out.extend(pieces.iter().flat_map(|piece| piece.iter()));
            Poll::Ready(Ok(out.len() - before))
        });
        let mut rest = out.strip_prefix(&PREFACE[..]).unwrap_or(&out);
        let mut frames = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
            let head = FrameHead::read(*head);
            let (payload, after) = after.split_at(head.length);
            frames.push((head, payload.to_vec()));
            rest = after;
        }
        assert!(rest.is_empty(), "half of a frame");
        frames
    }

    fn check(&mut self, written: &[(FrameHead, Vec<u8>)]) {
        for (head, payload) in written {
            let judged = self.model.sent(*head, payload);
            assert!(judged.is_ok(), "we wrote what we must not: {judged:?}");
        }
    }
}

impl Ends {
    fn act(&mut self, deed: Deed) {
        let mut context = Context::from_waker(Waker::noop());
        if let (Deed::Read, Some(receiver)) = (deed, &mut self.receiver) {
            let _ = receiver.poll_response(&context);
            while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut *receiver).poll_frame(&mut context) {}
        }
        match deed {
            Deed::DropReceiver => self.receiver = None,
            Deed::DropSender => self.sender = None,
            Deed::Speak(_)
            | Deed::Send { .. }
            | Deed::Trailers
            | Deed::Read
            | Deed::BreakOff
            | Deed::Leave => {}
        }
        let Some(sender) = self.sender.as_ref().filter(|_| !self.has_ended) else { return };
        match deed {
            Deed::Speak(body) if !self.has_spoken => {
                sender.respond(&Response::new(()), body, |_| {});
                (self.has_spoken, self.has_ended) = (true, body == HasBody::No);
            }
            Deed::Send { length, is_end } if self.has_spoken => {
                let room = sender.poll_room(length.max(1), &mut context);
                if let Poll::Ready(Ok(room)) = room {
                    let is_all = room >= length;
                    sender.data(Bytes::from(vec![b'y'; length.min(room)]), is_end && is_all, &now);
                    self.has_ended = is_end && is_all;
                }
            }
            Deed::Trailers if self.has_spoken => {
                let trailers = [(HeaderName::from_static("x-sum"), HeaderValue::from_static("7"))];
                sender.trailers(&HeaderMap::from_iter(trailers), &now);
                self.has_ended = true;
            }
            Deed::BreakOff => {
                sender.reset(ErrorCode::CANCEL);
                self.has_ended = true;
            }
            Deed::Speak(_)
            | Deed::Send { .. }
            | Deed::Trailers
            | Deed::Read
            | Deed::DropSender
            | Deed::DropReceiver
            | Deed::Leave => {}
        }
    }
}

/// With what the stream of a frame was broken off.
fn reset_of(written: &[(FrameHead, Vec<u8>)], frame: PeerFrame) -> Option<ErrorCode> {
    let of_it = |(head, _): &&(FrameHead, Vec<u8>)| {
        head.kind == FrameKind::Reset && frame.stream() == Some(head.stream)
    };
    written.iter().find(of_it).map(|(_, payload)| code_of(payload))
}

fn code_of(payload: &[u8]) -> ErrorCode {
    ErrorCode(u32::from_be_bytes(*payload.first_chunk().expect("four bytes")))
}

/// Mostly the streams that there are.
fn stream() -> impl Strategy<Value = u32> {
    prop_oneof![
        20 => prop::sample::select(vec![1_u32, 3, 5]),
        6 => prop::sample::select(vec![7_u32, 9, 11]),
        1 => prop::sample::select(vec![0_u32, 2, 4]),
    ]
}

fn head_kind(role: Role) -> impl Strategy<Value = HeadKind> {
    let usual = match role {
        Role::Server => HeadKind::Request,
        Role::Client => HeadKind::Response,
    };
    prop_oneof![
        8 => Just(usual),
        4 => Just(HeadKind::Trailers),
        1 => Just(HeadKind::Request),
        1 => Just(HeadKind::Malformed),
        1 => Just(HeadKind::Response),
        2 => Just(HeadKind::Interim),
    ]
}

fn peer_frame(role: Role) -> impl Strategy<Value = PeerFrame> {
    let form = prop::sample::select(vec![PriorityForm::Legal, PriorityForm::OnItself, PriorityForm::Short]);
    let window = prop::sample::select(vec![None, Some(0), Some(100), Some(65_535), Some(1 << 31)]);
    let more = prop::sample::select(vec![0, 1, 1_000, 100_000, u32::MAX >> 1]);
    prop_oneof![
        8 => (stream(), head_kind(role), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(stream, kind, is_end, is_divided)| PeerFrame::Head { stream, kind, is_end, is_divided }),
        2 => stream().prop_map(|stream| PeerFrame::Continuation { stream }),
        8 => (stream(), prop::sample::select(vec![0, 1, 300, 16_384]), prop::bool::weighted(0.2))
            .prop_map(|(stream, length, is_end)| PeerFrame::Data { stream, length, is_end }),
        1 => (stream(), form).prop_map(|(stream, form)| PeerFrame::Priority { stream, form }),
        2 => stream().prop_map(|stream| PeerFrame::Reset { stream }),
        2 => window.prop_map(|stream_window| PeerFrame::Settings { stream_window }),
        1 => Just(PeerFrame::SettingsAck),
        1 => Just(PeerFrame::Ping),
        1 => stream().prop_map(|stream| PeerFrame::PushPromise { stream }),
        1 => stream().prop_map(|last| PeerFrame::GoAway { last }),
        3 => (stream(), more).prop_map(|(stream, more)| PeerFrame::WindowUpdate { stream, more }),
        1 => stream().prop_map(|stream| PeerFrame::Unknown { stream }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let body = prop::sample::select(vec![HasBody::Yes, HasBody::No]);
    prop_oneof![
        6 => body.prop_map(Deed::Speak),
        6 => (prop::sample::select(vec![0_usize, 1, 1_000, 30_000]), prop::bool::weighted(0.3))
            .prop_map(|(length, is_end)| Deed::Send { length, is_end }),
        1 => Just(Deed::Trailers),
        6 => Just(Deed::Read),
        1 => Just(Deed::BreakOff),
        1 => Just(Deed::DropSender),
        1 => Just(Deed::DropReceiver),
        1 => Just(Deed::Leave),
    ]
}

fn step(role: Role) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (peer_frame(role), prop::bool::weighted(0.03))
            .prop_map(|(frame, is_bold)| Step::Peer { frame, is_bold }),
        2 => (0..6_usize, deed()).prop_map(|(at, deed)| Step::Ours { at, deed }),
    ]
}

fn play(role: Role, steps: Vec<Step>, piece: usize) {
    let mut world = World::new(role);
    for step in steps {
        if world.is_over {
            break;
        }
        world.step(step, piece);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_server_keeps_to_the_states_of_a_stream(
        steps in prop::collection::vec(step(Role::Server), 1..80),
        piece in prop::sample::select(vec![1_usize, 5, 10, 1_000, usize::MAX]),
    ) {
        play(Role::Server, steps, piece);
    }

    #[test]
    fn a_client_keeps_to_the_states_of_a_stream(
        steps in prop::collection::vec(step(Role::Client), 1..80),
        piece in prop::sample::select(vec![1_usize, 5, 10, 1_000, usize::MAX]),
    ) {
        play(Role::Client, steps, piece);
    }
}
