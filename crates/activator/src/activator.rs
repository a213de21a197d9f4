//! The life of one activator: its threads start, serve, drain, and end in order.

use std::io;
use std::iter;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dataplane::{ConnectionBudget, Tls, serve, serve_tls};
use link::LinkAccess;
use runtime::vital;
use tokio::runtime::RuntimeMetrics;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::assignments::Assignments;
use crate::backends::{self, Backends, WorkerOrder};
use crate::config::{ActivatorConfig, Listeners, TlsListener};
use crate::context::Context;
use crate::held::Holdings;
use crate::link::LinkContext;
use crate::metering::SecondsMeter;
use crate::reporting::RequestReporter;
use crate::revision_ports::RevisionPorts;
use crate::worker_listeners::WorkerListeners;
use crate::workers::{ThreadHeartbeats, Threads};

/// How long idle connections of clients are left open in a drain: a client that uses one in that time is told
/// to reconnect instead of meeting a closed socket.
const LINGER: Duration = Duration::from_secs(1);

/// How long the end of a thread waits for a collector that does not take the last traces.
const TRACES_LAST_MAX: Duration = Duration::from_secs(1);

/// How an activator ends, step by step.
#[derive(Clone)]
struct EndSteps {
    /// Clients are told to go elsewhere for their next request.
    leaving: CancellationToken,
    /// No more connections are accepted.
    accepting: CancellationToken,
    /// Connections that hold nothing are closed.
    closing: CancellationToken,
    /// The requests that are left are cut off.
    given_up: CancellationToken,
    /// The thread of the links ends.
    link: CancellationToken,
}

impl EndSteps {
    /// Everything at once when `abandoned` is cancelled.
    fn under(abandoned: &CancellationToken) -> Self {
        let [leaving, accepting, closing, given_up, link] = [(); 5].map(|()| abandoned.child_token());
        Self { leaving, accepting, closing, given_up, link }
    }
}

/// A running activator. Dropping it cuts off what it holds; [`Activator::drained`] is the polite way.
pub struct Activator {
    ending: EndSteps,
    _abandon: DropGuard,
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    workers: Threads,
    control: Threads,
}

impl Activator {
    /// Starts the threads: workers that accept requests, and one for the links, so that neither waits for the
    /// other. Fails if a thread cannot be started or a listener cannot be used.
    pub fn start(config: ActivatorConfig, listeners: Listeners) -> io::Result<Self> {
        let count = config.workers.max(1);
        let connections = Arc::clone(&config.connections);
        let context = Arc::new(Context::new(config));
        let assignments = Arc::new(Assignments::new(Arc::clone(&context)));
        let abandoned = CancellationToken::new();
        let ending = EndSteps::under(&abandoned);
        // If one thread cannot be started, those before it end.
        let abandon = abandoned.drop_guard();
        let tls = listeners.tls.map(|listener| ClientTlsListener::new(listener, &context));
        let (backends, orders) = Backends::new(count);
        let mut workers = Threads::default();
        for (number, orders) in orders.into_iter().enumerate() {
            let worker = Worker {
                context: Arc::clone(&context),
                assignments: Arc::clone(&assignments),
                listener: listeners.requests.try_clone()?,
                more_requests: listeners
                    .more_requests
                    .as_ref()
                    .map(std::net::TcpListener::try_clone)
                    .transpose()?,
                tls: tls.as_ref().map(ClientTlsListener::try_clone).transpose()?,
                connections: Arc::clone(&connections),
                orders,
                ending: ending.clone(),
            };
            workers.start(format!("activator-{number}"), move || worker.run())?;
        }
        let control = Control {
            context: Arc::clone(&context),
            assignments: Arc::clone(&assignments),
            ports_at: listeners.requests.local_addr()?.ip(),
            backends,
            listener: listeners.link,
            access: listeners.link_access,
            ending: ending.clone(),
            workers: workers.runtimes().to_vec(),
        };
        let mut threads = Threads::default();
        threads.start("activator-link".to_owned(), move || control.run())?;
        Ok(Self { ending, _abandon: abandon, context, assignments, workers, control: threads })
    }

    /// Returns once every bucket's owner has told all of it for the first time.
    pub async fn synced(&self) {
        let mut news = self.assignments.news();
        // An error means that the activator has ended, which its owner finds out soon enough.
        let _ = news.wait_for(|news| news.is_synced).await;
    }

    /// A view of the requests that the activator holds, now and while it drains.
    pub fn holdings(&self) -> Holdings {
        Holdings::of(&self.assignments)
    }

    /// The heartbeats of all threads of the activator, for a watchdog.
    pub fn heartbeats(&self) -> ThreadHeartbeats {
        self.workers.heartbeats().with(self.control.heartbeats())
    }

    /// Begins the end of the activator: its links say that it drains. It still takes requests, and tells
    /// clients to go elsewhere for their next one.
    pub fn leave(&self) {
        self.context.leaving.cancel();
        self.ending.leaving.cancel();
    }

    /// Returns once the owners of all buckets have said that no route names it, after [`Activator::leave`].
    /// Never, if no owner ever said which buckets are its own.
    pub async fn released(&self) {
        self.context.released.cancelled().await;
    }

    /// Accepts no more connections. What is held is served with `Connection: close`; the links stay. Calls
    /// [`Activator::leave`].
    pub fn stop_accepting(&self) {
        self.leave();
        self.ending.accepting.cancel();
    }

    /// Waits until everything that is held has been answered, at most `patience`, and ends all threads, the
    /// link's last. Calls [`Activator::stop_accepting`].
    pub async fn drained(self, patience: Duration) {
        self.stop_accepting();
        self.ending.closing.cancel();
        let mut workers = self.workers;
        if !workers.ended(patience).await {
            tracing::warn!("the time of the drain is over; the requests that are still held are cut off");
            self.ending.given_up.cancel();
        }
        workers.join().await;
        self.ending.link.cancel();
        self.control.join().await;
    }
}

/// One thread that serves requests.
struct Worker {
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    listener: std::net::TcpListener,
    /// One more socket for requests, see [`Listeners::more_requests`].
    more_requests: Option<std::net::TcpListener>,
    tls: Option<ClientTlsListener>,
    connections: Arc<ConnectionBudget>,
    orders: mpsc::Receiver<WorkerOrder>,
    ending: EndSteps,
}

impl Worker {
    async fn run(self) {
        let reporter = RequestReporter::new(&self.context);
        let tracer = reporter.tracer.clone();
        let following = reporter.clone().follow_settings(Arc::clone(&self.context));
        let following = tokio::task::spawn_local(vital("the settings of an activator's thread", following));
        let tracing =
            tokio::task::spawn_local(vital("the traces of the activator", tracer.clone().deliver()));
        let upstreams = backends::pool(self.context.clock, self.context.limits.unread_memory);
        let worker_listeners = WorkerListeners::new(
            self.context,
            self.assignments,
            upstreams.clone(),
            self.connections,
            reporter,
        );
        let drain = worker_listeners.main().clone();
        let worker_listeners = Rc::new(worker_listeners);
        let (stack, limits) = (worker_listeners.stack(&drain, None), worker_listeners.limits());
        let tls_serving = self.tls.map(|ClientTlsListener { listener, tls }| {
            let serving = serve_tls(listener, Rc::clone(&stack), drain.clone(), limits, tls);
            tokio::task::spawn_local(vital("a TLS listener of the activator", serving))
        });
        let listeners = iter::once(self.listener).chain(self.more_requests);
        let serving: Vec<_> = listeners
            .map(|listener| {
                let serving = serve(listener, Rc::clone(&stack), drain.clone(), limits);
                // Awaited at the end of the worker.
                tokio::task::spawn_local(vital("a listener of the activator", serving))
            })
            .collect();
        let executing = backends::execute_orders(self.orders, upstreams, Rc::clone(&worker_listeners));
        let executing = tokio::task::spawn_local(vital("the orders of the activator's link", executing));
        self.ending.leaving.cancelled().await;
        worker_listeners.begin_drain();
        self.ending.accepting.cancelled().await;
        worker_listeners.stop_accepting();
        self.ending.closing.cancelled().await;
        // Cancelling loses nothing: the drain goes on, and a timer is no loss.
        tokio::select! {
            () = worker_listeners.finished() => {}
            () = tokio::time::sleep(LINGER) => {}
        }
        worker_listeners.close_idle();
        // Cancelling loses nothing: both only wait.
        tokio::select! {
            () = worker_listeners.finished() => {}
            () = self.ending.given_up.cancelled() => {}
        }
        tracer.flush(TRACES_LAST_MAX).await;
        for task in [executing, following, tracing] {
            task.abort();
        }
        for serving in serving.into_iter().chain(tls_serving) {
            if let Ok(Err(error)) = serving.await {
                tracing::error!(%error, "the activator could not accept requests");
            }
        }
    }
}

/// Where clients speak TLS. All workers accept there, and share what sessions are resumed from.
struct ClientTlsListener {
    listener: std::net::TcpListener,
    tls: Tls,
}

impl ClientTlsListener {
    fn new(listener: TlsListener, context: &Context) -> Self {
        let tls = Tls::new(listener.certificates, context.metrics.failed_handshakes.clone());
        Self { listener: listener.socket, tls }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { listener: self.listener.try_clone()?, tls: self.tls.clone() })
    }
}

/// The thread of the links: what must happen in time however busy the workers are.
struct Control {
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    /// Where revisions' ports are bound: as the usual listener is.
    ports_at: IpAddr,
    backends: Backends,
    listener: std::net::TcpListener,
    access: LinkAccess,
    ending: EndSteps,
    workers: Vec<RuntimeMetrics>,
}

impl Control {
    async fn run(self) {
        if let Err(error) = self.listener.set_nonblocking(true) {
            tracing::error!(%error, "the activator cannot use its link listener");
            return;
        }
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "the activator cannot use its link listener");
                return;
            }
        };
        let count = self.context.metrics.revision_ports.clone();
        let ports = RevisionPorts::new(self.ports_at, self.backends.clone(), count);
        let link = LinkContext::new(Arc::clone(&self.context), self.assignments, self.backends, ports);
        let link = Rc::new(link);
        let meter = SecondsMeter::new(self.context, Rc::clone(&link), self.workers);
        // Cancelled for good, with the link: the meter is of no use without it.
        tokio::select! {
            () = meter.run() => {}
            never = link.run(listener, self.access) => match never {},
            () = self.ending.link.cancelled() => {}
        }
    }
}
