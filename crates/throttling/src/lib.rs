//! Which request may run where, and when.
//!
//! Three questions, each a value without sockets, clocks or threads. May this request run now ([`Breaker`])?
//! Which pod takes a request, and which request is next ([`Throttler`], with a balancer)? How much ran,
//! second by second ([`LoadMeter`])? The edge hands in events with the time they happened at and acts on the
//! answers; a waiting request is a [`Ticket`] here and a future there.

mod balancer;
mod breaker;
mod claims;
mod load_meter;
mod throttler;
mod ticket;
#[cfg(test)]
mod vectors;

pub use breaker::{Arrival, Breaker, BreakerError, BreakerLimits};
pub use claims::{Claims, LinkNumber};
pub use load_meter::{EndedSeconds, LoadMeter, Origin, PresentLoad, ReporterSeconds};
pub use throttler::{Counts, DirectPick, Dispatch, QueueFull, Throttler};
pub use ticket::Ticket;
