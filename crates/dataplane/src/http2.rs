//! HTTP/2 (RFC 9113), both ends, as a proxy needs it: with prior knowledge, without pushes and priorities.
//!
//! `frame`, `input`, `output` and `hpack` know bytes; `head` and `stream` know messages; `session` knows what the two ends of a connection owe each other;
//! `transport` moves its bytes; `server` and `client` are the two ends. A stream costs its state and the one task that answers or asks
//! anyway.

mod account;
mod client;
mod frame;
mod handle;
mod head;
mod hpack;
mod input;
mod output;
mod pump;
mod server;
mod session;
mod small_pieces;
mod stream;
mod transport;

pub(crate) use client::connect;
pub use frame::ErrorCode;
pub(crate) use frame::PREFACE;
pub(crate) use handle::Receiver;
pub(crate) use pump::{Pump, SendFailure};
pub(crate) use server::serve;
pub(crate) use session::{Greeting, HasBody, Session, SessionLimits};
pub use stream::StreamError;

#[cfg(test)]
mod tests;
