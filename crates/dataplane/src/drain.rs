//! How a server ends: it says so first, finishes what it holds, and only then closes.
//!
//! Three steps, each a call, because their order differs between programs. From [`Drain::begin`] on every HTTP/1.1 response says `Connection:
//! close` and HTTP/2 connections get GOAWAY, while new connections are still accepted: routers need time to learn. [`Drain::stop_accepting`]
//! closes the door. [`Drain::close_idle`] closes connections that hold nothing, which is the one step in which a request that is already
//! on its way can be lost, so it comes last.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::server::Connection;

/// The life of one server and its connections. Clones share it; it stays on its thread.
#[derive(Clone, Debug, Default)]
pub struct Drain(Rc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    phase: Cell<Phase>,
    is_accepting_stopped: Cell<bool>,
    stop_accepting: Notify,
    listeners: Cell<usize>,
    connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next_connection: Cell<u64>,
    upgraded: Cell<usize>,
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
    /// What is idle is closed.
    Closing,
}

impl Drain {
    /// A server that serves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the peers of all connections that exist now to come back on another one. Connections accepted later are not concerned: the path to
    /// here has changed, the server goes on.
    pub fn retire_connections(&self) {
        for connection in self.0.connections.borrow().values() {
            connection.retire();
        }
    }

    /// From now on every connection is told that it will end.
    pub fn begin(&self) {
        self.advance(Phase::Marking);
    }

    /// No further connection is accepted, except those that are already established.
    pub fn stop_accepting(&self) {
        self.0.is_accepting_stopped.set(true);
        self.0.stop_accepting.notify_waiters();
    }

    /// Closes every connection as soon as it holds nothing.
    pub fn close_idle(&self) {
        self.advance(Phase::Closing);
    }

    /// Whether [`Drain::begin`] was called.
    pub fn is_draining(&self) -> bool {
        self.0.phase.get() >= Phase::Marking
    }

    /// How many connections are open, upgraded ones not included.
    pub fn connections(&self) -> usize {
        self.0.connections.borrow().len()
    }

    /// How many of them said that they come from one of our own hops.
    pub fn hop_connections(&self) -> usize {
        self.0.connections.borrow().values().filter(|connection| connection.is_from_hop()).count()
    }

    /// How many upgraded streams are open.
    pub fn upgraded(&self) -> usize {
        self.0.upgraded.get()
    }

    /// Waits until a connection, an upgraded stream or a listener ends. Register before looking: what ends between a look and this call is missed otherwise,
    /// so loop over `tokio::pin!` and `enable` or, simpler, use [`Drain::until`].
    async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// Waits until `condition` holds, looking again whenever a connection, an upgraded stream or a listener ends.
    pub async fn until(&self, condition: impl Fn(&Self) -> bool) {
        // Nothing can end between the look and the registration: both happen on this thread without a pause.
        while !condition(self) {
            self.ended().await;
        }
    }

    /// Waits until no connection and no upgraded stream is left, nor, after [`Drain::stop_accepting`], one that waits to be accepted.
    pub async fn finished(&self) {
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
        let stopped = self.0.stop_accepting.notified();
        if !self.is_accepting_stopped() {
            stopped.await;
        }
    }

    /// Counts a listener for as long as the returned value lives.
    pub(crate) fn enter_listener(&self) -> Counted {
        Counted::new(self, |shared| &shared.listeners)
    }

    /// Counts a connection for as long as the returned value lives.
    pub(crate) fn enter(&self, connection: &Rc<Connection>) -> Entered {
        let id = self.0.next_connection.get();
        self.0.next_connection.set(id + 1);
        self.0.connections.borrow_mut().insert(id, Rc::clone(connection));
        Entered { drain: self.clone(), id }
    }

    /// Counts an upgraded stream for as long as the returned value lives.
    pub(crate) fn enter_upgraded(&self) -> Counted {
        Counted::new(self, |shared| &shared.upgraded)
    }

    fn advance(&self, phase: Phase) {
        if self.0.phase.get() < phase {
            self.0.phase.set(phase);
            for connection in self.0.connections.borrow().values() {
                connection.wake();
            }
        }
    }
}

/// One open connection.
pub(crate) struct Entered {
    drain: Drain,
    id: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.drain.0.connections.borrow_mut().remove(&self.id);
        self.drain.0.ended.notify_waiters();
    }
}

/// One of what a drain counts.
pub(crate) struct Counted {
    drain: Drain,
    count: fn(&Shared) -> &Cell<usize>,
}

impl Counted {
    fn new(drain: &Drain, count: fn(&Shared) -> &Cell<usize>) -> Self {
        let present = count(&drain.0);
        present.set(present.get() + 1);
        Self { drain: drain.clone(), count }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let present = (self.count)(&self.drain.0);
        present.set(present.get().saturating_sub(1));
        self.drain.0.ended.notify_waiters();
    }
}
