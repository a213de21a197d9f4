//! One stream: what came on it and waits to be read, and what may be sent.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use http::{HeaderMap, Response};
use thiserror::Error;

use super::frame::ErrorCode;
use super::unread::UnreadData;

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
    /// The connection ended.
    #[error("the connection ended in the middle of the stream")]
    Closed,
    /// We broke it off: what came is not what HTTP/2 allows, or nobody wants it.
    #[error("stream broken off: {0}")]
    Aborted(ErrorCode),
}

impl StreamError {
    /// What to tell another peer to whom a part of the stream was passed on. Never that it was refused: that says that nothing was done for it, and who
    /// hears that sends it again.
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            Self::Reset(ErrorCode::REFUSED_STREAM) | Self::Refused | Self::Aborted(_) => {
                ErrorCode::INTERNAL_ERROR
            }
            Self::Reset(code) => code,
            Self::Unsent | Self::Closed => ErrorCode::CANCEL,
        }
    }
}

/// One stream of a session.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) state: RefCell<State>,
}

/// What is known of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    /// The head of the response, on the side of the client, until somebody takes it.
    pub(super) response: Option<Response<()>>,
    /// Whether there is no body whatever a length says: it is the answer to HEAD, or its status has none.
    pub(super) is_bodiless: bool,
    pub(super) error: Option<StreamError>,
}

/// What comes.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) head: HeadProgress,
    /// What was not yet read.
    pub(super) data: UnreadData,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) is_ended: bool,
    /// How much the peer may still send.
    pub(super) window: i64,
    /// Whether somebody has begun to read it.
    pub(super) is_read: bool,
    /// How much was read since the peer was last told.
    pub(super) unreturned: u32,
    /// How much of a body of known length is still to come.
    pub(super) length_left: Option<u64>,
    /// Whether nobody will read more.
    pub(super) is_gone: bool,
    pub(super) waiting: Waiting,
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

/// What goes.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// How much may be sent. Negative when the peer has changed its mind.
    pub(super) window: i64,
    pub(super) is_ended: bool,
    /// Whether nobody will write more.
    pub(super) is_gone: bool,
    /// Whether it waits for its connection, not for its own window.
    pub(super) turn: Turn,
    pub(super) waiting: Waiting,
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
            state: RefCell::new(State {
                receiving: Receiving { window: i64::from(receive_window), ..Receiving::default() },
                sending: Sending { window: i64::from(send_window), ..Sending::default() },
                response: None,
                is_bodiless: false,
                error: None,
            }),
        }
    }
}

impl State {
    /// Ends it, for whoever reads or writes.
    pub(super) fn fail(&mut self, error: StreamError) {
        self.error.get_or_insert(error);
        self.receiving.waiting.wake();
        self.sending.waiting.wake();
    }

    /// Whether both sides are done.
    pub(super) fn is_over(&self) -> bool {
        self.sending.is_ended && self.receiving.is_ended
    }
}

/// The task that waits for something, if one does.
#[derive(Debug, Default)]
pub(super) struct Waiting(Option<Waker>);

impl Waiting {
    pub(super) fn register(&mut self, context: &Context<'_>) {
        if !self.0.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.0 = Some(context.waker().clone());
        }
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &self.0 {
            waker.wake_by_ref();
        }
    }
}

/// The open streams of a session, by their numbers. There are few, and new ones have the highest numbers.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Rc<Stream>>);

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn find(&self, id: u32) -> Option<&Rc<Stream>> {
        let at = self.0.binary_search_by_key(&id, |stream| stream.id).ok()?;
        self.0.get(at)
    }

    /// Adds one with a higher number than all others.
    pub(super) fn open(&mut self, stream: Rc<Stream>) {
        self.0.push(stream);
    }

    pub(super) fn remove(&mut self, id: u32) {
        if let Ok(at) = self.0.binary_search_by_key(&id, |stream| stream.id) {
            self.0.remove(at);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<Stream>> {
        self.0.iter()
    }

    /// Takes all those above a number out.
    pub(super) fn take_above(&mut self, id: u32) -> Vec<Rc<Stream>> {
        self.0.split_off(self.0.partition_point(|stream| stream.id <= id))
    }
}
