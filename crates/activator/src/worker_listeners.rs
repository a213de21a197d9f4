//! The listeners of one worker: the usual one, where requests name their revision by host, and ports that
//! belong to one revision each.
//!
//! A connection belongs to the revision that had the port when it was accepted, whatever its requests name as
//! host. Each port drains by itself: a closed port serves the connections that it has, and closes those
//! that hold nothing. All of them drain when the activator does.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::{ConnectionBudget, Drain, ServerLimits, Upstreams, serve};
use runtime::vital;
use tokio::task::JoinHandle;

use crate::assignments::Assignments;
use crate::context::Context;
use crate::recent_hosts::RecentHosts;
use crate::reporting::RequestReporter;
use crate::stack::{ActivatorStack, RevisionPort};

/// How far a worker's end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum EndPhase {
    #[default]
    Serving,
    Leaving,
    Closed,
    Closing,
}

/// All listeners of one worker.
pub(crate) struct WorkerListeners {
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    upstreams: Upstreams,
    connections: Arc<ConnectionBudget>,
    reporter: RequestReporter,
    limits: ServerLimits,
    phase: Cell<EndPhase>,
    /// The drain of the usual listener's connections.
    main: Drain,
    ports: RefCell<BTreeMap<u16, OpenPort>>,
    /// The drains of closed ports that still have connections.
    closed: RefCell<Vec<Drain>>,
}

struct OpenPort {
    drain: Drain,
    serving: JoinHandle<()>,
}

impl WorkerListeners {
    pub(crate) fn new(
        context: Arc<Context>,
        assignments: Arc<Assignments>,
        upstreams: Upstreams,
        connections: Arc<ConnectionBudget>,
        reporter: RequestReporter,
    ) -> Self {
        let limits = ServerLimits { memory: context.limits.unread_memory, ..ServerLimits::default() };
        let main = Drain::within(Arc::clone(&connections));
        Self {
            context,
            assignments,
            upstreams,
            connections,
            reporter,
            limits,
            phase: Cell::default(),
            main,
            ports: RefCell::default(),
            closed: RefCell::default(),
        }
    }

    pub(crate) fn limits(&self) -> ServerLimits {
        self.limits
    }

    /// The drain of the usual listener's connections.
    pub(crate) fn main(&self) -> &Drain {
        &self.main
    }

    /// The way of requests that come in at the usual listener, or at a port.
    pub(crate) fn stack(&self, drain: &Drain, port: Option<RevisionPort>) -> Rc<ActivatorStack> {
        Rc::new(ActivatorStack {
            context: Arc::clone(&self.context),
            assignments: Arc::clone(&self.assignments),
            upstreams: self.upstreams.clone(),
            drain: drain.clone(),
            port,
            reporter: self.reporter.clone(),
            recent_hosts: RecentHosts::default(),
        })
    }

    /// Takes requests at a port of a revision.
    pub(crate) fn open(&self, port: RevisionPort, listener: TcpListener) {
        let drain = Drain::within(Arc::clone(&self.connections));
        let number = port.port;
        let stack = self.stack(&drain, Some(port));
        let serving = serve(listener, stack, drain.clone(), self.limits);
        let serving = tokio::task::spawn_local(vital("a revision's port of the activator", async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, port = number, "the activator could not accept requests at a revision's port");
            }
        }));
        // It may be opened while the activator is leaving, by an assignment that was under way.
        enter(&drain, self.phase.get());
        self.ports.borrow_mut().insert(number, OpenPort { drain, serving });
    }

    /// Returns once the port is closed.
    pub(crate) async fn close(&self, port: u16) {
        let Some(OpenPort { drain, serving }) = self.ports.borrow_mut().remove(&port) else { return };
        // Idle connections too: a client that kept one would go on to ask a revision that has no port here.
        enter(&drain, EndPhase::Closing);
        self.closed.borrow_mut().retain(|drain| drain.connections() + drain.upgraded() > 0);
        // Requests may still run on its connections, and the activator's own end waits for them.
        self.closed.borrow_mut().push(drain);
        // It ends by itself and is never aborted, so there is nothing to be learnt from how it does.
        let _ = serving.await;
    }

    /// Clients are told to go elsewhere for their next request.
    pub(crate) fn begin_drain(&self) {
        self.advance(EndPhase::Leaving);
    }

    /// No more connections are accepted.
    pub(crate) fn stop_accepting(&self) {
        self.advance(EndPhase::Closed);
    }

    /// Connections that hold nothing are closed.
    pub(crate) fn close_idle(&self) {
        self.advance(EndPhase::Closing);
    }

    /// Returns once no connection is left, after [`WorkerListeners::stop_accepting`].
    pub(crate) async fn finished(&self) {
        for drain in self.drains() {
            drain.finished().await;
        }
    }

    fn advance(&self, phase: EndPhase) {
        self.phase.set(phase);
        for drain in self.drains() {
            enter(&drain, phase);
        }
    }

    fn drains(&self) -> Vec<Drain> {
        let (ports, closed) = (self.ports.borrow(), self.closed.borrow());
        let of_ports = ports.values().map(|port| &port.drain);
        of_ports.chain(closed.iter()).chain([&self.main]).cloned().collect()
    }
}

fn enter(drain: &Drain, phase: EndPhase) {
    if phase >= EndPhase::Leaving {
        drain.begin();
    }
    if phase >= EndPhase::Closed {
        drain.stop_accepting();
    }
    if phase >= EndPhase::Closing {
        drain.close_idle();
    }
}
