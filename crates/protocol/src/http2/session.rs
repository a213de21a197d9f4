//! What both ends of a connection know of it: its streams, its windows, what is to be written.
//!
//! One task moves the bytes of a connection; each stream belongs to the task that answers or asks, which may
//! be the same one. They meet here, and only here: everything is on one thread, so there is no lock and no
//! channel. A task that has something to send writes the frame at once and wakes the connection's task, which
//! finds what all streams have written in that turn and hands it to the kernel together.

mod block;
mod ending;
mod event;
mod greeting;
mod holding;
mod oversize;
mod receive;
mod resets;
mod send;
mod shortage;
mod stream_ends;
mod unfinished;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use vocabulary::Timestamp;

use super::PresentTime;
use super::account::{Cost, CreditExhaustion, PeerAccount, PeerRole};
use super::frame::{
    END_STREAM, ErrorCode, Fault, FrameKind, SETTING_ENABLE_PUSH, SETTING_HEAD_BYTES, SETTING_STREAM_WINDOW,
    SETTING_STREAMS_MAX, Settings, WINDOW_DEFAULT, write_frame, write_headers, write_setting,
};
use super::hpack::{Encoder, HpackDecoder, encode_request};
use super::input::FrameInput;
use super::memory::{MemoryBudget, MemoryShare};
use super::output::Output;
use super::stream::{Stream, StreamError, WaitingTask};
use super::streams::Streams;
use crate::message::Request;
use block::Block;
pub use event::{ArrivedRequest, RefusedHead, SessionEvent};
pub use greeting::PeerPreface;
use oversize::OversizeHeads;
use resets::BrokenStreams;
use shortage::Shortage;
pub use unfinished::UnfinishedInput;

/// How much a peer may send in all its streams before their readers take it: more than the windows of the
/// streams add up to. Otherwise a few streams without a reader at the moment, because they wait for a slot or
/// for a slow client, would take the window from all others, and might themselves wait for one of those.
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

/// While more than this is waiting to be written, streams add no data.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// How many streams a peer most probably takes that has not said so yet (RFC 9113 §6.5.2 advises at least
/// 100).
const STREAMS_PROBABLE: u32 = 100;

/// The last stream there can be.
const STREAM_MAX: u32 = u32::MAX >> 1;

/// How many pieces of frames are looked at before others get their turn: about as many as 250 streams, which
/// is all that one connection has, send at once with two frames each. If they bring nothing they take some 50
/// µs, and a hundred connections that send nothing else a quarter of what a client notices.
const PIECES_PER_TURN: u32 = 512;

/// The payload of the PING that asks whether the peer is alive.
const ALIVE_PING: [u8; 8] = *b"alive?\0\0";

/// Which end of a connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that gets requests and answers them.
    Server,
    /// The end that opens streams with requests.
    Client,
}

/// What one end accepts of its peer.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// How many streams a client may open.
    pub streams: u32,
    /// How much of a stream is accepted before its reader takes some, in bytes. Where clients open streams,
    /// at least 65,535: they send before they have heard of a smaller window.
    pub stream_window: u32,
    /// The same once readers have taken more than that of several of the streams that we opened, unless
    /// memory is scarce.
    pub proven_window: u32,
    /// How much of a stream is accepted while its reader takes it, in bytes. It is reached in steps, as the
    /// stream is read: a stream without a reader costs as little memory as possible, one with a reader should
    /// not wait for it, and one whose reader stops holds hardly more than was read.
    pub read_window: u32,
    /// The largest head, in bytes as HTTP/2 counts them.
    pub head_bytes: usize,
    /// How many headers it may have.
    pub headers: usize,
    /// The budget of the process for bytes that no reader has taken yet.
    pub memory: &'static MemoryBudget,
}

/// One end of a connection. See the module.
#[derive(Debug)]
pub struct Session(RefCell<Core>);

#[derive(Debug)]
struct Core {
    role: Role,
    limits: SessionLimits,
    input: FrameInput,
    /// The head that is being read: it may take several frames.
    block: Option<Block>,
    /// How many frames began outside of such a head: tells one half head from the next.
    frames: u32,
    shortage: Shortage,
    oversize: OversizeHeads,
    decoder: HpackDecoder,
    has_settings: bool,
    /// The task that waits for the peer's first frame.
    greeting: WaitingTask,
    output: Output,
    encoder: Encoder,
    transport: TransportTask,
    streams: Streams,
    /// The last stream that was opened, by whichever end opens them.
    last_stream: u32,
    /// The last stream of which the kernel may have got something.
    last_written: u32,
    broken: BrokenStreams,
    /// How much of a new stream is accepted, as the peer was told.
    stream_window: u32,
    /// Of how many streams the reader has taken so much that a larger window was offered.
    readers: u32,
    /// How many bytes of bodies wait for their readers.
    unread: usize,
    memory: MemoryShare,
    /// How many reads there were in all streams: the time in which each stream notes its last read.
    reads: u64,
    peer: Settings,
    send_window: i64,
    /// Streams that wait for the connection's window or for room in the output, in their order.
    blocked: VecDeque<Rc<Stream>>,
    /// How many at its front were called before, and came back because another stream had taken their room.
    came_back: usize,
    /// The stream whose turn it is.
    last_sender: u32,
    /// How many of them were told that they may go on, and have not come yet.
    called: usize,
    receive_window: i64,
    unreturned: u32,
    account: PeerAccount,
    /// How many more pieces are looked at in this turn.
    pieces_left: u32,
    leaving: LeavingProgress,
    /// The peer goes away and opens or takes no further stream.
    is_peer_leaving: bool,
    is_closed: bool,
}

/// How far we have come in leaving a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeavingProgress {
    No,
    /// The peer was told; what it sent before it knew is still served.
    Told,
    /// No stream above the last one is served.
    Final,
}

/// The task that moves the bytes.
#[derive(Debug, Default)]
struct TransportTask {
    waiting: WaitingTask,
    /// While the task runs, or is about to run, it need not be woken.
    is_awake: bool,
}

impl Session {
    /// One end of a new connection, with what it says first.
    pub fn new(role: Role, limits: SessionLimits, now: Timestamp) -> Self {
        let mut settings = Vec::new();
        if role == Role::Client {
            // A pushed response would have no reader here, and a peer that promises one has taken a stream
            // for it by then.
            write_setting(SETTING_ENABLE_PUSH, 0, &mut settings);
        } else {
            write_setting(SETTING_STREAMS_MAX, limits.streams, &mut settings);
        }
        write_setting(SETTING_STREAM_WINDOW, limits.stream_window, &mut settings);
        let head_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
        write_setting(SETTING_HEAD_BYTES, head_bytes, &mut settings);
        let mut output = Output::default();
        if role == Role::Client {
            output.frames().extend_from_slice(super::PREFACE);
        }
        write_frame(FrameKind::Settings, 0, 0, &settings, output.frames());
        // The window of the whole connection has no setting; it only grows, by frames like this one (RFC 9113
        // §6.9.2).
        let more = CONNECTION_WINDOW - WINDOW_DEFAULT;
        write_frame(FrameKind::WindowUpdate, 0, 0, &more.to_be_bytes(), output.frames());
        Self(RefCell::new(Core {
            role,
            limits,
            input: FrameInput::default(),
            block: None,
            frames: 0,
            shortage: Shortage::default(),
            oversize: OversizeHeads::default(),
            decoder: HpackDecoder::default(),
            has_settings: false,
            greeting: WaitingTask::default(),
            output,
            encoder: Encoder::default(),
            transport: TransportTask::default(),
            streams: Streams::default(),
            last_stream: 0,
            last_written: 0,
            broken: BrokenStreams::default(),
            stream_window: limits.stream_window,
            readers: 0,
            unread: 0,
            memory: MemoryShare::new(limits.memory),
            reads: 0,
            peer: Settings::default(),
            send_window: i64::from(WINDOW_DEFAULT),
            blocked: VecDeque::new(),
            came_back: 0,
            last_sender: 0,
            called: 0,
            receive_window: i64::from(CONNECTION_WINDOW),
            unreturned: 0,
            account: PeerAccount::new(
                match role {
                    Role::Server => PeerRole::Client,
                    Role::Client => PeerRole::Shared,
                },
                now,
            ),
            pieces_left: PIECES_PER_TURN,
            leaving: LeavingProgress::No,
            is_peer_leaving: false,
            is_closed: false,
        }))
    }

    /// How many streams are open, as far as the peer knows.
    pub fn streams(&self) -> usize {
        let core = self.0.borrow();
        core.streams.len() + core.broken.held()
    }

    /// Whether no further stream can be opened, now or later.
    pub fn is_closed(&self) -> bool {
        let core = self.0.borrow();
        // The numbers of streams are never used twice, so a connection that has used them up is as good as
        // closed.
        core.is_closed
            || core.is_peer_leaving
            || core.leaving != LeavingProgress::No
            || core.last_stream >= STREAM_MAX - 2
    }

    /// Whether one more stream can be opened now.
    pub fn has_room(&self) -> bool {
        let core = self.0.borrow();
        let unsaid = if core.has_settings { u32::MAX } else { STREAMS_PROBABLE };
        core.streams.len() + core.broken.held() < core.peer.streams_max.unwrap_or(unsaid) as usize
    }

    /// Opens a stream with the head of a request. The caller has seen that there is room.
    pub(super) fn open_stream<B>(&self, request: &Request<B>, body: HasBody) -> Rc<Stream> {
        let mut core = self.0.borrow_mut();
        let id = if core.last_stream == 0 { 1 } else { core.last_stream + 2 };
        // Before the stream: it is to be opened with the window that the peer is told of now.
        core.offer_room();
        let stream = Rc::new(Stream::new(id, core.stream_window, core.peer.stream_window));
        let flags = {
            let mut state = stream.state.borrow_mut();
            state.is_bodiless = *request.method() == http::Method::HEAD;
            // The head will carry END_STREAM: dropping the sender breaks nothing off then.
            state.sending.is_ended = body == HasBody::No;
            if state.sending.is_ended { END_STREAM } else { 0 }
        };
        core.last_stream = id;
        core.streams.open(Rc::clone(&stream));
        core.write_head(id, flags, |out| encode_request(request, out));
        core.wake_transport();
        stream
    }

    /// Sends a PING, whose answer shows that the peer is alive.
    pub fn ping(&self) {
        let mut core = self.0.borrow_mut();
        write_frame(FrameKind::Ping, 0, 0, &ALIVE_PING, core.output.frames());
        core.wake_transport();
    }

    /// The transport's turn begins: until the turn ends, its task need not be woken.
    pub fn begin_turn(&self, context: &Context<'_>) {
        let mut core = self.0.borrow_mut();
        // Registered even though the task is not woken during the turn: what is written after the turn, by
        // tasks that run on this thread before it has its next one, has to wake it.
        core.transport.waiting.register(context);
        core.transport.is_awake = true;
        core.pieces_left = PIECES_PER_TURN;
    }

    /// The peer of this connection is one of our own hops, which passes on the streams of many clients.
    pub fn share(&self) {
        self.0.borrow_mut().account.share();
    }

    /// Writes what can be written: `write` takes some of the pieces that it is shown, and says how much.
    /// Streams that waited for room go on.
    pub fn end_turn(
        &self,
        write: impl FnMut(&[IoSlice<'_>]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        let mut core = self.0.borrow_mut();
        core.transport.is_awake = false;
        if core.output.len() == 0 {
            return Poll::Ready(Ok(()));
        }
        let (before, heads_before) = (core.output.len(), core.output.head_memory());
        let written = core.output.poll_write(write);
        if core.output.head_memory() < heads_before {
            core.settle_memory();
        }
        // Any byte may have been of the last head, so every stream up to here counts as begun. This decides
        // what may be sent again when the connection breaks.
        if core.output.len() < before {
            core.last_written = core.last_stream;
        }
        core.call_blocked();
        written
    }

    /// The peer reads no more; whatever was to be written is forgotten.
    pub fn forget_output(&self) {
        let mut core = self.0.borrow_mut();
        core.output.clear();
        core.settle_memory();
        core.call_blocked();
    }

    /// How many bytes wait to be written.
    pub fn output_bytes(&self) -> usize {
        self.0.borrow().output.len()
    }

    /// Looks at what was read until a request has come, nothing is left, or it is the turn of others.
    pub fn receive(
        &self,
        read: &mut BytesMut,
        now: PresentTime<'_>,
    ) -> Result<SessionEvent, (ErrorCode, &'static str)> {
        self.0.borrow_mut().receive(read, now)
    }
}

/// Whether a head is all of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasBody {
    /// A body will follow the head.
    Yes,
    /// The head is the whole message.
    No,
}

impl Core {
    /// Writes a head; `write_fields` gives its fields.
    fn write_head(&mut self, stream: u32, flags: u8, write_fields: impl FnOnce(&mut Vec<u8>)) {
        let frames = self.output.frames();
        let bytes_before = frames.len();
        write_headers(stream, flags, frames, |out| {
            self.encoder.begin(out);
            // In one go into the output: nothing may come between the frames of a head (RFC 9113 §6.10).
            write_fields(out);
        });
        self.output.end_head(bytes_before);
    }

    fn wake_transport(&mut self) {
        if !self.transport.is_awake {
            self.transport.is_awake = true;
            self.transport.waiting.wake();
        }
    }

    /// Returns credit on the connection's window for bytes that were read or never will be.
    fn credit(&mut self, length: usize) {
        self.unreturned += u32::try_from(length).unwrap_or(u32::MAX);
        // By halves, so that a frame is written for half a gigabyte and the peer never waits for one.
        if self.unreturned >= CONNECTION_WINDOW / 2 && !self.is_closed {
            let returned = std::mem::take(&mut self.unreturned);
            self.receive_window += i64::from(returned);
            write_frame(FrameKind::WindowUpdate, 0, 0, &returned.to_be_bytes(), self.output.frames());
            self.wake_transport();
        }
    }

    /// Breaks a stream off, open or not.
    fn reset(&mut self, id: u32, code: ErrorCode) {
        self.break_off(id, code);
        self.settle_memory();
    }

    fn break_off(&mut self, id: u32, code: ErrorCode) {
        if let Some(stream) = self.streams.remove(id) {
            let mut state = stream.state.borrow_mut();
            let unread = state.receiving.data.clear();
            let unread_heads = state.forget_unread_heads();
            if unread + unread_heads > 0 {
                // The reader must not take the rest for a whole message.
                state.receiving.is_ended = false;
            }
            state.fail(StreamError::Aborted(code));
            drop(state);
            self.unread -= unread;
            self.credit(unread);
        }
        self.send_or_hold_reset(id, code);
    }

    /// Charges the peer's account for work that brings nothing. An account without credit ends the
    /// connection.
    fn charge(&mut self, cost: Cost, now: PresentTime<'_>) -> Result<(), Fault> {
        self.account.charge(cost, now).map_err(|CreditExhaustion| {
            let what = "frames that bring nothing, out of all proportion to those that do";
            Fault::Connection(ErrorCode::ENHANCE_YOUR_CALM, what)
        })
    }
}

#[cfg(test)]
mod tests;
