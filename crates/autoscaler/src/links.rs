//! The autoscaler's links: one task each, which dials, talks, and dials again.
//!
//! Nothing here waits for the event loop except by back-pressure on one link, and the event loop never waits for a link: settings of a pod
//! are a watched value, assignments a latest-wins slot per revision ([`outbox::Outbox`]). What a peer sends arrives with the
//! [`LinkId`] of its task, so that a late word from a task that was ended is recognised and ignored.

mod activator;
mod outbox;
mod pacer;
mod pod;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use link::{LinkError, Message, PodOrder, Reader, Writer};
use runtime::{Backoff, Clock, vital};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use vocabulary::{
    ActivatorHello, ActivatorWord, LinkAddress, PodHello, PodName, PodWord, ReplicaName, Timestamp,
};

use crate::DialRoute;
use crate::metrics::{LinkEnd, Metrics, PeerKind};
pub(crate) use outbox::Outbox;
use pacer::Pacer;
pub(crate) use pacer::Priority;

/// Words of links that wait for the event loop. When it is full, links are read later: each peer feels it through its own connection.
const EVENTS_MAX: usize = 4096;
/// The first and the largest wait between two attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// A link that lived this long was a good one: the next attempt begins with the least wait.
const GOOD_LINK: Duration = Duration::from_secs(5);
/// Without a link for this long, people are told.
const BLOCKED_AFTER: Duration = Duration::from_secs(60);

/// One link task; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(u64);

/// What happened on a link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A queue-proxy answered, and is the one that was meant.
    PodUp(Box<PodHello>),
    /// It said something else.
    Pod(PodWord),
    /// An activator answered, and is the one that was meant.
    ActivatorUp(Box<ActivatorHello>),
    /// It said something else.
    Activator(ActivatorWord),
    /// A link that was up is gone; its task dials again.
    Lost,
    /// No link could be had for [`BLOCKED_AFTER`].
    Blocked(String),
}

/// Opens links and collects what they say.
pub(crate) struct Links {
    clock: Clock,
    dial: DialRoute,
    metrics: Metrics,
    events: mpsc::Sender<(LinkId, LinkEvent)>,
    pacer: Pacer,
    tasks: TaskTracker,
    stop: CancellationToken,
    opened: u64,
}

/// The event loop's hold on a link to a queue-proxy; dropping it ends the link.
#[derive(Debug)]
pub(crate) struct PodLink {
    pub(crate) id: LinkId,
    pub(crate) address: LinkAddress,
    settings: watch::Sender<PodOrder>,
    _end: DropGuard,
}

impl PodLink {
    /// What the queue-proxy must know from now on; sent if it is news.
    pub(crate) fn tell(&self, settings: PodOrder) {
        self.settings.send_if_modified(|current| {
            let is_news = *current != settings;
            *current = settings;
            is_news
        });
    }
}

/// The event loop's hold on a link to an activator; dropping it ends the link.
#[derive(Debug)]
pub(crate) struct ActivatorLink {
    pub(crate) id: LinkId,
    pub(crate) address: LinkAddress,
    pub(crate) outbox: Arc<Outbox>,
    _end: DropGuard,
}

impl Links {
    /// No link yet. All of them end with `stop`.
    pub(crate) fn new(
        clock: Clock,
        dial: DialRoute,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<(LinkId, LinkEvent)>) {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let tasks = TaskTracker::new();
        let pacer = Pacer::start(clock, &tasks, stop.clone());
        (Self { clock, dial, metrics, events, pacer, tasks, stop, opened: 0 }, receiver)
    }

    /// Keeps a link to the queue-proxy of `pod`.
    pub(crate) fn open_pod(
        &mut self,
        pod: PodName,
        address: LinkAddress,
        settings: PodOrder,
        priority: Priority,
    ) -> PodLink {
        let (sender, receiver) = watch::channel(settings);
        let (peer, end) = self.peer(PeerKind::Pod, pod.to_string(), address, priority);
        let id = peer.id;
        self.spawn(&end, pod::keep(peer, pod, receiver));
        PodLink { id, address, settings: sender, _end: end.drop_guard() }
    }

    /// Keeps a link to an activator.
    pub(crate) fn open_activator(&mut self, name: ReplicaName, address: LinkAddress) -> ActivatorLink {
        let outbox = Arc::new(Outbox::default());
        let (peer, end) = self.peer(PeerKind::Activator, name.to_string(), address, Priority::Activator);
        let id = peer.id;
        self.spawn(&end, activator::keep(peer, name, Arc::clone(&outbox)));
        ActivatorLink { id, address, outbox, _end: end.drop_guard() }
    }

    /// Ends all links and joins their tasks.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn peer(
        &mut self,
        kind: PeerKind,
        name: String,
        address: LinkAddress,
        priority: Priority,
    ) -> (Peer, CancellationToken) {
        self.opened += 1;
        let peer = Peer {
            id: LinkId(self.opened),
            kind,
            name,
            address,
            priority,
            clock: self.clock,
            dial: self.dial,
            metrics: self.metrics.clone(),
            events: self.events.clone(),
            pacer: self.pacer.clone(),
            backoff: Backoff::new(BACKOFF.0, BACKOFF.1),
            failing: None,
        };
        (peer, self.stop.child_token())
    }

    fn spawn(&self, end: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
        let end = end.clone();
        self.tasks.spawn(async move {
            end.run_until_cancelled(vital("a link of the autoscaler", task)).await;
        });
    }
}

/// Whom a link task dials, and how.
struct Peer {
    id: LinkId,
    kind: PeerKind,
    name: String,
    address: LinkAddress,
    priority: Priority,
    clock: Clock,
    dial: DialRoute,
    metrics: Metrics,
    events: mpsc::Sender<(LinkId, LinkEvent)>,
    pacer: Pacer,
    backoff: Backoff,
    failing: Option<Failing>,
}

/// Since when there has been no link, and whether people were told.
struct Failing {
    since: Timestamp,
    is_told: bool,
}

impl Peer {
    /// Dials until somebody takes the connection.
    async fn connect<In: Message, Out: Message>(&mut self) -> (Reader<In>, Writer<Out>) {
        loop {
            let turn = self.pacer.turn(self.priority).await;
            let dialled = match self.dial {
                DialRoute::Direct => link::dial(self.address).await,
                DialRoute::Relay(relay) => link::dial_through(relay, self.address).await,
            };
            drop(turn);
            match dialled {
                Ok(ends) => return ends,
                Err(error) => self.failed(in_one_line(&error)).await,
            }
        }
    }

    /// Says something to the event loop; waits if that has much to do.
    async fn say(&self, event: LinkEvent) {
        // The receiver goes only when the event loop ends, and all links with it.
        let _ = self.events.send((self.id, event)).await;
    }

    /// The peer said hello. The guard counts the link as up while it lives.
    fn up(&mut self) -> Up {
        self.failing = None;
        tracing::debug!(peer = %self.name, address = %self.address.socket, "linked");
        self.metrics.link_up(self.kind);
        Up { since: self.clock.now(), kind: self.kind, metrics: self.metrics.clone(), end: LinkEnd::Closed }
    }

    /// A conversation ended, in order (`Ok`) or not: tells, and waits before the next attempt. `up` is what [`Peer::up`] gave, if it came to
    /// that.
    async fn ended(&mut self, up: Option<Up>, how: Result<(), LinkError>) {
        let reason = match &how {
            Ok(()) => "the peer closed the link".to_owned(),
            Err(error) => in_one_line(error),
        };
        let Some(mut up) = up else { return self.failed(reason).await };
        if self.clock.now().saturating_since(up.since) >= GOOD_LINK {
            self.backoff.reset();
        }
        if how.is_err() {
            up.end = LinkEnd::Lost;
            tracing::info!(peer = %self.name, reason, "link lost");
        } else {
            tracing::debug!(peer = %self.name, "link closed by the peer");
        }
        drop(up);
        self.say(LinkEvent::Lost).await;
        self.failed(reason).await;
    }

    /// An attempt failed: after a while people are told, once.
    async fn failed(&mut self, reason: String) {
        let now = self.clock.now();
        let failing = self.failing.get_or_insert(Failing { since: now, is_told: false });
        let is_blocked = now.saturating_since(failing.since) >= BLOCKED_AFTER;
        if is_blocked && !std::mem::replace(&mut failing.is_told, true) {
            tracing::warn!(peer = %self.name, address = %self.address.socket, reason, "no link for a minute; its load and state are unknown");
            self.say(LinkEvent::Blocked(reason)).await;
        }
        tokio::time::sleep(self.backoff.next_wait()).await;
    }
}

/// Counts a link as up.
struct Up {
    since: Timestamp,
    kind: PeerKind,
    metrics: Metrics,
    end: LinkEnd,
}

impl Drop for Up {
    fn drop(&mut self) {
        self.metrics.link_down(self.kind, self.end);
    }
}

/// An error with its causes.
fn in_one_line(error: &LinkError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The peer did something that the protocol does not have.
fn breach(problem: impl Into<String>) -> LinkError {
    LinkError::Garbage(link::WireError::BadValue { field: "its message", problem: problem.into() })
}
