//! The autoscaler's links: one task each, which dials, talks, and dials again.
//!
//! Nothing here waits for the event loop except by back-pressure on one link, and the event loop never waits
//! for a link: settings of a pod are a watched value, assignments a latest-wins slot per revision
//! ([`outbox::Outbox`]). What a peer sends arrives with the [`LinkId`] of its task, so that a late word from
//! a task that was ended is recognised and ignored.

mod activator;
mod lookout;
mod outbox;
mod pacer;
mod pod;

use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use link::{Dial, HEARTBEAT_EVERY, LATE_AFTER, LinkError, Message, Reader, Reception, Writer};
use orchestration::{ControlEvent, LinkId, LinkNews, Priority};
use runtime::{Backoff, Clock, vital};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use vocabulary::{LinkAddress, PodSettings, ReplicaName, Timestamp};

use crate::metrics::{AutoscalerMetrics, LinkEnding, PeerKind};
use lookout::{LOOKS_AT_ONCE_MAX, LookSpell, Lookout};
pub(crate) use outbox::OrderOutbox;
use pacer::Pacer;

/// Words of links that wait for the event loop. When it is full, links are read later: each peer feels it
/// through its own connection.
const EVENTS_MAX: usize = 4096;
/// The first and the largest wait between two attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// The largest wait before the first link to a pod that requests wait for: its address is known a moment
/// before it listens, and what its first request may lose by a wait is half of it.
const AWAITED_WAIT_MAX: Duration = Duration::from_millis(10);
/// How long waits stay so short. A pod that does not listen by then has other troubles.
const AWAITED_FOR: Duration = Duration::from_secs(5);
/// A link that lived this long was a good one: the next attempt begins with the least wait.
const GOOD_LINK: Duration = Duration::from_secs(5);
/// Two refused attempts within this time mean that nobody listens any more.
const REFUSALS_WITHIN: Duration = Duration::from_millis(200);
/// The wait between these two, at most.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(50);
/// An attempt that nobody answers for this long gives its turn to others: a dead node's pods would hold all
/// turns for the ten seconds that an attempt may take.
const TURN_MAX: Duration = Duration::from_millis(500);
/// Without a link for this long, people are told.
const BLOCKED_AFTER: Duration = Duration::from_secs(60);

/// Opens links and collects what they say.
pub(crate) struct Links {
    clock: Clock,
    dialler: Arc<dyn Dial>,
    metrics: AutoscalerMetrics,
    events: mpsc::Sender<ControlEvent>,
    pacer: Pacer,
    looks: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Our own name, by which activators know whose link it is.
    owner: ReplicaName,
}

/// The event loop's hold on a link; dropping it ends the link.
#[derive(Debug)]
pub(crate) enum LinkHandle {
    Pod(LinkToPod),
    Activator(ActivatorLink),
}

/// A link to a queue-proxy.
#[derive(Debug)]
pub(crate) struct LinkToPod {
    settings: watch::Sender<Arc<PodSettings>>,
    _end: DropGuard,
}

impl LinkToPod {
    /// What the queue-proxy must know from now on; sent if it is news.
    pub(crate) fn tell(&self, settings: Arc<PodSettings>) {
        self.settings.send_if_modified(|current| {
            // Most decisions change nothing for a pod, and each wake-up here would be a frame on its link.
            let is_news = *current != settings;
            *current = settings;
            is_news
        });
    }
}

/// A link to an activator.
#[derive(Debug)]
pub(crate) struct ActivatorLink {
    pub(crate) outbox: Arc<OrderOutbox>,
    _end: DropGuard,
}

impl Links {
    /// No link yet. All of them end with `stop`.
    pub(crate) fn new(
        owner: ReplicaName,
        clock: Clock,
        dialler: Arc<dyn Dial>,
        metrics: AutoscalerMetrics,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<ControlEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let tasks = TaskTracker::new();
        let pacer = Pacer::start(clock, &tasks, stop.clone());
        let looks = Arc::new(Semaphore::new(LOOKS_AT_ONCE_MAX));
        (Self { clock, dialler, metrics, events, pacer, looks, tasks, stop, owner }, receiver)
    }

    /// Keeps a link.
    pub(crate) fn open(
        &self,
        link: LinkId,
        peer: orchestration::Peer,
        address: LinkAddress,
        priority: Priority,
    ) -> LinkHandle {
        let end = self.stop.child_token();
        let target =
            |kind, name: &str| LinkTarget { id: link, kind, name: name.to_owned(), address, priority };
        match peer {
            orchestration::Peer::Pod { name, settings } => {
                let (sender, receiver) = watch::channel(settings);
                let peer = self.peer(target(PeerKind::Pod, name.as_str()));
                self.spawn(&end, pod::keep(peer, name, receiver));
                LinkHandle::Pod(LinkToPod { settings: sender, _end: end.drop_guard() })
            }
            orchestration::Peer::Activator { name } => {
                let outbox = Arc::new(OrderOutbox::default());
                let peer = self.peer(target(PeerKind::Activator, name.as_str()));
                let owner = self.owner.clone();
                self.spawn(&end, activator::keep(peer, name, owner, Arc::clone(&outbox)));
                LinkHandle::Activator(ActivatorLink { outbox, _end: end.drop_guard() })
            }
        }
    }

    /// Ends all links and joins their tasks.
    pub(crate) async fn close(self) {
        // First: a link ends only with its peer otherwise, which may live for months.
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn peer(&self, target: LinkTarget) -> LinkPeer {
        LinkPeer {
            target,
            clock: self.clock,
            dialler: Arc::clone(&self.dialler),
            metrics: self.metrics.clone(),
            events: self.events.clone(),
            pacer: self.pacer.clone(),
            looks: Arc::clone(&self.looks),
            trouble: watch::Sender::new(None),
            backoff: Backoff::new(BACKOFF.0, BACKOFF.1),
            failing: None,
            refusing: RefusalSpell::NeverLinked,
        }
    }

    fn spawn(&self, end: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(until(end.clone(), task));
    }
}

/// A link's task until that end. There are as many as pods, and each layer around a future keeps room for it
/// twice: as what it was given and as what it waits for. So the task is boxed before the first of them.
fn until(
    end: CancellationToken,
    task: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let task = Box::pin(task);
    async move {
        end.run_until_cancelled(vital("a link of the autoscaler", task)).await;
    }
}

/// Whom a link task dials.
struct LinkTarget {
    id: LinkId,
    kind: PeerKind,
    name: String,
    address: LinkAddress,
    priority: Priority,
}

/// Whether anybody listens where a link stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalSpell {
    /// No link stood yet, so a refusal says nothing: it may not listen yet.
    NeverLinked,
    /// Nobody refused since the link stood.
    No,
    /// One attempt was refused, then.
    Once { at: Timestamp },
    /// Another one too, and the event loop knows.
    Told,
}

/// A link task's hold on whom it dials, and how.
struct LinkPeer {
    target: LinkTarget,
    clock: Clock,
    dialler: Arc<dyn Dial>,
    metrics: AutoscalerMetrics,
    events: mpsc::Sender<ControlEvent>,
    pacer: Pacer,
    looks: Arc<Semaphore>,
    /// Since when the peer should have been heard; `None` while all is well.
    trouble: watch::Sender<Option<Timestamp>>,
    backoff: Backoff,
    failing: Option<FailureSpell>,
    refusing: RefusalSpell,
}

/// Since when there has been no link, and whether people were told.
struct FailureSpell {
    since: Timestamp,
    is_told: bool,
}

impl LinkPeer {
    /// Dials until somebody takes the connection.
    async fn connect<In: Message, Out: Message>(&mut self) -> (Reader<In>, Writer<Out>) {
        loop {
            match self.dial().await {
                Ok(ends) => return ends,
                Err(error) => {
                    self.suspect(self.clock.now());
                    self.note_refusal(&error).await;
                    self.failed(in_one_line(&error)).await;
                }
            }
        }
    }

    /// One attempt, at its turn.
    async fn dial<In: Message, Out: Message>(&self) -> Result<(Reader<In>, Writer<Out>), LinkError> {
        let turn = self.pacer.turn(self.target.priority).await;
        let mut dialling = std::pin::pin!(link::dial_with(&*self.dialler, self.target.address));
        let answer = tokio::time::timeout(TURN_MAX, &mut dialling).await;
        // A turn is for dialling. What follows may wait for a second, and would keep others from it.
        drop(turn);
        if let Ok(dialled) = answer {
            return dialled;
        }
        self.suspect(self.clock.now());
        dialling.await
    }

    /// What looks at this peer while its link is not well.
    fn lookout(&self) -> Lookout {
        Lookout {
            link: self.target.id,
            address: self.target.address,
            clock: self.clock,
            dialler: Arc::clone(&self.dialler),
            events: self.events.clone(),
            turns: Arc::clone(&self.looks),
            trouble: self.trouble.subscribe(),
            spell: LookSpell::default(),
        }
    }

    /// The peer should have been heard since then.
    fn suspect(&self, since: Timestamp) {
        self.trouble.send_if_modified(|trouble| {
            let is_news = trouble.is_none();
            trouble.get_or_insert(since);
            is_news
        });
    }

    /// The next message, and looks at the peer while it is late.
    async fn next<In: Message>(
        &self,
        reader: &mut Reader<In>,
        lookout: &mut Lookout,
    ) -> Result<Option<In>, LinkError> {
        match reader.received().await? {
            Reception::Message(message) => return Ok(Some(message)),
            Reception::End => return Ok(None),
            Reception::Late => {}
        }
        // What was due is the heartbeat.
        self.suspect(self.clock.now() - LATE_AFTER.saturating_sub(HEARTBEAT_EVERY));
        let message = lookout.beside(reader.next()).await?;
        if message.is_some() {
            self.trouble.send_replace(None);
        }
        Ok(message)
    }

    /// Says something to the event loop; waits if that has much to do.
    async fn say(&self, event: ControlEvent) {
        // The receiver goes only when the event loop ends, and all links with it.
        let _ = self.events.send(event).await;
    }

    async fn tell_news(&self, news: LinkNews) {
        self.say(ControlEvent::LinkChanged { link: self.target.id, news }).await;
    }

    /// Two refusals in a row, soon after each other, where a link stood: whoever listened there has ended or
    /// is being restarted.
    async fn note_refusal(&mut self, error: &LinkError) {
        let is_refusal =
            matches!(error, LinkError::Connect(error) if error.kind() == ErrorKind::ConnectionRefused);
        let now = self.clock.now();
        self.refusing = match self.refusing {
            RefusalSpell::NeverLinked | RefusalSpell::Told => return,
            // Silence may be the network's. A refusal is the host's own word that nobody listens.
            RefusalSpell::No | RefusalSpell::Once { .. } if !is_refusal => RefusalSpell::No,
            RefusalSpell::Once { at } if now.saturating_since(at) <= REFUSALS_WITHIN => {
                self.tell_news(LinkNews::Refused).await;
                RefusalSpell::Told
            }
            RefusalSpell::No | RefusalSpell::Once { .. } => RefusalSpell::Once { at: now },
        };
    }

    /// The peer said hello. The guard counts the link as up while it lives.
    fn up(&mut self) -> UpCount {
        self.failing = None;
        self.refusing = RefusalSpell::No;
        self.trouble.send_replace(None);
        tracing::debug!(peer = %self.target.name, address = %self.target.address.socket, "linked");
        self.metrics.link_up(self.target.kind);
        UpCount {
            since: self.clock.now(),
            kind: self.target.kind,
            metrics: self.metrics.clone(),
            end: LinkEnding::Closed,
        }
    }

    /// A conversation ended, in order (`Ok`) or not: tells, and waits before the next attempt. `up` is what
    /// [`LinkPeer::up`] gave, if it came to that.
    async fn ended(&mut self, up: Option<UpCount>, how: Result<(), LinkError>) {
        let reason = match &how {
            Ok(()) => "the peer closed the link".to_owned(),
            Err(error) => in_one_line(error),
        };
        self.suspect(self.clock.now());
        let Some(mut up) = up else { return self.failed(reason).await };
        // Whoever takes a link and drops it at once, again and again, would be dialled without a pause.
        if self.clock.now().saturating_since(up.since) >= GOOD_LINK {
            self.backoff.reset();
        }
        if how.is_err() {
            up.end = LinkEnding::Lost;
            tracing::info!(peer = %self.target.name, reason, "link lost");
        } else {
            tracing::debug!(peer = %self.target.name, "link closed by the peer");
        }
        // Before the event loop hears of it: who asks for metrics then sees the link down as well.
        drop(up);
        self.tell_news(LinkNews::Lost).await;
        self.failed(reason).await;
    }

    /// An attempt failed: after a while people are told, once.
    async fn failed(&mut self, reason: String) {
        let now = self.clock.now();
        let failing = self.failing.get_or_insert(FailureSpell { since: now, is_told: false });
        let failed_for = now.saturating_since(failing.since);
        let is_awaited = self.target.priority == Priority::Awaited && failed_for < AWAITED_FOR;
        let is_blocked = failed_for >= BLOCKED_AFTER;
        if is_blocked && !std::mem::replace(&mut failing.is_told, true) {
            tracing::warn!(peer = %self.target.name, address = %self.target.address.socket, reason, "no link for a minute; its load and state are unknown");
            self.tell_news(LinkNews::Blocked(reason)).await;
        }
        let wait = self.backoff.next_wait();
        let wait = match self.refusing {
            // Waits have grown to more than the two may lie apart where many attempts came before a link that
            // soon broke: nobody would ever hear that its peer has ended.
            RefusalSpell::Once { .. } => wait.min(SECOND_LOOK_AFTER),
            RefusalSpell::NeverLinked if is_awaited => wait.min(AWAITED_WAIT_MAX),
            RefusalSpell::NeverLinked | RefusalSpell::No | RefusalSpell::Told => wait,
        };
        tokio::time::sleep(wait).await;
    }
}

/// Counts a link as up.
struct UpCount {
    since: Timestamp,
    kind: PeerKind,
    metrics: AutoscalerMetrics,
    end: LinkEnding,
}

impl Drop for UpCount {
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

#[cfg(test)]
mod tests;
