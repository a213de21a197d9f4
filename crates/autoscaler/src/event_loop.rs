//! The one task that decides: it carries facts and words to the [`Orchestrator`] and does as that says.
//!
//! Nothing here waits but for the next event, and nothing here decides: links and the platform
//! are handles under the numbers that the orchestrator gave out. However many events a turn takes in, what
//! follows from them is worked out once. Nor does anything here answer a reader: what readers may find is
//! published ([`Snapshot`]), whether there are any or not.

mod histories;

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use orchestration::{
    ControlCommand, ControlEvent, LinkId, Orchestrator, OrchestratorSettings, Order, OrderOutcome,
    PlatformFact, PlatformOrder, PodReach, ReleaseProof,
};
use platform::{MetricQuestion, Platform, Subscription};
use recording::RecordInput;
use runtime::{Clock, wall_time};
use scaling::Decision;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use vocabulary::{Ownership, ReplicaName, RevisionName, Routing, Timestamp};

use crate::api::{LoopCall, LoopHealth};
use crate::caller_memory::CallerMemory;
use crate::config::AutoscalerConfig;
use crate::history_keeper::HistoryKeeper;
use crate::links::{LinkHandle, Links, OrderOutbox};
use crate::metric_sources::{ANSWERS_WITHIN, MetricSources, RecordedPasts};
use crate::metrics::AutoscalerMetrics;
use crate::recorder::RecordedLoop;
use crate::run_record::{RunRecord, RunRecordFolder};
use crate::shelf_keeper::ShelfKeeper;
use crate::snapshot::{NEWS_WITHIN, SWEEP_EVERY, Snapshot, SnapshotWriter};
use crate::zones::LocalZones;

/// How many events one turn takes in before it acts on them.
const EVENTS_PER_TURN_MAX: usize = 128;
/// How often the wall clock is looked at, in case it was set.
const WALL_CLOCK_EVERY: Duration = Duration::from_secs(60);
/// How often revisions are looked for that lack a past, of which Prometheus is asked.
const PASTS_EVERY: Duration = Duration::from_secs(60);

/// The handles of the control loop.
pub(crate) struct EventLoop {
    clock: Clock,
    subscription: Subscription,
    /// When the lease on what is ours is to be renewed; `None` where no other autoscaler could have it.
    renew_at: Option<Timestamp>,
    name: ReplicaName,
    metrics: AutoscalerMetrics,
    words: mpsc::Receiver<ControlEvent>,
    sources: MetricSources,
    pasts: RecordedPasts,
    ask_pasts_at: Timestamp,
    links: Links,
    handles: BTreeMap<LinkId, LinkHandle>,
    stop: CancellationToken,
    orchestrator: Orchestrator,
    /// Whether the platform has told everything that is there.
    is_synced: bool,
    /// Health checks that are answered once readers find everything that is known now.
    checks: Vec<oneshot::Sender<LoopHealth>>,
    snapshots: SnapshotWriter,
    callers: CallerMemory,
    /// When readers were last told what is.
    published_at: Timestamp,
    /// When what was measured is to be written next.
    sweep_at: Timestamp,
    read_wall_clock_at: Timestamp,
    zones: LocalZones,
    /// Writes down what the orchestrator is told, where that is asked for.
    record: RunRecord,
    /// Keeps histories over the end of this autoscaler, where a store was given.
    keeper: Option<HistoryKeeper>,
    /// Keeps histories likewise, where the platform has a shelf for them.
    shelf: Option<ShelfKeeper>,
}

/// The reason why the loop turns once more.
enum LoopWakeup {
    Stop,
    Fact(PlatformFact),
    Word(ControlEvent),
    Call(LoopCall),
    HistoriesRead,
    Deadline,
}

impl EventLoop {
    /// Subscribes to the platform. Must be called within a tokio runtime.
    pub(crate) fn new(
        config: AutoscalerConfig,
        platform: &dyn Platform,
        snapshots: SnapshotWriter,
        stop: CancellationToken,
    ) -> Self {
        let AutoscalerConfig { name, clock, metrics, dialler, choice, record, stats, history } = config;
        let settings = OrchestratorSettings { choice, ..OrchestratorSettings::default() };
        let recorded = RecordedLoop {
            owner: name.clone(),
            orchestrator: settings.clone(),
            metrics: metrics.clone(),
            snapshots: snapshots.reader(clock),
        };
        let subscription = platform.subscribe(&name);
        let (links, words) =
            Links::new(name.clone(), clock, dialler, (metrics.clone(), stats), stop.child_token());
        Self {
            keeper: history.map(|source| HistoryKeeper::new(source, clock.now())),
            shelf: platform.history_shelf().map(|shelf| ShelfKeeper::new(shelf, clock.now())),
            clock,
            renew_at: subscription.renew_every.map(|every| clock.now() + every),
            subscription,
            name,
            metrics,
            words,
            sources: MetricSources::new(platform.metric_source()),
            pasts: RecordedPasts::new(),
            ask_pasts_at: Timestamp::ZERO,
            links,
            handles: BTreeMap::new(),
            stop,
            record: RunRecord::new(record, recorded),
            orchestrator: Orchestrator::new(settings),
            is_synced: false,
            checks: Vec::new(),
            snapshots,
            callers: CallerMemory::default(),
            published_at: Timestamp::ZERO,
            sweep_at: Timestamp::ZERO,
            read_wall_clock_at: Timestamp::ZERO,
            zones: LocalZones::default(),
        }
    }

    /// Where readers find the record of this run.
    pub(crate) fn record_folder(&self) -> RunRecordFolder {
        self.record.folder()
    }

    /// Turns until it is stopped, then ends all links.
    pub(crate) async fn run(mut self, mut calls: mpsc::Receiver<LoopCall>) {
        self.read_wall_clock();
        loop {
            match self.wake(&mut calls).await {
                LoopWakeup::Stop => break,
                LoopWakeup::Call(call) => self.take_call(call),
                LoopWakeup::HistoriesRead => self.restore_histories(),
                LoopWakeup::Fact(fact) => self.take_facts(fact),
                LoopWakeup::Word(word) => self.take_words(word),
                LoopWakeup::Deadline => {}
            }
            self.settle();
        }
        self.metrics.owns(&self.name, 0);
        self.record.end(&self.orchestrator, self.clock.now());
        self.finish_histories().await;
        // Links first, so that no task is left waiting for room in a channel without a reader.
        drop((self.handles, self.words, self.snapshots));
        self.links.close().await;
        self.record.finish().await;
    }

    /// The next thing that has to be done.
    async fn wake(&mut self, calls: &mut mpsc::Receiver<LoopCall>) -> LoopWakeup {
        let others = [self.orchestrator.next_deadline(), self.renew_at, self.write_histories_at()];
        let deadline = others.into_iter().flatten().fold(self.publish_at(), Timestamp::min);
        // Every arm is cancel-safe: channels keep what was not taken.
        tokio::select! {
            () = self.stop.cancelled() => LoopWakeup::Stop,
            Some(fact) = self.subscription.facts.recv() => LoopWakeup::Fact(fact),
            Some(word) = self.words.recv() => LoopWakeup::Word(word),
            Some(answers) = self.sources.answered() => LoopWakeup::Word(answers),
            Some(past) = self.pasts.answered() => LoopWakeup::Word(past),
            Some(()) = ShelfKeeper::was_read(self.shelf.as_mut()) => LoopWakeup::HistoriesRead,
            Some(call) = calls.recv() => LoopWakeup::Call(call),
            () = self.clock.sleep_until(deadline) => LoopWakeup::Deadline,
        }
    }

    fn take_facts(&mut self, first: PlatformFact) {
        self.take_fact(first);
        for _ in 1..EVENTS_PER_TURN_MAX {
            let Ok(fact) = self.subscription.facts.try_recv() else { return };
            self.take_fact(fact);
        }
    }

    fn take_fact(&mut self, fact: PlatformFact) {
        match &fact {
            PlatformFact::RevisionRemoved(name) | PlatformFact::RevisionGivenBack(name) => {
                tracing::info!(revision = %name, "revision removed");
                self.sources.forget(name);
                self.pasts.forget(name);
                self.callers.forget(name);
            }
            PlatformFact::ProblemsChanged { problems, .. } => {
                for problem in problems {
                    // The platform, which read it, warns; this is for readers of the autoscaler's log.
                    tracing::debug!(problem, "configuration refused; the last good one stays");
                }
            }
            PlatformFact::OwnershipChanged(ownership) => {
                self.ownership_changed(ownership);
                if let Some(shelf) = &mut self.shelf {
                    shelf.owns(ownership);
                }
            }
            PlatformFact::OrderEnded { order, outcome: OrderOutcome::NotOwner } => {
                tracing::info!(owner = %self.name, order = order.0, "an order was refused: its bucket has another owner by now");
                self.metrics.late_order();
            }
            PlatformFact::ConfigChanged(config) => self.record.configured(&config.record),
            PlatformFact::Synced => {
                self.is_synced = true;
                self.record.decide(&self.orchestrator.config().record);
                // A health check says so from this turn on, and a reader that heard it finds everything.
                self.sweep_at = self.clock.now();
                // By now it is known by which local times revisions go.
                self.read_wall_clock_at = self.sweep_at;
            }
            PlatformFact::RevisionChanged(_)
            | PlatformFact::PodsChanged { .. }
            | PlatformFact::PodFailed { .. }
            | PlatformFact::PodKilled { .. }
            | PlatformFact::ActivatorsChanged(_)
            | PlatformFact::RouteFound { .. }
            | PlatformFact::OrderEnded { .. } => {}
        }
        let may_appear = matches!(
            fact,
            PlatformFact::RevisionChanged(_) | PlatformFact::OwnershipChanged(_) | PlatformFact::Synced
        );
        self.tell(ControlEvent::Platform(fact));
        if may_appear {
            self.restore_histories();
        }
    }

    fn ownership_changed(&self, ownership: &Ownership) {
        let buckets: Vec<u16> = ownership.epochs.keys().map(|bucket| bucket.0).collect();
        if ownership.buckets > 1 {
            let owned = buckets.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            tracing::info!(owner = %self.name, buckets = owned, of = ownership.buckets, "owns buckets");
        }
        self.metrics.owns(&self.name, buckets.len());
    }

    fn take_words(&mut self, first: ControlEvent) {
        self.tell(first);
        for _ in 1..EVENTS_PER_TURN_MAX {
            let Ok(word) = self.words.try_recv() else { return };
            self.tell(word);
        }
    }

    fn tell(&mut self, mut event: ControlEvent) {
        let now = self.clock.now();
        let orchestrator = &self.orchestrator;
        self.callers.take_from(&mut event, |revision| orchestrator.decides_about(revision), now);
        self.note_import(&event, now);
        self.record.begin(|| RecordInput::Event(Box::new(event.clone())), now);
        // One event, then all that follows from it, before the next event: what a command says holds only for
        // the state in which it was made.
        self.orchestrator.handle(event, now);
        self.perform(now);
    }

    /// Does everything that is due by now: renewals, decisions, what readers are told.
    fn settle(&mut self) {
        let now = self.clock.now();
        if now >= self.read_wall_clock_at {
            self.read_wall_clock();
        }
        if let (Some(at), Some(every)) = (self.renew_at, self.subscription.renew_every)
            && at <= now
        {
            // By this task and no other, so that a lease says that decisions are made.
            self.subscription.seat.renew();
            self.renew_at = Some(now + every);
        }
        // More than one may be due after a stall; each advance does what one deadline asks for.
        while self.orchestrator.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.record.begin(|| RecordInput::Advance, now);
            self.orchestrator.advance(now);
            self.perform(now);
        }
        if self.record.takes_state(self.orchestrator.state_size(), now) {
            self.record.begin(|| RecordInput::State(Box::new(self.orchestrator.exact_state())), now);
        }
        self.record.hand_over_if_due(now);
        if self.publish_at() <= now {
            self.tell_readers(now);
        }
        // News wait for at most [`NEWS_WITHIN`], and so do the checks that came before they were published.
        if !self.orchestrator.has_news() {
            self.answer_checks();
        }
        self.write_histories(now);
    }

    /// When readers are to be told next. A thousand loads in a second change the same numbers a thousand
    /// times, so measurements wait for the next sweep.
    fn publish_at(&self) -> Timestamp {
        let news_at = self.published_at + NEWS_WITHIN;
        if self.orchestrator.has_news() { news_at.min(self.sweep_at) } else { self.sweep_at }
    }

    fn tell_readers(&mut self, now: Timestamp) {
        self.published_at = now;
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP_EVERY;
            self.orchestrator.sweep(now);
        }
        let control = self.orchestrator.snapshot(now);
        // Prometheus is not asked for a past that the platform's shelf may still give.
        let is_read = self.shelf.as_ref().is_none_or(ShelfKeeper::has_read);
        if self.is_synced && is_read && self.ask_pasts_at <= now {
            self.ask_pasts_at = now + PASTS_EVERY;
            self.pasts.ask(&control, self.orchestrator.config(), now);
        }
        self.metrics.problems(control.problems().len());
        let (owner, asked) = (self.name.clone(), self.sources.asked().clone());
        let callers = self.callers.callers().clone();
        self.snapshots.publish(Snapshot { owner, at: now, control, asked, callers });
    }

    /// Tells what hour of the day it is, and by which local time. A clock before 1970 tells nothing.
    fn read_wall_clock(&mut self) {
        self.read_wall_clock_at = self.clock.now() + WALL_CLOCK_EVERY;
        if let Ok(since_epoch) = wall_time().duration_since(UNIX_EPOCH) {
            self.tell(ControlEvent::WallClockRead { since_epoch });
            for zone in self.orchestrator.zones_in_use() {
                if let Some(offsets) = self.zones.offsets(&zone, since_epoch) {
                    self.tell(ControlEvent::ZoneRead { zone, offsets });
                }
            }
        }
    }

    /// Does all that the orchestrator says.
    fn perform(&mut self, now: Timestamp) {
        while let Some(command) = self.orchestrator.next_command() {
            self.record.command(&command);
            match command {
                ControlCommand::OpenLink { link, peer, address, priority } => {
                    let handle = self.links.open(link, peer, address, priority);
                    self.handles.insert(link, handle);
                }
                // The link's task ends with its handle. Words of it that are in the channel still carry its
                // number, by which the orchestrator knows that they are of a link that it has closed.
                ControlCommand::CloseLink { link } => drop(self.handles.remove(&link)),
                ControlCommand::Sync { activator, ownership, assignments } => {
                    self.with_outbox(activator, |outbox| outbox.sync(ownership, assignments));
                }
                ControlCommand::Assign { activator, assignment, urgency } => {
                    self.with_outbox(activator, |outbox| outbox.assign(assignment, urgency, now));
                }
                ControlCommand::Unassign { activator, revision, version, how } => {
                    self.with_outbox(activator, |outbox| outbox.unassign(&revision, version, how, now));
                }
                ControlCommand::ReleaseActivator { activator, buckets } => {
                    self.with_outbox(activator, |outbox| outbox.release(buckets));
                }
                ControlCommand::TellPod { pod, settings } => {
                    if let Some(LinkHandle::Pod(link)) = self.handles.get(&pod) {
                        link.tell(settings);
                    }
                }
                ControlCommand::AskMetrics { revision, round, settings, metrics } => {
                    let question = MetricQuestion { revision, settings, metrics, within: ANSWERS_WITHIN };
                    self.sources.ask(question, round, self.orchestrator.config());
                }
                ControlCommand::Order(order) => self.order(order),
                ControlCommand::Publish { revision, decision } => self.publish(&revision, &decision),
            }
        }
    }

    fn with_outbox(&self, link: LinkId, put: impl FnOnce(&OrderOutbox)) {
        if let Some(LinkHandle::Activator(link)) = self.handles.get(&link) {
            put(&link.outbox);
        }
    }

    fn order(&self, order: PlatformOrder) {
        match &order.what {
            Order::ScaleTo { revision, to, because, .. } => {
                let ready = because.inputs.map(|inputs| inputs.ready_pods.value());
                let reason = because.reasons.last().map(|reason| reason.text.to_string()).unwrap_or_default();
                tracing::info!(%revision, desired = to.value(), ready, reason, "scaling");
            }
            Order::Route { revision, routing, .. } => {
                let path = match routing {
                    Routing::Direct => "past the activators",
                    Routing::ThroughActivator => "through activators",
                };
                tracing::info!(%revision, path, "request path ordered");
            }
            Order::ReleasePod { pod, proof } => {
                self.metrics.released(*proof);
                if *proof == ReleaseProof::OutOfTime {
                    tracing::warn!(%pod, "the pod was released without the acknowledgement of every activator");
                }
            }
            Order::NotePodState { pod, state, detail } => {
                tracing::debug!(%pod, ?state, detail, "pod state");
            }
            Order::NotePodReach { pod, reach } => {
                let is_reachable = *reach == PodReach::Reachable;
                tracing::info!(%pod, is_reachable, "reach of a pod changed");
            }
            Order::NoteDrained { pod, .. } => tracing::debug!(%pod, "drained"),
            Order::ReleaseEntrance { .. } | Order::Tell { .. } => {}
        }
        self.subscription.seat.execute(order);
    }

    fn publish(&self, name: &RevisionName, decision: &Decision) {
        self.subscription.seat.decided(name, decision);
        self.metrics.decided(decision);
        for reason in &decision.reasons {
            tracing::debug!(revision = %name, stage = ?reason.stage, reason = reason.text.to_string(), "decision");
        }
    }

    /// Takes a client's call of the API. One that has gone away meanwhile loses its answer.
    fn take_call(&mut self, call: LoopCall) {
        match call {
            LoopCall::HealthCheck(reply) => self.checks.push(reply),
            LoopCall::Take(event, reply) => {
                self.tell(*event);
                let _ = reply.send(());
            }
        }
    }

    /// Says that the loop turns. A client that has gone away meanwhile loses its answer.
    fn answer_checks(&mut self) {
        let health = if self.is_synced { LoopHealth::Ready } else { LoopHealth::Turns };
        for reply in self.checks.drain(..) {
            let _ = reply.send(health);
        }
    }
}
