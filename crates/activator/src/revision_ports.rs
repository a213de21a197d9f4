//! Which ports are open, and for which revision?
//!
//! The link's thread binds each port once and lends every worker a handle. What an assignment adds is open
//! before it is acknowledged, and what it takes away is closed: then, and not before, the port may be given
//! to another revision.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;

use crate::assigned_revision::AssignedRevision;
use crate::backends::Backends;
use crate::stack::RevisionPort;

/// The wait before a port that was in use is tried again: its present owner may be about to close it.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The ports of all revisions.
pub(crate) struct RevisionPorts {
    /// The address at which the ports are bound: that of the usual listener.
    address: IpAddr,
    backends: Backends,
    open: RefCell<BTreeMap<u16, Arc<AssignedRevision>>>,
    count: Gauge,
}

/// What is to be done for a revision's present assignment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PortChanges {
    close: Vec<u16>,
    open: Vec<u16>,
}

impl PortChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.close.is_empty() && self.open.is_empty()
    }
}

impl RevisionPorts {
    pub(crate) fn new(address: IpAddr, backends: Backends, count: Gauge) -> Self {
        Self { address, backends, open: RefCell::default(), count }
    }

    /// What is missing, and what there is too much.
    pub(crate) fn changes(&self, revision: &Arc<AssignedRevision>) -> PortChanges {
        let settings = revision.settings();
        let open = self.of(revision);
        PortChanges {
            close: open.iter().filter(|port| !settings.ports.contains(port)).copied().collect(),
            open: settings.ports.iter().filter(|port| !open.contains(port)).copied().collect(),
        }
    }

    /// The ports that are open for a revision.
    pub(crate) fn of(&self, revision: &Arc<AssignedRevision>) -> Vec<u16> {
        let open = self.open.borrow();
        let own = open.iter().filter(|(_, holder)| Arc::ptr_eq(holder, revision));
        own.map(|(&port, _)| port).collect()
    }

    /// Returns once the open ports are those of the revision's present assignment.
    pub(crate) async fn apply(&self, revision: &Arc<AssignedRevision>, changes: PortChanges) {
        self.close(changes.close).await;
        for port in changes.open {
            self.open(RevisionPort { revision: Arc::clone(revision), port }).await;
        }
    }

    /// Returns once no worker listens at these ports.
    pub(crate) async fn close(&self, ports: Vec<u16>) {
        for port in ports {
            self.backends.close_port(port).await;
            // Not before: no other revision may have the port as long as a worker listens at it.
            if self.open.borrow_mut().remove(&port).is_some() {
                self.count.dec();
            }
        }
    }

    async fn open(&self, port: RevisionPort) {
        let mut has_been_told = false;
        // A newer assignment may not name the port any more; the task of that assignment does the rest.
        while port.revision.settings().ports.contains(&port.port) {
            let holder = self.open.borrow().get(&port.port).cloned();
            if holder.as_ref().is_some_and(|holder| Arc::ptr_eq(holder, &port.revision)) {
                return;
            }
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
