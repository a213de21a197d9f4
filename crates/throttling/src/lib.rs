//! Which request may run where, and when.
//!
//! Three questions, each a value without sockets, clocks or threads. May this request run now ([`Breaker`])?
//! Which pod takes it, and who is next ([`Throttler`], with a [`Balancer`])? How much ran, second by second
//! ([`LoadMeter`])? The edge hands in events with the time they happened at and acts on the answers; a
//! waiting request is a [`Ticket`] here and a future there.

mod balancer;
mod breaker;
mod load_meter;
mod throttler;
#[cfg(test)]
mod vectors;

pub use balancer::{Balancer, Candidate, Policy};
pub use breaker::{Arrival, Breaker, BreakerError, BreakerLimits};
pub use load_meter::{EndedSeconds, LoadMeter, Origin, PresentLoad, ReporterSeconds};
pub use throttler::{Counts, DirectPick, Dispatch, QueueFull, Throttler};

/// Stands for one request that waits. Tickets of one breaker or throttler grow with every arrival, so the
/// smallest is the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The first of all tickets.
    pub(crate) const FIRST: Self = Self(0);

    /// Hands out this ticket and moves on to the next.
    pub(crate) fn draw(&mut self) -> Self {
        let drawn = *self;
        self.0 += 1;
        drawn
    }
}
