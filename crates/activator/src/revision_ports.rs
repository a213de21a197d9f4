//! Which ports are open, and for which revision?
//!
//! The link's thread binds each port once and lends every worker a handle. What an assignment adds is open
//! before it is acknowledged, and what it takes away is closed: then, and not before, the port may be given
//! to another revision.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use vocabulary::RevisionName;

use crate::backends::Backends;
use crate::shared_revision::SharedRevision;
use crate::stack::RevisionPort;

/// The wait before a port that was in use is tried again: its present owner may be about to close it.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The ports of all revisions.
pub(crate) struct RevisionPorts {
    /// The address at which the ports are bound: that of the usual listener.
    address: IpAddr,
    backends: Backends,
    bound: RefCell<BTreeMap<u16, BoundPort>>,
    count: Gauge,
}

/// A port at which workers listen for one revision.
struct BoundPort {
    holder: Arc<SharedRevision>,
    phase: PortPhase,
}

/// Whether a port stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortPhase {
    Open,
    /// Work is under way that closes the port, unless a newer assignment names the port again by then.
    Closing,
}

/// What is to be done for a revision's present assignment.
pub(crate) struct PortChanges {
    close: Vec<RevisionPort>,
    open: Vec<RevisionPort>,
}

impl RevisionPorts {
    pub(crate) fn new(address: IpAddr, backends: Backends, count: Gauge) -> Self {
        Self { address, backends, bound: RefCell::default(), count }
    }

    /// What is missing, and what there is too much, if these are to be the ports of a revision. What there is
    /// too much counts as missing for each later assignment.
    pub(crate) fn changes(&self, revision: &Arc<SharedRevision>, ports: &BTreeSet<u16>) -> PortChanges {
        let mut bound = self.bound.borrow_mut();
        let (mut close, mut missing) = (Vec::new(), ports.clone());
        for (&port, held) in bound.iter_mut().filter(|(_, held)| Arc::ptr_eq(&held.holder, revision)) {
            if held.phase == PortPhase::Open && !missing.remove(&port) {
                held.phase = PortPhase::Closing;
                close.push(RevisionPort { revision: Arc::clone(revision), port });
            }
        }
        let open = missing.into_iter().map(|port| RevisionPort { revision: Arc::clone(revision), port });
        PortChanges { close, open: open.collect() }
    }

    /// All ports of revisions of that name are to be closed: none of them is known any more.
    pub(crate) fn all_of(&self, revision: &RevisionName) -> PortChanges {
        let bound = self.bound.borrow();
        let held = bound.iter().filter(|(_, held)| held.holder.name == *revision);
        let close = held.map(|(&port, held)| RevisionPort { revision: Arc::clone(&held.holder), port });
        PortChanges { close: close.collect(), open: Vec::new() }
    }

    /// Returns once the changes are made.
    pub(crate) async fn apply(&self, changes: PortChanges) {
        for port in &changes.close {
            self.close(port).await;
        }
        for port in changes.open {
            self.open(port).await;
        }
    }

    /// Returns once no worker listens at the port for its revision.
    async fn close(&self, port: &RevisionPort) {
        if self.phase_of(port).is_none() {
            return;
        }
        if port.revision.has_port(port.port) {
            return self.keep(port);
        }
        self.backends.close_port(port.port).await;
        // Not before: no other revision may have the port as long as a worker listens at it.
        if self.phase_of(port).is_some() {
            self.bound.borrow_mut().remove(&port.port);
            self.count.dec();
        }
    }

    /// A newer assignment names the port again.
    fn keep(&self, port: &RevisionPort) {
        if let Some(held) = self.bound.borrow_mut().get_mut(&port.port) {
            held.phase = PortPhase::Open;
        }
    }

    /// The phase of a port that is bound for its revision.
    fn phase_of(&self, port: &RevisionPort) -> Option<PortPhase> {
        let bound = self.bound.borrow();
        let held = bound.get(&port.port).filter(|held| Arc::ptr_eq(&held.holder, &port.revision));
        held.map(|held| held.phase)
    }

    /// Returns once the port is open, if the present assignment names it.
    async fn open(&self, port: RevisionPort) {
        let mut has_been_told = false;
        // A newer assignment may not name the port any more; the task of that assignment does the rest.
        while port.revision.has_port(port.port) {
            if self.phase_of(&port) == Some(PortPhase::Open) {
                return;
            }
            let holder = self.bound.borrow().get(&port.port).map(|held| Arc::clone(&held.holder));
            let problem = match holder {
                Some(holder) => format!("the port still belongs to {}", holder.name),
                None => match runtime::listen(SocketAddr::new(self.address, port.port)) {
                    Ok(listener) => {
                        let holder = Arc::clone(&port.revision);
                        self.bound
                            .borrow_mut()
                            .insert(port.port, BoundPort { holder, phase: PortPhase::Open });
                        self.count.inc();
                        return self.backends.open_port(&port, &listener).await;
                    }
                    Err(error) => error.to_string(),
                },
            };
            if !std::mem::replace(&mut has_been_told, true) {
                tracing::warn!(revision = %port.revision.name, port = port.port, problem, "a revision's port cannot be had yet");
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

/// An activator that ends listens nowhere, but its process may go on.
impl Drop for RevisionPorts {
    fn drop(&mut self) {
        self.count.dec_by(i64::try_from(self.bound.get_mut().len()).unwrap_or(i64::MAX));
    }
}
