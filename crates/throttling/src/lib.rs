//! Which request may run where, and when.
//!
//! Each question is a value without sockets, clocks or threads. May this request run now ([`Breaker`])? Which
//! pod takes a request, and which request is next ([`Throttler`], with a balancer)? How much ran, second by
//! second ([`LoadMeter`])? What becomes of the requests of one revision at one activator
//! ([`ActivatorRevision`]), and of all its revisions ([`ActivatorRevisions`])? The edge hands in events with
//! the time they happened at and acts on the answers; a waiting request is a [`Ticket`] here and a future
//! there.

mod balancer;
mod breaker;
mod claims;
mod load_meter;
mod revision;
mod revisions;
mod throttler;
mod ticket;
#[cfg(test)]
mod vectors;

pub use breaker::{Arrival, Breaker, BreakerError, BreakerLimits};
pub use claims::{Claims, LinkNumber};
pub use load_meter::{EndedSeconds, LoadMeter, Origin, PresentLoad, ReporterSeconds};
pub use revision::{
    ActivatorRevision, ClosedSecond, RequestEvent, RequestRefusal, RevisionCommand, RevisionNews,
    RevisionSeed, UnmeasuredChoice,
};
pub use revisions::{
    ActivatorCommand, ActivatorEvent, ActivatorIdentity, ActivatorRevisions, QueueLimits, RequestWay,
    RevisionCell, UpkeepId,
};
pub use throttler::{Counts, DirectPick, Dispatch, QueueFull, Throttler};
pub use ticket::Ticket;
