//! One stream: what came on it and waits to be read, and what may be sent.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

use http::HeaderMap;
use thiserror::Error;

use super::frame::ErrorCode;
use super::small_pieces::SmallPieces;
use crate::message::Response;
use crate::pieces::BodyPieces;

/// Why a stream ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// The peer broke it off.
    #[error("stream reset: {0}")]
    Reset(ErrorCode),
    /// The peer certainly did nothing for it.
    #[error("stream refused")]
    Refused,
    /// The connection ended before anything of it was written.
    #[error("the connection ended before the stream began")]
    Unsent,
    /// The connection ended in the middle of the stream.
    #[error("the connection ended in the middle of the stream")]
    Closed,
    /// We broke it off: the peer broke the rules of HTTP/2, or the reader or the writer of the stream is
    /// gone.
    #[error("stream broken off: {0}")]
    Aborted(ErrorCode),
}

impl StreamError {
    /// What to tell another peer to whom a part of the stream was passed on. Never that the stream was
    /// refused: a refusal says that nothing was done, and the peer would send the request again.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Reset(ErrorCode::REFUSED_STREAM) | Self::Refused | Self::Aborted(_) => {
                ErrorCode::INTERNAL_ERROR
            }
            Self::Reset(code) => code,
            Self::Unsent | Self::Closed => ErrorCode::CANCEL,
        }
    }
}

/// One stream of a session, shared by the session and by the holders of its two ends.
#[derive(Debug)]
pub struct Stream {
    pub(super) id: u32,
    /// How much memory its heads take, if that is much: that of its request for as long as it is open, others
    /// until their reader takes them.
    pub(super) head_bytes: Cell<usize>,
    /// Of that, what the large head of its request takes.
    pub(super) large_head_bytes: Cell<usize>,
    /// Whether it only waits to be read.
    pub(super) is_over: Cell<bool>,
    pub(super) small_pieces: Cell<SmallPieces>,
    pub(super) state: RefCell<State>,
}

/// What is known of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) receiving: ReceivingHalf,
    pub(super) sending: SendingHalf,
    /// On the side of the client: the head of the response until its reader takes it.
    pub(super) response: Option<Response<()>>,
    /// How much memory that takes, if that is much.
    pub(super) response_memory: usize,
    /// Whether there is no body whatever a length says: it is the answer to HEAD, or its status has none.
    pub(super) is_bodiless: bool,
    pub(super) error: Option<StreamError>,
}

/// A head that waits for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadHead {
    Response,
    Trailers,
}

/// The half of a stream that the peer writes and we read.
#[derive(Debug, Default)]
pub(super) struct ReceivingHalf {
    pub(super) head: HeadProgress,
    /// What was not yet read.
    pub(super) data: BodyPieces,
    pub(super) trailers: Option<HeaderMap>,
    /// How much memory they take, if that is much.
    pub(super) trailers_memory: usize,
    pub(super) is_ended: bool,
    /// How much the peer may still send.
    pub(super) window: i64,
    /// How many bytes the peer may send before the reader takes some.
    pub(super) accepted: u32,
    pub(super) reading: ReadingProgress,
    /// The time of the last read, counted in reads of the whole connection; 0 before the first.
    pub(super) read_at: u64,
    /// How much was read since the peer was last told.
    pub(super) unreturned: u32,
    /// How much of a body of known length is still to come.
    pub(super) length_left: Option<u64>,
    /// Whether the reader is gone: no more will be read.
    pub(super) is_gone: bool,
    pub(super) waiting: WaitingTask,
}

/// How often half of what was accepted was read. Once may be no client's reading: so much goes into the next
/// hop's room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadingProgress {
    #[default]
    None,
    Once,
    Again,
}

/// How much there is of a message's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HeadProgress {
    #[default]
    Awaited,
    /// An interim response came, and so the peer has begun.
    Interim,
    Here,
}

/// The half of a stream that we write and the peer reads.
#[derive(Debug, Default)]
pub(super) struct SendingHalf {
    /// How much may be sent. Negative when the peer has changed its mind.
    pub(super) window: i64,
    pub(super) is_ended: bool,
    /// Whether the writer is gone: no more will be written.
    pub(super) is_gone: bool,
    /// Whether it waits for its connection, not for its own window.
    pub(super) turn: Turn,
    pub(super) waiting: WaitingTask,
}

/// Where a stream is in the queue of those that wait for their connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is not in it.
    #[default]
    None,
    Waits,
    /// It was told that it may go on, and has not come yet.
    Called,
}

impl Stream {
    pub(super) fn new(id: u32, receive_window: u32, send_window: u32) -> Self {
        Self {
            id,
            head_bytes: Cell::default(),
            large_head_bytes: Cell::default(),
            is_over: Cell::new(false),
            small_pieces: Cell::default(),
            state: RefCell::new(State {
                receiving: ReceivingHalf {
                    window: i64::from(receive_window),
                    accepted: receive_window,
                    ..ReceivingHalf::default()
                },
                sending: SendingHalf { window: i64::from(send_window), ..SendingHalf::default() },
                response: None,
                response_memory: 0,
                is_bodiless: false,
                error: None,
            }),
        }
    }
}

impl State {
    /// Ends the stream with an error for its reader and its writer.
    pub(super) fn fail(&mut self, error: StreamError) {
        // The first reason stands: that the connection closes afterwards is what follows from a reset, and
        // explains nothing.
        self.error.get_or_insert(error);
        // Both tasks: the writer may wait for room in a window and the reader for a body, and the peer sends
        // nothing more for this stream.
        self.receiving.waiting.wake();
        self.sending.waiting.wake();
    }

    /// How much memory its heads take that wait for their reader.
    pub(super) fn unread_heads(&self) -> usize {
        self.response_memory + self.receiving.trailers_memory
    }

    /// Drops the large ones of the heads that wait for their reader; returns how much memory they took.
    pub(super) fn forget_unread_heads(&mut self) -> usize {
        let response = std::mem::take(&mut self.response_memory);
        if response > 0 {
            self.response = None;
        }
        let trailers = std::mem::take(&mut self.receiving.trailers_memory);
        if trailers > 0 {
            self.receiving.trailers = None;
        }
        response + trailers
    }

    /// Whether both sides are done.
    pub(super) fn is_over(&self) -> bool {
        self.sending.is_ended && self.receiving.is_ended
    }
}

/// The task that waits for something, if one does.
#[derive(Debug, Default)]
pub(super) struct WaitingTask(Option<Waker>);

impl WaitingTask {
    pub(super) fn register(&mut self, context: &Context<'_>) {
        // A stream is polled by the same task nearly always, and each clone of a waker counts in that task.
        if !self.0.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.0 = Some(context.waker().clone());
        }
    }

    pub(super) fn wake(&self) {
        // It stays registered, so that the next wait needs no other clone; a wake-up too many is a look too
        // many.
        if let Some(waker) = &self.0 {
            waker.wake_by_ref();
        }
    }
}
