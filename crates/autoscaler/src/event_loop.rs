//! The one task that decides: facts in, orders out.
//!
//! It owns the [`Multiscaler`] and the [`Registry`]; nothing here waits for anybody but for the next fact. Facts from the platform and from
//! links go to the multiscaler ([`facts`], [`reports`]); its commands go to the platform and the links ([`orders`]). Assignments are
//! rebuilt once per turn for the revisions that a turn touched, however many facts it took in.

mod facts;
mod orders;
mod reports;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use platform::{Platform, PlatformEvent};
use runtime::Clock;
use scaling::{ClusterConfig, Event, Multiscaler};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use vocabulary::{PodId, ReplicaId, RevisionId, Timestamp};

use crate::AutoscalerConfig;
use crate::acknowledgements::Acknowledgements;
use crate::api::Query;
use crate::assigner::Versions;
use crate::links::{LinkEvent, LinkId, Links};
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::views;

/// How many facts one turn takes in before it acts on them.
const FACTS_PER_TURN_MAX: usize = 128;
/// How long pods wait for the activators' first word at start, which says what routing is in force.
const ACTIVATORS_FIRST_MAX: Duration = Duration::from_secs(1);

/// The state of the control loop.
pub(crate) struct EventLoop {
    clock: Clock,
    platform: Arc<dyn Platform>,
    metrics: Metrics,
    facts: mpsc::Receiver<PlatformEvent>,
    reports: mpsc::Receiver<(LinkId, LinkEvent)>,
    links: Links,
    stop: CancellationToken,
    multiscaler: Multiscaler,
    registry: Registry,
    acknowledgements: Acknowledgements,
    versions: Versions,
    config: Arc<ClusterConfig>,
    problems: Vec<String>,
    linking: Linking,
    /// Revisions whose assignment may have to change.
    touched: BTreeSet<RevisionId>,
    /// Activators that said hello and have to be told everything.
    unsynced: BTreeSet<ReplicaId>,
    /// Revisions whose metrics may be out of date.
    unshown: BTreeSet<RevisionId>,
    show_at: Timestamp,
    /// Leaving pods that have to be released, with the latest time for it.
    releases: BTreeSet<(Timestamp, RevisionId, PodId)>,
}

/// Whose links may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linking {
    /// Nobody's: the platform has not said everything yet, and what we do not name activators would drop.
    Nobody,
    /// Activators', until they have spoken or the time has passed.
    Activators {
        /// Until then.
        until: Timestamp,
    },
    /// Everybody's.
    Everybody,
}

/// How often the metrics of revisions with traffic follow their values: as often as decisions are made.
const METRICS_EVERY: Duration = Duration::from_secs(2);

/// What woke the loop.
enum Wake {
    Stop,
    Fact(PlatformEvent),
    Report(LinkId, LinkEvent),
    Query(Query),
    Deadline,
}

impl EventLoop {
    /// Subscribes to the platform. Must be called within a tokio runtime.
    pub(crate) fn new(
        config: AutoscalerConfig,
        platform: Arc<dyn Platform>,
        stop: CancellationToken,
    ) -> Self {
        let AutoscalerConfig { epoch, clock, metrics, dial } = config;
        let (links, reports) = Links::new(clock, dial, metrics.clone(), stop.child_token());
        Self {
            clock,
            facts: platform.subscribe(),
            platform,
            metrics,
            reports,
            links,
            stop,
            multiscaler: Multiscaler::default(),
            registry: Registry::default(),
            acknowledgements: Acknowledgements::default(),
            versions: Versions::new(epoch),
            config: Arc::default(),
            problems: Vec::new(),
            linking: Linking::Nobody,
            touched: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            unshown: BTreeSet::new(),
            show_at: Timestamp::ZERO,
            releases: BTreeSet::new(),
        }
    }

    /// Turns until it is stopped, then ends all links.
    pub(crate) async fn run(mut self, mut queries: mpsc::Receiver<Query>) {
        loop {
            match self.wake(&mut queries).await {
                Wake::Stop => break,
                Wake::Query(query) => self.answer(query),
                Wake::Fact(event) => self.take_facts(event),
                Wake::Report(link, event) => self.take_reports(link, event),
                Wake::Deadline => {}
            }
            self.settle();
        }
        for revision in self.registry.revisions.values() {
            self.metrics.forget(&revision.facts.name);
        }
        // Links first, so that no task is left waiting for room in a channel that nobody reads.
        drop((self.registry, self.reports));
        self.links.close().await;
    }

    /// Every arm is cancel-safe: channels keep what was not taken.
    async fn wake(&mut self, queries: &mut mpsc::Receiver<Query>) -> Wake {
        let deadline = self.deadline();
        tokio::select! {
            () = self.stop.cancelled() => Wake::Stop,
            Some(event) = self.facts.recv() => Wake::Fact(event),
            Some((link, event)) = self.reports.recv() => Wake::Report(link, event),
            Some(query) = queries.recv() => Wake::Query(query),
            () = self.clock.sleep_until(deadline.unwrap_or(Timestamp::MAX)), if deadline.is_some() => Wake::Deadline,
        }
    }

    fn take_facts(&mut self, first: PlatformEvent) {
        self.platform_said(first);
        for _ in 1..FACTS_PER_TURN_MAX {
            let Ok(event) = self.facts.try_recv() else { return };
            self.platform_said(event);
        }
    }

    fn take_reports(&mut self, link: LinkId, first: LinkEvent) {
        self.link_said(link, first);
        for _ in 1..FACTS_PER_TURN_MAX {
            let Ok((link, event)) = self.reports.try_recv() else { return };
            self.link_said(link, event);
        }
    }

    /// Does what is due: deadlines of decisions, changed assignments, releases.
    fn settle(&mut self) {
        let now = self.clock.now();
        if self.multiscaler.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.multiscaler.advance(now);
            self.perform_commands(now);
        }
        self.open_pods_when_due(now);
        if self.linking != Linking::Nobody {
            self.inform_activators(now);
        }
        self.release_at_the_latest(now);
        self.show_metrics(now);
    }

    /// Metrics follow decisions at once and values every few seconds; a revision that rests costs nothing.
    fn show_metrics(&mut self, now: Timestamp) {
        if now < self.show_at || self.unshown.is_empty() {
            return;
        }
        self.show_at = now + METRICS_EVERY;
        let (registry, multiscaler, metrics) = (&self.registry, &self.multiscaler, &self.metrics);
        self.unshown.retain(|id| {
            let Some(revision) = registry.revisions.get(id) else { return false };
            let Some(status) = multiscaler.status(*id, now) else { return false };
            metrics.show(&revision.facts.name, &status);
            status.panicking || status.stable_value.is_some_and(|value| value > 0.0)
        });
    }

    /// Brings assignments up to date, then tells everything to those activators that have just said hello.
    fn inform_activators(&mut self, now: Timestamp) {
        // Telling the multiscaler of an acknowledged path may change a route, and so an assignment, once more.
        while let Some(revision) = self.touched.pop_first() {
            self.unshown.insert(revision);
            self.reassign(revision, now);
        }
        while let Some(activator) = self.unsynced.pop_first() {
            if let Some(link) = self.registry.activators.get(&activator) {
                link.outbox.sync();
            }
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        let release = self.releases.first().map(|&(at, _, _)| at);
        let linking = match self.linking {
            Linking::Activators { until } => Some(until),
            Linking::Nobody | Linking::Everybody => None,
        };
        let metrics = (!self.unshown.is_empty()).then_some(self.show_at);
        [self.multiscaler.next_deadline(), release, linking, metrics].into_iter().flatten().min()
    }

    /// Tells the multiscaler a fact and does as it says.
    fn tell(&mut self, event: Event, now: Timestamp) {
        self.multiscaler.handle(event, now);
        self.perform_commands(now);
    }

    /// Whoever asked may have gone; that is their affair.
    fn answer(&self, query: Query) {
        let now = self.clock.now();
        match query {
            Query::List(reply) => {
                let _ = reply.send(views::list(&self.registry, &self.multiscaler, &self.problems, now));
            }
            Query::Detail(name, reply) => {
                let found = self.registry.revision_id(&name);
                let detail = found.and_then(|id| views::detail(id, &self.registry, &self.multiscaler, now));
                let _ = reply.send(detail.map(|detail| views::with_problems(detail, &self.problems)));
            }
            Query::Problems(reply) => {
                let _ = reply.send(views::problems(&self.problems));
            }
            Query::Health(reply) => {
                let _ = reply.send(());
            }
        }
    }
}
