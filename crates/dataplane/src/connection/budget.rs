//! How many clients may be connected to one process, and which connections are closed when there is no room
//! for more?
//!
//! A connection is a file descriptor, of which a process has a limited number, and a request needs a second
//! one for its upstream: a process that gave all to clients could serve none of them. All servers of a
//! process share one budget, whatever threads they run on. When nearly all of it is used, each of them closes
//! connections that hold nothing (see [`crate::connection::drain`]); when all of it is, a client that
//! connects waits in the kernel.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::sync::{AtomicUsize, Notified, Notify, Ordering};

/// The descriptors that a process needs beside those of its clients: its listeners, the runtime's own, logs
/// and pipes (31), the link with the strangers at its port (33), the small pages
/// ([`runtime::PageLimits::descriptors`], 100, and at each of four listeners one that waits for a place).
const OWN_DESCRIPTORS: u64 = 168;

/// One for the client and one for the upstream: a request on HTTP/1.1 and an upgraded stream hold both.
const DESCRIPTORS_PER_CLIENT: u64 = 2;

/// Where there are hardly any descriptors, some clients are served all the same: most share an upstream or
/// need none.
const CONNECTIONS_MIN: usize = 16;

/// However many descriptors there are, memory ends too: an idle connection takes about 2 KiB, one with a
/// request ten times as much.
const CONNECTIONS_MAX: usize = 50_000;

/// From 15/16 on nearly all is used. Some room must be left then: a connection that is asked to go takes a
/// moment.
const CROWDED_PARTS: usize = 16;

/// Why a connection that held nothing was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleClosing {
    /// The connection held nothing for too long.
    Age,
    /// There was no room for others.
    Crowding,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClosureReasonLabel {
    reason: &'static str,
}

/// Counts the idle connections that were closed. Cheap to clone; register once per process.
#[derive(Clone, Debug)]
pub struct ClosedIdleConnections {
    by_reason: Family<ClosureReasonLabel, Counter>,
    age: Counter,
    crowding: Counter,
}

impl Default for ClosedIdleConnections {
    fn default() -> Self {
        let by_reason = Family::<ClosureReasonLabel, Counter>::default();
        let counter = |reason| by_reason.get_or_create_owned(&ClosureReasonLabel { reason });
        Self { age: counter("age"), crowding: counter("crowding"), by_reason }
    }
}

impl ClosedIdleConnections {
    /// Lists the counter under `name`.
    pub fn register(&self, registry: &mut Registry, name: &str) {
        let help = "Connections of clients that were closed because they held nothing, by reason";
        registry.register(name, help, self.by_reason.clone());
    }

    pub(crate) fn count(&self, why: IdleClosing) {
        match why {
            IdleClosing::Age => self.age.inc(),
            IdleClosing::Crowding => self.crowding.inc(),
        };
    }
}

/// The connections that clients may have, and have, with all servers of a process.
#[derive(Debug)]
pub struct ConnectionBudget {
    max: usize,
    open: AtomicUsize,
    /// Notified when a client leaves while there is no room.
    room: Notify,
    /// Notified when a client comes, or its connection becomes idle, while there is hardly any room.
    over_limit: Notify,
    closed: ClosedIdleConnections,
}

impl ConnectionBudget {
    /// The budget of a process that may open so many file descriptors.
    pub fn of_descriptors(descriptors: u64, closed: ClosedIdleConnections) -> Arc<Self> {
        let clients = descriptors.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_PER_CLIENT;
        let clients = usize::try_from(clients).unwrap_or(usize::MAX);
        Self::of_connections(clients.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX), closed)
    }

    /// A budget of at most `max` open connections of clients.
    pub fn of_connections(max: usize, closed: ClosedIdleConnections) -> Arc<Self> {
        let (room, over_limit) = (Notify::new(), Notify::new());
        Arc::new(Self { max, open: AtomicUsize::new(0), room, over_limit, closed })
    }

    /// The largest number of connections that clients may have at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// How many connections there are; one of a watched half-closed client counts twice.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn closed(&self) -> &ClosedIdleConnections {
        &self.closed
    }

    pub(crate) fn enter(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        if self.surplus().is_some() {
            self.ask_for_room();
        }
    }

    /// Makes every server look whether it can make room.
    pub(crate) fn ask_for_room(&self) {
        self.over_limit.notify_waiters();
    }

    pub(crate) fn leave(&self) {
        // Servers wait for room only when there is none, so none is woken for the thousands of clients that
        // leave otherwise.
        if self.open.fetch_sub(1, Ordering::Relaxed) >= self.max {
            self.room.notify_waiters();
        }
    }

    /// Waits until one more may come. Several that wait may come together, so there may be a few more than
    /// the limit says, one for each server.
    pub(crate) async fn room(&self) {
        loop {
            // Requested before the look: a client that leaves between the two would otherwise wake no server.
            let room = self.room.notified();
            if self.open.load(Ordering::Relaxed) < self.max {
                return;
            }
            room.await;
        }
    }

    /// The next [`ConnectionBudget::ask_for_room`]. Make it, look at [`ConnectionBudget::surplus`], then
    /// wait.
    pub(crate) fn over_limit(&self) -> Notified<'_> {
        self.over_limit.notified()
    }

    /// How many connections there are, and how many of these are too many for comfort; `None` while there is
    /// room. More connections go than need to, so that not every new client makes a server look for one.
    pub(crate) fn surplus(&self) -> Option<Surplus> {
        let open = self.open.load(Ordering::Relaxed);
        let part = self.max.div_ceil(CROWDED_PARTS);
        (open > self.max - part).then(|| Surplus { open, too_many: open + 2 * part - self.max })
    }
}

impl Default for ConnectionBudget {
    fn default() -> Self {
        Self {
            max: CONNECTIONS_MAX,
            open: AtomicUsize::new(0),
            room: Notify::new(),
            over_limit: Notify::new(),
            closed: ClosedIdleConnections::default(),
        }
    }
}

/// How many connections are open, and how many of them should go; see [`ConnectionBudget::surplus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surplus {
    open: usize,
    too_many: usize,
}

impl Surplus {
    /// How many of them a server with this many connections has to close, rounded up: of several servers none
    /// has to close for all.
    pub(crate) fn share(self, connections: usize) -> usize {
        (self.too_many * connections).div_ceil(self.open.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_half_of_what_the_process_does_not_need() {
        for (descriptors, clients) in
            [(64, 16), (512, 172), (1024, 428), (20_000, 9_916), (1_048_576, 50_000), (u64::MAX, 50_000)]
        {
            let budget = ConnectionBudget::of_descriptors(descriptors, ClosedIdleConnections::default());
            assert_eq!(budget.max(), clients, "{descriptors}");
        }
    }

    #[test]
    fn the_pages_fit_into_what_is_kept_from_clients() {
        const OTHERS: u64 = 31 + 33 + 4;
        let pages = u64::try_from(runtime::PageLimits::STANDARD.descriptors()).expect("it is small");
        assert_eq!(OWN_DESCRIPTORS, OTHERS + pages);
    }

    #[test]
    fn room_is_made_before_there_is_none_and_shared_between_servers() {
        for (max, crowded_from, too_many) in [(16, 16, 2), (192, 181, 13), (50_000, 46_876, 3_126)] {
            let budget = ConnectionBudget::of_connections(max, ClosedIdleConnections::default());
            while budget.surplus().is_none() {
                budget.enter();
            }
            let surplus = budget.surplus().expect("crowded");
            assert_eq!((surplus.open, surplus.too_many), (crowded_from, too_many), "{max}");
            assert!(max == 16 || crowded_from < max);
            let (one, other) = (max / 3, crowded_from - max / 3);
            let shares = surplus.share(one) + surplus.share(other);
            assert!((too_many..=too_many + 1).contains(&shares), "{shares} of {too_many}");
            assert_eq!(surplus.share(0), 0);
        }
    }
}
