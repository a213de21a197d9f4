//! Clients that connected before their Service was adopted: which of them are still there, and do they rest?
//!
//! The owner names an adoption ([`vocabulary::AdoptionId`]). Then, and once more when nodes have heard of it,
//! the kernel is asked which connections the app has; that set only shrinks from then on. It is reported to
//! the owner, which does not lower the count meanwhile, and the drain waits for members that are in use. What
//! connects later came past the Service (a scraper that knows the pod's address) and keeps nothing awake.
//!
//! The set lives in this process alone. A queue-proxy whose container was started again takes a new one when
//! its owner names the adoption, with every connection that is open then, also those that came past the
//! Service: so the count may be held for longer, and no client of before is forgotten.
//!
//! An owner that names no adoption does not know what is reported here, and gets no report.

mod set;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use dataplane::{ConnectionId, ConnectionReader, KernelConnection};
use runtime::Clock;
use tokio::sync::Notify;
use tracing::{info, warn};
use vocabulary::{AdoptedConnections, AdoptionId, ConnectionTally, Timestamp};

use self::set::{AdoptedSet, MembersBytes};
use crate::own_peers::OwnPeers;
use crate::settings::OwnerSettings;

/// How long after the owner's word connections still become members: kube-proxy may lead clients to the app's
/// own port until then.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// How often members are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many members are looked at in one turn: each takes a few microseconds, in which no request is served.
const MEMBERS_PER_TURN: usize = 32;
/// A member that has moved no byte for so long rests: its client loses nothing that is under way.
const RESTS_AFTER: Duration = Duration::from_secs(10);

/// Finds a way to read the connections at these ports, and returns with it those that are open.
type ReaderOpening = fn(&[u16]) -> io::Result<(ConnectionReader, Vec<KernelConnection>)>;

/// Looks after the connections from before an adoption.
pub(crate) struct AdoptedClients {
    clock: Clock,
    /// The app's, as far as requests reach it there.
    ports: Vec<u16>,
    /// The peers that are not clients of the Service: the pod itself and its node.
    own_peers: Rc<OwnPeers>,
    settings: Rc<OwnerSettings>,
    /// [`ConnectionReader::open`]; tests have kernels that show nothing.
    open_reader: ReaderOpening,
    set: RefCell<AdoptedSet>,
    /// Since when no way to read connections is found; `None` while one is, and before any was tried.
    unreadable_since: Cell<Option<Timestamp>>,
    /// The last report; `None` before the first.
    reported: Cell<Option<AdoptedConnections>>,
    /// Grows with every change of what is to be reported.
    version: Cell<u64>,
    changed: Notify,
}

impl AdoptedClients {
    pub(crate) fn new(
        clock: Clock,
        ports: Vec<u16>,
        own_peers: Rc<OwnPeers>,
        settings: Rc<OwnerSettings>,
    ) -> Self {
        Self {
            clock,
            ports,
            own_peers,
            settings,
            open_reader: ConnectionReader::open,
            set: RefCell::default(),
            unreadable_since: Cell::new(None),
            reported: Cell::new(None),
            version: Cell::new(0),
            changed: Notify::new(),
        }
    }

    /// Takes the set when the owner names an adoption, and looks after it, for ever.
    pub(crate) async fn run(&self) {
        let mut taken = None;
        loop {
            let adoption = self.settings.adoption_after(taken).await;
            taken = Some(adoption);
            self.follow(adoption).await;
        }
    }

    /// From one adoption until no member is left, or until a later adoption.
    async fn follow(&self, adoption: AdoptionId) {
        let began_at = self.clock.now();
        let (reader, found) = match (self.open_reader)(&self.ports) {
            Ok(opened) => opened,
            Err(error) => {
                warn!(%error, "the kernel does not show the app's connections");
                self.unreadable_since.set(Some(began_at));
                return self.note_change();
            }
        };
        self.unreadable_since.set(None);
        self.admit(found);
        info!(connections = self.set.borrow().len(), "the Service was adopted with its clients");
        self.note_change();
        let mut is_taken = false;
        while !(is_taken && self.set.borrow().is_empty()) {
            // Cancelling loses nothing: the adoption is a state, and the next look a time.
            tokio::select! {
                _later = self.settings.adoption_after(Some(adoption)) => return,
                () = self.clock.sleep_until(self.clock.now() + LOOK_EVERY) => {}
            }
            if !is_taken && self.clock.now() >= began_at + TAKEN_WITHIN {
                is_taken = true;
                // A failed look is no news.
                if let Ok(found) = reader.all(&self.ports) {
                    self.admit(found);
                }
            }
            self.check_members(&reader).await;
            self.note_change();
        }
    }

    fn admit(&self, found: Vec<KernelConnection>) {
        let now = self.clock.now();
        let mut set = self.set.borrow_mut();
        let is_client = |id: &ConnectionId| !self.own_peers.include(id.peer().ip(), Some(id.own().ip()));
        for connection in found.into_iter().filter(|found| is_client(&found.id)) {
            set.admit(connection, now);
        }
    }

    async fn check_members(&self, reader: &ConnectionReader) {
        let ids = self.set.borrow().ids();
        for some in ids.chunks(MEMBERS_PER_TURN) {
            // A failed look is no news.
            if let Ok(found) = reader.still_open(some) {
                let now = self.clock.now();
                let bytes: MembersBytes = found.into_iter().map(|found| (found.id, found.bytes)).collect();
                self.set.borrow_mut().update(some, &bytes, now);
            }
            tokio::task::yield_now().await;
        }
    }

    /// What is to be reported now.
    fn report(&self) -> AdoptedConnections {
        let now = self.clock.now();
        match self.unreadable_since.get() {
            Some(since) => AdoptedConnections::Unreadable { age: now.saturating_since(since) },
            None => AdoptedConnections::Open(self.set.borrow().tally(now)),
        }
    }

    /// An age alone is no news: the owner counts on from the last report.
    fn note_change(&self) {
        let report = self.report();
        if self.reported.get().is_none_or(|reported| without_age(reported) != without_age(report)) {
            self.reported.set(Some(report));
            self.version.set(self.version.get() + 1);
            self.changed.notify_waiters();
        }
    }

    /// Waits until there is something to tell that the version `known` did not have, to an owner that knows
    /// what it means.
    pub(crate) async fn news(&self, known: u64) -> AdoptedNews {
        loop {
            // Both are asked for before the look, so that no change in between is missed.
            let (changed, spoken) = (self.changed.notified(), self.settings.changed());
            if self.version.get() > known && self.settings.adoption().is_some() {
                return AdoptedNews { version: self.version.get(), connections: self.report() };
            }
            // Cancelling loses nothing: both only wake.
            tokio::select! {
                () = changed => {}
                () = spoken => {}
            }
        }
    }

    /// Waits until no adopted connection has moved a byte for [`RESTS_AFTER`].
    pub(crate) async fn until_unused(&self) {
        loop {
            let now = self.clock.now();
            if !self.set.borrow().has_moved_since(now - RESTS_AFTER) {
                return;
            }
            self.clock.sleep_until(now + LOOK_EVERY).await;
        }
    }
}

/// A report for the owner, with the version by which the link remembers that it was sent.
pub(crate) struct AdoptedNews {
    pub(crate) version: u64,
    pub(crate) connections: AdoptedConnections,
}

fn without_age(connections: AdoptedConnections) -> AdoptedConnections {
    let age = Duration::ZERO;
    match connections {
        AdoptedConnections::Open(tally) => AdoptedConnections::Open(ConnectionTally { age, ..tally }),
        AdoptedConnections::Unreadable { .. } => AdoptedConnections::Unreadable { age },
    }
}

#[cfg(test)]
mod tests;
