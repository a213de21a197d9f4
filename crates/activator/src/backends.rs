//! The link's way to the workers: every worker thread has its own pool of connections to pods and its own
//! listeners, and the link tells them all which pods to let go of and where to listen.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dataplane::{
    GivenUpRequests, HeadLimits, LateBodies, LostRequests, MemoryBudget, PriorKnowledge, UpstreamLimits,
    Upstreams,
};
use runtime::Clock;
use tokio::sync::{mpsc, oneshot};

use crate::stack::RevisionPort;
use crate::worker_listeners::WorkerListeners;

/// How many orders a worker may be behind. More make the link wait, which delays an acknowledgement and
/// nothing else.
const ORDERS_MAX: usize = 64;

/// How long an unused connection to a queue-proxy is kept. On this hop only the activator closes idle
/// connections, so this does not race with the queue-proxy.
const IDLE: Duration = Duration::from_secs(10);

/// An order of the link's thread to a worker.
pub(crate) enum WorkerOrder {
    /// Close the idle connections to these addresses, and answer when that is done.
    CloseIdle { addresses: Arc<[SocketAddr]>, done: oneshot::Sender<()> },
    /// Take requests at the port. A client that connects before a worker has got the order waits in the
    /// kernel.
    OpenPort { port: RevisionPort, listener: TcpListener },
    /// Take no more requests at the port, and answer when that is done.
    ClosePort { port: u16, done: oneshot::Sender<()> },
}

/// The link's end: a way to every worker.
#[derive(Clone)]
pub(crate) struct Backends(Vec<mpsc::Sender<WorkerOrder>>);

impl Backends {
    /// Ways to `workers` workers, and the workers' ends.
    pub(crate) fn new(workers: usize) -> (Self, Vec<mpsc::Receiver<WorkerOrder>>) {
        let (senders, receivers) = (0..workers).map(|_| mpsc::channel(ORDERS_MAX)).unzip();
        (Self(senders), receivers)
    }

    /// Returns once no worker has an idle connection to any of the addresses.
    pub(crate) async fn close_idle(&self, addresses: Vec<SocketAddr>) {
        if addresses.is_empty() {
            return;
        }
        let addresses: Arc<[SocketAddr]> = addresses.into();
        self.all_have_done(|done| WorkerOrder::CloseIdle { addresses: Arc::clone(&addresses), done }).await;
    }

    /// Returns once no worker listens there.
    pub(crate) async fn close_port(&self, port: u16) {
        self.all_have_done(|done| WorkerOrder::ClosePort { port, done }).await;
    }

    /// Every worker accepts from a handle of the same socket.
    pub(crate) async fn open_port(&self, port: &RevisionPort, listener: &TcpListener) {
        for worker in &self.0 {
            match listener.try_clone() {
                Ok(listener) => {
                    // A worker that has ended takes no requests.
                    let _ = worker.send(WorkerOrder::OpenPort { port: port.clone(), listener }).await;
                }
                // The others accept what this one would have.
                Err(error) => {
                    tracing::error!(%error, port = port.port, "a worker cannot listen at a revision's port");
                }
            }
        }
    }

    async fn all_have_done(&self, order: impl Fn(oneshot::Sender<()>) -> WorkerOrder) {
        let mut answers = Vec::with_capacity(self.0.len());
        for worker in &self.0 {
            let (done, answer) = oneshot::channel();
            // A worker that has ended has no connections, and listens nowhere.
            if worker.send(order(done)).await.is_ok() {
                answers.push(answer);
            }
        }
        for answer in answers {
            let _ = answer.await;
        }
    }
}

/// A pool for one worker.
pub(crate) fn pool(clock: Clock, memory: &'static MemoryBudget) -> Upstreams {
    let limits = UpstreamLimits {
        idle: IDLE,
        memory,
        head: HeadLimits::HOP,
        lost_requests: LostRequests::Report,
        late_bodies: LateBodies::Impossible,
        given_up: GivenUpRequests::Reset,
        prior_knowledge: PriorKnowledge::Certain,
        ..UpstreamLimits::default()
    };
    Upstreams::new(clock, limits)
}

/// A worker's end: does what the link says until that ends.
pub(crate) async fn execute_orders(
    mut orders: mpsc::Receiver<WorkerOrder>,
    upstreams: Upstreams,
    listeners: Rc<WorkerListeners>,
) {
    while let Some(order) = orders.recv().await {
        // An answer fails if the link has ended, and is not needed then.
        match order {
            WorkerOrder::CloseIdle { addresses, done } => {
                for &address in addresses.iter() {
                    upstreams.close_idle(address);
                }
                let _ = done.send(());
            }
            WorkerOrder::OpenPort { port, listener } => listeners.open(port, listener),
            WorkerOrder::ClosePort { port, done } => {
                listeners.close(port).await;
                let _ = done.send(());
            }
        }
    }
}
