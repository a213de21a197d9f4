//! How a server ends: it says so first, finishes what it holds, and only then closes.
//!
//! Three steps, each a call, because their order differs between programs. From [`Drain::begin`] on every
//! HTTP/1.1 response says `Connection: close` and HTTP/2 connections get GOAWAY, while new connections are
//! still accepted: routers need time to learn. [`Drain::stop_accepting`] closes the door.
//! [`Drain::close_idle`] closes connections that hold nothing, which is the one step in which a request that
//! is already on its way can be lost, so it comes last.
//!
//! A server that goes on serving closes connections that hold nothing as well: those that have held nothing
//! for long, and the oldest of them when there is no room for others. Those of our own hops are not among
//! them, which close theirs themselves.

mod connections;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::Clock;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use vocabulary::Timestamp;

use crate::connection::budget::{ConnectionBudget, IdleClosing};
use crate::connection::{Connection, Occupation};
use crate::socket::diagnosis::SocketDiagnosis;
use crate::socket::silence::{ConnectionEnds, SilenceLog};
use connections::OpenConnections;

/// How long a connection must have held nothing to be closed for want of room. A client that has just
/// connected or got its answer is about to write: its bytes are on their way for half a round trip.
const SETTLING_TIME: Duration = Duration::from_millis(250);

/// How many questions about connections are asked in one turn: each takes a few microseconds, in which no
/// request is served.
const QUESTIONS_PER_TURN: usize = 32;

/// The life of one server and its connections. Clones share it; it stays on its thread.
#[derive(Clone, Debug)]
pub struct Drain(Rc<DrainState>);

impl Default for Drain {
    fn default() -> Self {
        Self::within(Arc::default())
    }
}

#[derive(Debug)]
struct DrainState {
    budget: Arc<ConnectionBudget>,
    clock: Clock,
    /// The time when a client last came or idle connections were last looked at: near enough to say how long
    /// a connection has held nothing.
    looked_at: Cell<Timestamp>,
    phase: Cell<Phase>,
    is_accepting_stopped: Cell<bool>,
    stop_accepting: Notify,
    listeners: Cell<usize>,
    connections: RefCell<OpenConnections>,
    /// How many were asked to go and have not gone yet.
    dismissed: Cell<usize>,
    #[cfg(test)]
    accepted: Cell<usize>,
    upgraded: Cell<usize>,
    /// Both connections of each upgraded stream, with the notification that one of the two is gone.
    upgraded_streams: RefCell<BTreeMap<ConnectionEnds, Rc<Notify>>>,
    silence: RefCell<SilenceLog>,
    ended: Notify,
}

/// How far a drain has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Connections live as long as their peers like.
    #[default]
    Serving,
    /// Every connection is told that it will end.
    Marking,
    /// Connections that hold nothing are closed.
    Closing,
}

impl Drain {
    /// A server that serves, with a budget of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// A server that serves, and shares the connections that its process may have with others.
    pub fn within(budget: Arc<ConnectionBudget>) -> Self {
        let clock = Clock::start();
        Self(Rc::new(DrainState {
            budget,
            clock,
            looked_at: Cell::new(clock.now()),
            phase: Cell::default(),
            is_accepting_stopped: Cell::default(),
            stop_accepting: Notify::new(),
            listeners: Cell::default(),
            connections: RefCell::default(),
            dismissed: Cell::default(),
            #[cfg(test)]
            accepted: Cell::default(),
            upgraded: Cell::default(),
            upgraded_streams: RefCell::default(),
            silence: RefCell::default(),
            ended: Notify::new(),
        }))
    }

    /// From now on every connection is told that it will end.
    pub fn begin(&self) {
        self.advance(Phase::Marking);
    }

    /// No further connection is accepted, except those that are already established.
    pub fn stop_accepting(&self) {
        // In this order: a woken listener looks at the flag, and one that comes later finds it set.
        self.0.is_accepting_stopped.set(true);
        self.0.stop_accepting.notify_waiters();
    }

    /// Closes every connection as soon as it holds nothing.
    pub fn close_idle(&self) {
        self.advance(Phase::Closing);
    }

    /// Whether the server has begun to end: [`Drain::begin`] was called.
    pub fn is_draining(&self) -> bool {
        self.0.phase.get() >= Phase::Marking
    }

    /// How many connections are open, upgraded ones not included.
    pub fn connections(&self) -> usize {
        self.0.connections.borrow().len()
    }

    /// How many of them said that they come from one of our own hops.
    pub fn hop_connections(&self) -> usize {
        self.0.connections.borrow().iter().filter(|connection| connection.is_from_hop()).count()
    }

    /// How many upgraded streams are open.
    pub fn upgraded(&self) -> usize {
        self.0.upgraded.get()
    }

    /// How many connections hold nothing and may be closed.
    #[cfg(test)]
    pub(crate) fn resting(&self) -> usize {
        self.0
            .connections
            .borrow()
            .iter()
            .filter(|connection| connection.occupation() == Occupation::Resting)
            .count()
    }

    /// How many connections there have been.
    #[cfg(test)]
    pub(crate) fn accepted(&self) -> usize {
        self.0.accepted.get()
    }

    /// Waits until a connection, an upgraded stream or a listener ends. Register before looking: what ends
    /// between a look and this call is missed otherwise, so loop over `tokio::pin!` and `enable` or, simpler,
    /// use [`Drain::until`].
    async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// Waits until `condition` holds, looking again whenever a connection, an upgraded stream or a listener
    /// ends.
    pub async fn until(&self, condition: impl Fn(&Self) -> bool) {
        // Nothing can end between the look and the registration: both happen on this thread without a pause.
        while !condition(self) {
            self.ended().await;
        }
    }

    /// Waits until no connection and no upgraded stream is left, nor, after [`Drain::stop_accepting`], one
    /// that waits to be accepted.
    pub async fn finished(&self) {
        // A listener first takes what the kernel has accepted for it, so while one is left connections may
        // still come.
        let is_door_closed = |drain: &Self| !drain.is_accepting_stopped() || drain.0.listeners.get() == 0;
        self.until(|drain| is_door_closed(drain) && drain.connections() == 0 && drain.upgraded() == 0).await;
    }

    pub(crate) fn phase(&self) -> Phase {
        self.0.phase.get()
    }

    pub(crate) fn is_accepting_stopped(&self) -> bool {
        self.0.is_accepting_stopped.get()
    }

    pub(crate) async fn accepting_stopped(&self) {
        // Made before the look: from then on it hears the word, which would be missed between a look and a
        // wait.
        let stopped = self.0.stop_accepting.notified();
        if !self.is_accepting_stopped() {
            stopped.await;
        }
    }

    /// Counts a listener for as long as the returned value lives.
    pub(crate) fn enter_listener(&self) -> DrainCount {
        DrainCount::new(self, |shared| &shared.listeners)
    }

    /// Counts a connection for as long as the returned value lives.
    pub(crate) fn enter(&self, connection: &Rc<Connection>) -> OpenConnection {
        self.0.looked_at.set(self.0.clock.now());
        #[cfg(test)]
        self.0.accepted.set(self.0.accepted.get() + 1);
        let slot = self.0.connections.borrow_mut().insert(Rc::clone(connection));
        connection.keep_at(slot);
        self.0.budget.enter();
        OpenConnection { drain: self.clone(), connection: Rc::clone(connection) }
    }

    /// The connections that all servers of the process may have.
    pub(crate) fn budget(&self) -> &ConnectionBudget {
        &self.0.budget
    }

    /// The connection holds nothing: it may be closed when that lasts, or when there is no room for others.
    pub(crate) fn rest(&self, connection: &Connection) {
        if connection.occupation() == Occupation::Working && !connection.is_from_hop() {
            connection.set_occupation(Occupation::Resting);
            // Only now is the exact time worth a look at the clock, which each request would pay for; and
            // the task that makes room may have waited for just such a connection.
            if self.0.budget.surplus().is_some() {
                self.0.looked_at.set(self.0.clock.now());
                self.0.budget.ask_for_room();
            }
            self.0.connections.borrow_mut().rest(connection.slot(), self.0.looked_at.get());
        }
    }

    /// The connection holds something, also if it was asked to go: it had not heard that yet.
    pub(crate) fn work(&self, connection: &Connection) {
        match connection.occupation() {
            Occupation::Working => {}
            Occupation::Resting => self.0.connections.borrow_mut().work(connection.slot()),
            Occupation::Dismissed => self.0.dismissed.set(self.0.dismissed.get().saturating_sub(1)),
        }
        connection.set_occupation(Occupation::Working);
    }

    /// Asks connections to go that have held nothing for so long.
    pub(crate) fn dismiss_old(&self, idle_time: Duration) {
        let now = self.0.clock.now();
        self.0.looked_at.set(now);
        while self.dismiss_oldest(now - idle_time, IdleClosing::Age) {}
    }

    /// Asks connections to go that hold nothing, if there is hardly room for others: this server's share of
    /// those that are too many. Ready when there may be more of them.
    pub(crate) async fn make_room(&self) {
        match self.dismiss_share() {
            Some(again_at) => self.0.clock.sleep_until(again_at).await,
            None => std::future::pending().await,
        }
    }

    /// Returns when to try again, if some of the share have not been idle for long enough.
    fn dismiss_share(&self) -> Option<Timestamp> {
        let surplus = self.0.budget.surplus()?;
        let now = self.0.clock.now();
        self.0.looked_at.set(now);
        // Those that were asked and have not gone yet still count as open: asking others in their place would
        // close more than are too many.
        let share = surplus.share(self.connections()).saturating_sub(self.0.dismissed.get());
        let dismissed =
            (0..share).take_while(|_| self.dismiss_oldest(now - SETTLING_TIME, IdleClosing::Crowding));
        if dismissed.count() == share {
            return None;
        }
        // All that are left were in use a moment ago. The oldest of them is the first that may go.
        let oldest = self.0.connections.borrow().oldest_rests_since();
        oldest.map(|since| since + SETTLING_TIME)
    }

    /// Asks the one to go that has held nothing for the longest time, at the latest since then. It looks for
    /// itself whether something has arrived meanwhile.
    fn dismiss_oldest(&self, latest: Timestamp, why: IdleClosing) -> bool {
        let oldest = self.0.connections.borrow_mut().take_oldest(latest);
        let Some(connection) = oldest else { return false };
        connection.set_occupation(Occupation::Dismissed);
        self.0.dismissed.set(self.0.dismissed.get() + 1);
        self.0.budget.closed().count(why);
        connection.wake();
        true
    }

    /// Counts an upgraded stream for as long as the returned value lives.
    pub(crate) fn enter_upgraded(&self) -> UpgradedConnection {
        self.0.budget.enter();
        UpgradedConnection(DrainCount::new(self, |shared| &shared.upgraded))
    }

    /// Counts the further descriptors of a connection, for as long as the returned value lives.
    pub(crate) fn enter_watch(&self) -> WatchedConnection {
        self.0.budget.enter();
        WatchedConnection { drain: self.clone() }
    }

    /// Has an upgraded stream told when one of its ends is gone, for as long as the returned value lives.
    pub(crate) fn watch(&self, streams: [&TcpStream; 2]) -> WatchedStreams {
        // For one that has ended already no task has to say so.
        let ends: Vec<_> = streams.into_iter().filter_map(|stream| ConnectionEnds::of(stream).ok()).collect();
        let lost = Rc::<Notify>::default();
        let watched = ends.iter().map(|ends| (*ends, Rc::clone(&lost)));
        self.0.upgraded_streams.borrow_mut().extend(watched);
        WatchedStreams { drain: self.clone(), ends, lost }
    }

    /// Those whose silence is noticed by [`Drain::end_silent`] alone: our own hops speak HTTP/2, which has
    /// pings.
    fn watched(&self) -> Vec<ConnectionEnds> {
        let connections = self.0.connections.borrow();
        let clients = connections.iter().filter(|connection| !connection.is_from_hop());
        let clients = clients.filter_map(|connection| connection.ends());
        clients.chain(self.0.upgraded_streams.borrow().keys().copied()).collect()
    }

    /// Ends every connection whose peer has left unanswered for so long what is sent to it.
    pub(crate) async fn end_silent(&self, silence: Duration) {
        let watched = self.watched();
        if watched.is_empty() {
            return;
        }
        // A sandbox may not know of it: there the kernel's own patience is all there is.
        let Ok(diagnosis) = SocketDiagnosis::open() else { return };
        let mut attempts = Vec::new();
        for some in watched.chunks(QUESTIONS_PER_TURN) {
            // One that has ended meanwhile has nothing under way.
            attempts.extend(some.iter().filter_map(|ends| Some((*ends, diagnosis.attempts(ends).ok()?))));
            tokio::task::yield_now().await;
        }
        let now = self.0.clock.now();
        self.0.silence.borrow_mut().note(now, attempts);
        let silent = self.0.silence.borrow().silent_since(now - silence);
        if silent.is_empty() {
            return;
        }
        for connection in self.0.connections.borrow().iter() {
            if connection.ends().is_some_and(|ends| silent.contains(&ends)) {
                connection.mark_as_lost();
            }
        }
        let upgraded = self.0.upgraded_streams.borrow();
        silent.iter().filter_map(|ends| upgraded.get(ends)).for_each(|lost| lost.notify_one());
    }

    fn advance(&self, phase: Phase) {
        // Never back: `begin` after `close_idle` must not keep open what was to close. And each is woken,
        // because one that waits for its peer would only hear of it with the next request.
        if self.0.phase.get() < phase {
            self.0.phase.set(phase);
            for connection in self.0.connections.borrow().iter() {
                connection.wake();
            }
        }
    }
}

/// An open connection as its own task holds it: dropping this removes the connection from the drain.
pub(crate) struct OpenConnection {
    drain: Drain,
    connection: Rc<Connection>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // Before its slot goes to another: neither the list of those that rest nor the count of those that
        // were asked to go may know it any longer.
        self.drain.work(&self.connection);
        self.drain.0.connections.borrow_mut().remove(self.connection.slot());
        self.drain.0.budget.leave();
        self.drain.0.ended.notify_waiters();
    }
}

/// The count of one upgraded stream, whose client has a connection as before.
pub(crate) struct UpgradedConnection(DrainCount);

impl Drop for UpgradedConnection {
    fn drop(&mut self) {
        self.0.drain.0.budget.leave();
    }
}

/// A connection whose socket is watched by a second descriptor: it takes the place of another connection.
pub(crate) struct WatchedConnection {
    drain: Drain,
}

impl Drop for WatchedConnection {
    fn drop(&mut self) {
        self.drain.0.budget.leave();
    }
}

/// Both connections of one upgraded stream.
pub(crate) struct WatchedStreams {
    drain: Drain,
    ends: Vec<ConnectionEnds>,
    lost: Rc<Notify>,
}

impl WatchedStreams {
    /// Waits until one of them is gone.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for WatchedStreams {
    fn drop(&mut self) {
        let mut watched = self.drain.0.upgraded_streams.borrow_mut();
        self.ends.iter().for_each(|ends| drop(watched.remove(ends)));
    }
}

/// One unit of a count of a drain; dropping it takes the unit back.
pub(crate) struct DrainCount {
    drain: Drain,
    count: fn(&DrainState) -> &Cell<usize>,
}

impl DrainCount {
    fn new(drain: &Drain, count: fn(&DrainState) -> &Cell<usize>) -> Self {
        let present = count(&drain.0);
        present.set(present.get() + 1);
        Self { drain: drain.clone(), count }
    }
}

impl Drop for DrainCount {
    fn drop(&mut self) {
        let present = (self.count)(&self.drain.0);
        present.set(present.get().saturating_sub(1));
        self.drain.0.ended.notify_waiters();
    }
}
