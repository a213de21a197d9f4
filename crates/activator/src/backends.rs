//! Connections to pods: every worker thread has its own pool, and the link tells them all which pods to let go of.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dataplane::{
    HeadLimits, LateBodies, LostRequests, MemoryBudget, PriorKnowledge, UpstreamLimits, Upstreams,
};
use runtime::Clock;
use tokio::sync::{mpsc, oneshot};

/// How many orders a worker may be behind. More make the link wait, which delays an acknowledgement and nothing else.
const ORDERS_MAX: usize = 64;

/// How long an unused connection to a queue-proxy is kept. On this hop only the activator closes idle connections, so this races with nobody.
const IDLE: Duration = Duration::from_secs(10);

/// Close the idle connections to these addresses, and say so.
pub(crate) struct CloseIdle {
    addresses: Arc<[SocketAddr]>,
    done: oneshot::Sender<()>,
}

/// The link's end: a way to every worker.
#[derive(Clone)]
pub(crate) struct Backends(Vec<mpsc::Sender<CloseIdle>>);

impl Backends {
    /// Ways to `workers` workers, and the workers' ends.
    pub(crate) fn new(workers: usize) -> (Self, Vec<mpsc::Receiver<CloseIdle>>) {
        let (senders, receivers) = (0..workers).map(|_| mpsc::channel(ORDERS_MAX)).unzip();
        (Self(senders), receivers)
    }

    /// Returns once no worker has an idle connection to any of the addresses.
    pub(crate) async fn close_idle(&self, addresses: Vec<SocketAddr>) {
        let addresses: Arc<[SocketAddr]> = addresses.into();
        let mut answers = Vec::with_capacity(self.0.len());
        for worker in &self.0 {
            let (done, answer) = oneshot::channel();
            // A worker that has ended has no connections.
            if worker.send(CloseIdle { addresses: Arc::clone(&addresses), done }).await.is_ok() {
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
        prior_knowledge: PriorKnowledge::Certain,
        ..UpstreamLimits::default()
    };
    Upstreams::new(clock, limits)
}

/// A worker's end: does what the link says until that ends.
pub(crate) async fn obey(mut orders: mpsc::Receiver<CloseIdle>, upstreams: Upstreams) {
    while let Some(order) = orders.recv().await {
        for &address in order.addresses.iter() {
            upstreams.close_idle(address);
        }
        // Nobody waits for the answer any more if the link has ended.
        let _ = order.done.send(());
    }
}
