//! The autoscaler's links: one task each, which dials, talks, and dials again.
//!
//! Nothing here waits for the event loop except by back-pressure on one link, and the event loop never waits
//! for a link: settings of a pod are a watched value, assignments a latest-wins slot per revision
//! ([`outbox::Outbox`]). What a peer sends arrives with the [`LinkId`] of its task, so that a late word from
//! a task that was ended is recognised and ignored. A program of Knative's has no link: a task of its own
//! tells what is heard of it another way ([`pushed`], [`scraped`]), in the words of a link.

mod activator;
mod boots;
mod lookout;
mod outbox;
mod pacer;
mod peer;
mod pod;
mod pushed;
mod scraped;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use link::Dial;
use orchestration::{ControlEvent, LinkId, Priority};
use runtime::{Backoff, Clock, vital};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use vocabulary::{LinkAddress, LinkChannel, PodSettings, ReplicaName};

use crate::metrics::{AutoscalerMetrics, PeerKind};
use crate::stat_desk::StatDesk;
use lookout::LOOKS_AT_ONCE_MAX;
pub(crate) use outbox::OrderOutbox;
use pacer::{DIAL_EVERY, Pacer};
use peer::{BACKOFF, LinkPeer, LinkTarget, RefusalSpell};

/// Words of links that wait for the event loop. When it is full, links are read later: each peer feels it
/// through its own connection.
const EVENTS_MAX: usize = 4096;
/// The least time between two questions to pods of Knative's: 2,000 a second (contract §7.2).
const SCRAPE_EVERY: Duration = Duration::from_micros(500);

/// Opens links and collects what they say.
pub(crate) struct Links {
    clock: Clock,
    dialler: Arc<dyn Dial>,
    metrics: AutoscalerMetrics,
    events: mpsc::Sender<ControlEvent>,
    pacer: Pacer,
    /// Turns for asking pods of Knative's for their load; made with the first of these.
    scrapes: OnceLock<Pacer>,
    /// What activators of Knative's push.
    stats: StatDesk,
    looks: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The name of this autoscaler, by which activators know the owner of a link.
    owner: ReplicaName,
}

/// The event loop's hold on a link; dropping it ends the link.
#[derive(Debug)]
pub(crate) enum LinkHandle {
    Pod(LinkToPod),
    Activator(ActivatorLink),
    /// A program of Knative's, which is told nothing.
    Foreign(#[expect(dead_code, reason = "its drop ends the tasks")] ForeignLink),
}

/// What stands in the place of a link to a program of Knative's.
#[derive(Debug)]
pub(crate) struct ForeignLink {
    _end: DropGuard,
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
        (metrics, stats): (AutoscalerMetrics, StatDesk),
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<ControlEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let tasks = TaskTracker::new();
        let pacer = Pacer::start(clock, DIAL_EVERY, &tasks, stop.clone());
        let (scrapes, looks) = (OnceLock::new(), Arc::new(Semaphore::new(LOOKS_AT_ONCE_MAX)));
        let links =
            Self { clock, dialler, metrics, events, pacer, scrapes, stats, looks, tasks, stop, owner };
        (links, receiver)
    }

    /// Dials a peer and keeps the link until its handle is dropped.
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
            orchestration::Peer::Pod { name, .. } if !address.channel.is_link() => {
                let peer = self.peer(target(PeerKind::Pod, name.as_str()));
                if address.channel == LinkChannel::Unasked {
                    self.spawn(&end, scraped::keep_unasked(peer, name));
                } else {
                    self.spawn(&end, scraped::keep(peer, name, self.scrapes()));
                }
                LinkHandle::Foreign(ForeignLink { _end: end.drop_guard() })
            }
            orchestration::Peer::Activator { name } if !address.channel.is_link() => {
                let peer = self.peer(target(PeerKind::Activator, name.as_str()));
                self.spawn(&end, pushed::keep(peer, name, self.stats.clone()));
                LinkHandle::Foreign(ForeignLink { _end: end.drop_guard() })
            }
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

    fn scrapes(&self) -> Pacer {
        let start = || Pacer::start(self.clock, SCRAPE_EVERY, &self.tasks, self.stop.clone());
        self.scrapes.get_or_init(start).clone()
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

#[cfg(test)]
mod tests;
