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
    open: RefCell<BTreeMap<u16, Arc<SharedRevision>>>,
    count: Gauge,
}

/// What is to be done for a revision's present assignment.
pub(crate) struct PortChanges {
    close: Vec<RevisionPort>,
    open: Vec<RevisionPort>,
}

impl RevisionPorts {
    pub(crate) fn new(address: IpAddr, backends: Backends, count: Gauge) -> Self {
        Self { address, backends, open: RefCell::default(), count }
    }

    /// What is missing, and what there is too much, if these are to be the ports of a revision.
    pub(crate) fn changes(&self, revision: &Arc<SharedRevision>, ports: &BTreeSet<u16>) -> PortChanges {
        let mut close = self.held_by(|holder| Arc::ptr_eq(holder, revision));
        let missing = ports.iter().filter(|port| close.iter().all(|held| held.port != **port));
        let port_of = |&port: &u16| RevisionPort { revision: Arc::clone(revision), port };
        let open = missing.map(port_of).collect();
        close.retain(|held| !ports.contains(&held.port));
        PortChanges { close, open }
    }

    /// All ports of revisions of that name are to be closed: none of them is known any more.
    pub(crate) fn all_of(&self, revision: &RevisionName) -> PortChanges {
        PortChanges { close: self.held_by(|holder| holder.name == *revision), open: Vec::new() }
    }

    fn held_by(&self, is_meant: impl Fn(&Arc<SharedRevision>) -> bool) -> Vec<RevisionPort> {
        let open = self.open.borrow();
        let held = open.iter().filter(|(_, holder)| is_meant(holder));
        held.map(|(&port, holder)| RevisionPort { revision: Arc::clone(holder), port }).collect()
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
        if !self.is_held(port) {
            return;
        }
        self.backends.close_port(port.port).await;
        // Not before: no other revision may have the port as long as a worker listens at it.
        if self.is_held(port) {
            self.open.borrow_mut().remove(&port.port);
            self.count.dec();
        }
    }

    fn is_held(&self, port: &RevisionPort) -> bool {
        let open = self.open.borrow();
        open.get(&port.port).is_some_and(|holder| Arc::ptr_eq(holder, &port.revision))
    }

    async fn open(&self, port: RevisionPort) {
        let mut has_been_told = false;
        // A newer assignment may not name the port any more; the task of that assignment does the rest.
        while port.revision.has_port(port.port) {
            if self.is_held(&port) {
                return;
            }
            let holder = self.open.borrow().get(&port.port).cloned();
            let problem = match holder {
                Some(holder) => format!("the port still belongs to {}", holder.name),
                None => match runtime::listen(SocketAddr::new(self.address, port.port)) {
                    Ok(listener) => {
                        self.open.borrow_mut().insert(port.port, Arc::clone(&port.revision));
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
        self.count.dec_by(i64::try_from(self.open.get_mut().len()).unwrap_or(i64::MAX));
    }
}
