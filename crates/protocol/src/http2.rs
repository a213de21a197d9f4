//! HTTP/2 (RFC 9113), both ends, as a proxy needs it: with prior knowledge, without pushes and priorities.
//!
//! `frame`, `input`, `output` and `hpack` know bytes; `head` and `stream` know messages; `session` knows what
//! the two ends of a connection owe each other. The owner of the socket hands over the bytes that it read
//! ([`Session::receive`]) and writes those that wait ([`Session::end_turn`]); the tasks that answer or ask
//! hold the two ends of their stream ([`Sender`], [`Receiver`]).
//!
//! A task that waits for something here leaves a [`std::task::Waker`], and is woken when it has come. This
//! crate knows nothing else of tasks: a queue of events, in which each would be looked up again, would cost
//! every piece of a body what a wake costs now.

mod account;
pub mod frame;
mod handle;
mod head;
pub mod hpack;
mod input;
mod memory;
mod output;
mod session;
mod small_pieces;
mod stream;
mod streams;

use vocabulary::Timestamp;

pub use frame::{ErrorCode, PREFACE};
pub use handle::{Receiver, Sender};
pub use memory::{MEMORY_PAUSE, MemoryBudget, MemoryShare, OverShare, head_memory, large_head_memory};
pub use session::{
    ArrivedRequest, HasBody, PeerPreface, RefusedHead, Role, Session, SessionEvent, SessionLimits,
    UnfinishedInput,
};
pub use small_pieces::SMALL_BYTES;
pub use stream::{Stream, StreamError};

/// Tells the present time. It is called seldom: only when a frame is to be paid for and its peer's credit is
/// gone.
pub type PresentTime<'a> = &'a dyn Fn() -> Timestamp;
