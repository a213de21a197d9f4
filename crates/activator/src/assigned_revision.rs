//! One revision as this activator holds it: its assignment, the requests that wait, the requests that run in
//! pods, and its load.
//!
//! Everything that changes per request is behind one short lock, never held across a wait. Requests on any
//! thread wait for a channel of their own; a request that frees a slot hands it to the next under the same
//! lock, so no wake-up is lost and no two requests compete.

mod grant;
mod handover;
mod reports;
mod retiring;
mod settings;
mod waits;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::counter::Counter;
use throttling::{Dispatch, LoadMeter, Origin, Throttler, Ticket};
use tokio::sync::oneshot;
use vocabulary::{Assignment, HeadSizeLimit, RevisionName, Timestamp, Version};

use crate::context::{Context, random_number};
use crate::held::HeldRequests;
use crate::metrics::RevisionMetrics;
use crate::stream_refusals::PodAcceptance;

pub(crate) use grant::{DirectRequest, Grant, LoadPart, QueuePlace, QueueTurn};
use handover::{Waiter, hand_out};
pub(crate) use reports::RevisionSecond;
use retiring::Retirement;
pub(crate) use retiring::RevisionRemainder;
pub(crate) use settings::{AssignedSettings, HopHeaders};
use waits::{HeldRefusals, Waits};

/// Why a revision does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueRefusal {
    /// As many wait here as may.
    RevisionQueueFull { limit: u32 },
    /// As many wait in the whole activator as may.
    ActivatorQueueFull { limit: u32 },
    /// No pod is ready, and the autoscaler says that a wait would not help.
    Held,
    /// The revision exists no more, or is not known here any more.
    Gone,
}

/// The pod for an unmeasured request, or why there is none now.
pub(crate) enum UnmeasuredPick {
    /// A ready pod takes the request.
    Pod(DirectRequest),
    /// Each ready pod has just failed to start a request. The first of them may be tried again at `until`.
    AllRest { until: Timestamp },
    /// No pod of the revision is ready.
    NoPod,
}

/// A revision that was assigned to this activator.
pub(crate) struct AssignedRevision {
    pub(crate) name: RevisionName,
    context: Arc<Context>,
    settings: ArcSwap<AssignedSettings>,
    state: Mutex<RevisionState>,
    metrics: RevisionMetrics,
    pub(crate) acceptance: PodAcceptance,
}

struct RevisionState {
    throttler: Throttler,
    waiters: BTreeMap<Ticket, oneshot::Sender<Dispatch>>,
    meter: LoadMeter,
    /// Whether it is among those that report this second.
    is_active: bool,
    /// The count that was reported last in this second, and when.
    reported_in_flight: u32,
    reported_at: Timestamp,
    /// Whether the revision is on the agenda of early reports.
    is_report_planned: bool,
    /// When it is on the agenda of paced queues.
    paced_at: Option<Timestamp>,
    /// This activator's part of the concurrency that metrics show.
    shown: f64,
    /// How many tasks still do what an assignment asks for before it is acted upon.
    upkeep: u32,
    waits: Waits,
    refusals: HeldRefusals,
    retirement: Retirement,
    is_gone: bool,
}

impl Waiter for oneshot::Sender<Dispatch> {
    fn hand(self, dispatch: Dispatch) -> Result<(), Dispatch> {
        self.send(dispatch)
    }
}

impl RevisionState {
    /// Whether a request that would have to wait is refused: the autoscaler holds the revision, and no pod is
    /// ready.
    fn refuses_waiting(&self) -> bool {
        self.waits == Waits::Refused && !self.throttler.has_ready_pod()
    }

    /// Why no request may join the queue now; `None` if requests may.
    fn refuses_all(&self) -> Option<QueueRefusal> {
        match (self.is_gone, self.refuses_waiting()) {
            (true, _) => Some(QueueRefusal::Gone),
            (false, true) => Some(QueueRefusal::Held),
            (false, false) => None,
        }
    }
}

impl AssignedRevision {
    /// A revision without pods, before its first assignment was applied.
    pub(crate) fn new(assignment: &Assignment, context: &Arc<Context>) -> Self {
        let depth = context.limits.waiting_per_revision;
        Self {
            name: assignment.revision.clone(),
            context: Arc::clone(context),
            settings: ArcSwap::from_pointee(AssignedSettings::of(assignment)),
            state: Mutex::new(RevisionState {
                throttler: Throttler::new(depth, random_number()),
                waiters: BTreeMap::new(),
                meter: LoadMeter::new(context.clock.now()),
                is_active: false,
                reported_in_flight: 0,
                reported_at: Timestamp::ZERO,
                is_report_planned: false,
                paced_at: None,
                shown: 0.0,
                upkeep: 0,
                waits: Waits::under(assignment.hold.as_deref()),
                refusals: HeldRefusals::None,
                retirement: Retirement::default(),
                is_gone: false,
            }),
            metrics: context.metrics.of_revision(&assignment.revision),
            acceptance: PodAcceptance::default(),
        }
    }

    /// The settings of the assignment in force.
    pub(crate) fn settings(&self) -> Arc<AssignedSettings> {
        self.settings.load_full()
    }

    /// How large the head of a request for it may be.
    pub(crate) fn head_size(&self) -> HeadSizeLimit {
        self.settings.load().head_size
    }

    /// Takes over a newer assignment; from the return on, pods that it does not name or names as draining are
    /// picked no more. Returns the addresses to which no idle connection may be kept.
    pub(crate) fn apply(self: &Arc<Self>, assignment: &Assignment) -> Vec<SocketAddr> {
        let now = self.context.clock.now();
        let new = AssignedSettings::of(assignment);
        let mut state = self.state.lock();
        // Under the lock, and before the settings are shown: from here on no request is handed a pod that has
        // left, and a request that reads the new settings finds pods that fit them.
        state.throttler.set_pods(assignment.container_concurrency, &assignment.pods);
        let old = self.settings.load();
        let lost: Vec<SocketAddr> = old.kept.difference(&new.kept).copied().collect();
        state.waits = Waits::under(new.hold.as_deref());
        state.retirement.assigned(assignment.standing, assignment.version);
        self.settings.store(Arc::new(new));
        self.pump(&mut state, now);
        if state.refuses_waiting() {
            // A dropped sender tells its waiter, which leaves the queue by itself.
            state.waiters.clear();
        }
        lost
    }

    /// Something is done for the present assignment, before which it is not acted upon: connections are
    /// closed, ports opened or closed.
    pub(crate) fn upkeep_begins(&self) {
        self.state.lock().upkeep += 1;
    }

    /// That is done. Returns the version that can be acknowledged now, if nothing else is under way.
    pub(crate) fn upkeep_ended(&self) -> Option<Version> {
        let mut state = self.state.lock();
        state.upkeep = state.upkeep.saturating_sub(1);
        (state.upkeep == 0).then(|| self.settings.load().version)
    }

    /// The version that is acted upon, if nothing is left to do for it.
    pub(crate) fn acted_upon(&self) -> Option<Version> {
        let state = self.state.lock();
        (state.upkeep == 0).then(|| self.settings.load().version)
    }

    /// The revision exists no more: what waits is refused.
    pub(crate) fn remove(&self) {
        let mut state = self.state.lock();
        state.is_gone = true;
        // A dropped sender tells its waiter.
        state.waiters.clear();
    }

    /// A request that goes through the queue arrived.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<(LoadPart, QueueTurn), QueueRefusal> {
        let arrive = |throttler: &mut Throttler, now| {
            throttler.arrive(now).map_err(|full| QueueRefusal::RevisionQueueFull { limit: full.depth })
        };
        self.join(arrive, &self.metrics.requests)
    }

    /// A request that went past the queue was not started by its pod: it joins those that are tried again.
    pub(crate) fn rejoin(
        self: &Arc<Self>,
        arrived: Timestamp,
    ) -> Result<(LoadPart, QueueTurn), QueueRefusal> {
        self.join(|throttler, _| Ok(throttler.rejoin(arrived)), &self.metrics.retries)
    }

    /// A request that is part of the load already, but held no place while it rested, waits again.
    pub(crate) fn wait_again(self: &Arc<Self>, arrived: Timestamp) -> Result<QueueTurn, QueueRefusal> {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        if state.is_gone {
            return Err(QueueRefusal::Gone);
        }
        let ticket = state.throttler.rejoin(arrived);
        self.turn(&mut state, ticket, now)
    }

    /// A request takes the place in the queue that `queue` gives it, is part of the load from now on, and
    /// counts in `joined`.
    fn join(
        self: &Arc<Self>,
        queue: impl FnOnce(&mut Throttler, Timestamp) -> Result<Ticket, QueueRefusal>,
        joined: &Counter,
    ) -> Result<(LoadPart, QueueTurn), QueueRefusal> {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        // Before the throttler hears of it: a place that was taken and given back would still count as an
        // arrival.
        if let Some(refused) = state.refuses_all() {
            if refused == QueueRefusal::Held {
                self.activate(&mut state);
                state.refusals = HeldRefusals::Some;
            }
            return Err(refused);
        }
        let ticket = queue(&mut state.throttler, now)?;
        self.activate(&mut state);
        state.meter.arrived(Origin::Direct, now);
        // From here on the guard counts the request out again, whatever happens.
        let counted = LoadPart::new(self);
        let turn = self.turn(&mut state, ticket, now);
        self.report_growth(&mut state, now);
        drop(state);
        joined.inc();
        Ok((counted, turn?))
    }

    /// Picks a ready pod past queue and slots, if there is one.
    pub(crate) fn pick_direct(self: &Arc<Self>) -> Option<DirectRequest> {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        if state.is_gone {
            return None;
        }
        let pick = state.throttler.pick_direct(now)?;
        drop(state);
        self.metrics.direct_requests.inc();
        Some(DirectRequest::new(self, pick))
    }

    /// Picks a pod for an unmeasured request: past queue and slots, if a pod is ready. The request joins
    /// neither queue nor load, so the autoscaler does not hear of it and starts no pod for it.
    pub(crate) fn pick_unmeasured(self: &Arc<Self>) -> Result<UnmeasuredPick, QueueRefusal> {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        if let Some(refused) = state.refuses_all() {
            return Err(refused);
        }
        if let Some(pick) = state.throttler.pick_direct(now) {
            drop(state);
            self.metrics.direct_requests.inc();
            return Ok(UnmeasuredPick::Pod(DirectRequest::new(self, pick)));
        }
        Ok(match state.throttler.next_trial(now) {
            Some(until) => UnmeasuredPick::AllRest { until },
            None => UnmeasuredPick::NoPod,
        })
    }

    /// Lets go what time alone has freed. Called when the agenda says so.
    pub(crate) fn wake(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.paced_at = None;
        self.pump(&mut state, self.context.clock.now());
    }

    /// The requests that wait here or run in its pods.
    pub(crate) fn held(&self) -> HeldRequests {
        let requests = self.state.lock().throttler.held();
        HeldRequests { revision: self.name.clone(), requests, limit: self.settings.load().timeouts.request }
    }

    /// Why no request may wait, as a text for clients.
    pub(crate) fn held_because(&self) -> String {
        self.settings.load().hold.clone().unwrap_or_else(|| self.waits_for())
    }

    /// A request that arrived then was answered with this status, and the answer is over.
    pub(crate) fn answered(&self, status: StatusCode, arrived: Timestamp) {
        self.metrics.answered(status, self.now().saturating_since(arrived));
    }

    /// Counts an unmeasured request that its pod did not start and that goes to another pod.
    pub(crate) fn repeats_unmeasured(&self) {
        self.metrics.retries.inc();
    }

    /// Counts an unmeasured request that was answered here because no pod was ready.
    pub(crate) fn answered_health_check(&self) {
        self.metrics.answered_health_checks.inc();
    }

    /// The reason why requests wait, as a text for clients.
    pub(crate) fn waits_for(&self) -> String {
        let settings = self.settings.load();
        if self.state.lock().throttler.has_ready_pod() {
            "every slot of its ready pods is taken".to_owned()
        } else if settings.waiting_for.is_empty() {
            "no pod is ready".to_owned()
        } else {
            settings.waiting_for.clone()
        }
    }

    /// Whether any pod is ready, with or without a free slot.
    pub(crate) fn has_ready_pod(&self) -> bool {
        self.state.lock().throttler.has_ready_pod()
    }

    /// The present time of the activator's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// Whether idle connections to that address may be kept.
    pub(crate) fn keeps(&self, address: SocketAddr) -> bool {
        self.settings.load().kept.contains(&address)
    }

    /// Queues the request of a ticket, and dispatches every request that may go.
    fn turn(
        self: &Arc<Self>,
        state: &mut MutexGuard<'_, RevisionState>,
        ticket: Ticket,
        now: Timestamp,
    ) -> Result<QueueTurn, QueueRefusal> {
        // A request's way through the queue, and the owner of each part:
        //
        //     ticket and sender here, receiver in the request's task
        //       pump() sends a dispatch           --> the task has a slot (Grant), which ends with it
        //       the task goes away first          --> its place's drop takes both out again
        //       the revision goes, or is held     --> the sender is dropped, which the task hears
        //
        // All three happen under the revision's lock, so of a slot that is handed out in the very instant in
        // which the task goes away exactly one of the two knows.
        let (sender, mut receiver) = oneshot::channel();
        state.waiters.insert(ticket, sender);
        self.pump(state, now);
        // Nearly always: a slot is free. Then there is no place to be had, and no other task to be woken.
        if let Ok(dispatch) = receiver.try_recv() {
            return Ok(QueueTurn::Now(Grant::new(self, dispatch)));
        }
        let Some(place) = self.context.take_waiting_place() else {
            // The revision would take it, but the activator as a whole is full. It leaves without a trace.
            state.waiters.remove(&ticket);
            state.throttler.abandon(ticket);
            return Err(QueueRefusal::ActivatorQueueFull { limit: self.context.limits.waiting_in_all });
        };
        Ok(QueueTurn::Later(QueuePlace::new(self, (ticket, now), receiver, place)))
    }

    /// Hands out what can be handed out, and sees to it that time wakes the rest.
    fn pump(self: &Arc<Self>, state: &mut RevisionState, now: Timestamp) {
        hand_out(&mut state.throttler, &mut state.waiters, now);
        // One entry on the agenda for each revision, the earliest: `wake` finds out what else is due.
        if let Some(at) = state.throttler.next_deadline(now)
            && state.paced_at.is_none_or(|paced_at| at < paced_at)
        {
            state.paced_at = Some(at);
            self.context.pacing.add(at, Arc::clone(self));
        }
    }
}

/// Activators of one process share the series, which is their sum.
impl Drop for AssignedRevision {
    fn drop(&mut self) {
        self.metrics.concurrency.dec_by(self.state.get_mut().shown);
    }
}
