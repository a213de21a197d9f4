//! What both ends of an HTTP/2 connection have in common, beside the protocol itself: how its bytes move, and
//! how a body gets into a stream.

mod pump;
mod transport;
mod unfinished;
mod watchdog;

pub(crate) use pump::{Pump, SendFailure};
pub(crate) use transport::{ConnectionEnd, Transport};
pub(crate) use unfinished::UnfinishedInputWatch;
pub(crate) use watchdog::PeerWatchdog;

#[cfg(test)]
mod tests;
