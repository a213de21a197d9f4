//! The number that stands for a waiting request where there is no future and no socket.

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
