//! One revision as the threads of an activator share it.
//!
//! What becomes of requests is decided by a value ([`throttling::ActivatorRevision`]). Here is what the value
//! cannot have: one short lock around it, never held across a wait; a channel for each request that waits, on
//! whatever thread; the settings that requests read without the lock; metrics. A request takes the lock for
//! its arrival and for its end. The commands of each event are carried out under the same lock, so no wake-up
//! is lost and no two requests compete for a slot.
//!
//! | path | locks | allocations |
//! |---|---|---|
//! | a request finds a slot | this one | none |
//! | a request has to wait | this one | its channel, its place among those that wait |
//! | a request ends | this one | none |
//! | there is news for the owner, at most every 10 ms | this one, then the agenda | an entry of the agenda |

mod handle;
mod queue;
mod seat;
mod settings;
mod turn;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use dataplane::RefusalReason;
use http::StatusCode;
use parking_lot::Mutex;
use throttling::{ActivatorRevision, DirectPick, RequestEvent, RequestRefusal, Ticket, UnmeasuredChoice};
use tokio::sync::oneshot;
use vocabulary::{Assignment, HeadSizeLimit, RevisionName, Timestamp};

use crate::agenda::AgendaEntry;
use crate::caller_log::CallerLog;
use crate::context::Context;
use crate::metrics::RevisionMetrics;
use crate::stream_refusals::PodAcceptance;
use crate::waiting_page::KeptPlace;
pub(crate) use handle::RevisionHandle;
use queue::{RevisionQueue, WaitAnswer};
pub(crate) use seat::RequestSeat;
pub(crate) use settings::{AssignedSettings, HopHeaders};
use turn::{QueuedRequest, RequestTurn};

/// A revision that was assigned to this activator.
pub(crate) struct SharedRevision {
    pub(crate) name: RevisionName,
    context: Arc<Context>,
    settings: ArcSwap<AssignedSettings>,
    state: Mutex<SharedState>,
    metrics: RevisionMetrics,
    pub(crate) acceptance: PodAcceptance,
    /// The place in the queue that is kept for browsers, which are shown a page meanwhile.
    pub(crate) kept_place: KeptPlace,
    /// Who sent its requests lately.
    pub(crate) callers: CallerLog,
}

struct SharedState {
    queue: RevisionQueue<oneshot::Sender<WaitAnswer>>,
    /// The entry of the revision on the agenda.
    planned: Option<AgendaEntry>,
    /// This activator's part of the concurrency that metrics show.
    concurrency: f64,
    /// Whether metrics count the revision among those that are known.
    is_counted: bool,
}

impl SharedRevision {
    fn new(revision: ActivatorRevision, context: &Arc<Context>) -> Self {
        let assignment = revision.assignment();
        context.metrics.assigned_revisions.inc();
        Self {
            name: assignment.revision.clone(),
            context: Arc::clone(context),
            settings: ArcSwap::from_pointee(AssignedSettings::of(assignment)),
            metrics: context.metrics.of_revision(&assignment.revision),
            state: Mutex::new(SharedState {
                queue: RevisionQueue::new(revision),
                planned: None,
                concurrency: 0.0,
                is_counted: true,
            }),
            acceptance: PodAcceptance::default(),
            kept_place: KeptPlace::default(),
            callers: CallerLog::default(),
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

    /// Picks a ready pod past queue and slots, if there is one. The caller makes a [`RequestSeat::direct`] of
    /// the pick at once.
    pub(crate) fn pick_direct(&self) -> Option<DirectPick> {
        let now = self.now();
        let pick = self.state.lock().queue.revision.pick_direct(now);
        if pick.is_some() {
            self.metrics.direct_requests.inc();
        }
        pick
    }

    /// Picks a pod for an unmeasured request, as [`SharedRevision::pick_direct`] does. The request joins
    /// neither queue nor load, so the autoscaler does not hear of it and starts no pod for it.
    pub(crate) fn pick_unmeasured(&self) -> Result<UnmeasuredChoice, RequestRefusal> {
        let now = self.now();
        let choice = self.state.lock().queue.revision.pick_unmeasured(now);
        if matches!(choice, Ok(UnmeasuredChoice::Pod(_))) {
            self.metrics.direct_requests.inc();
        }
        choice
    }

    /// The requests that wait here or run in its pods.
    pub(crate) fn held(&self) -> u32 {
        self.state.lock().queue.revision.held()
    }

    /// Why no request may wait, as a text for clients.
    pub(crate) fn held_because(&self) -> String {
        self.settings.load().hold.clone().unwrap_or_else(|| self.waits_for())
    }

    /// The number of requests that may wait in the whole activator.
    pub(crate) fn waiting_max(&self) -> u32 {
        self.context.limits.waiting_in_all
    }

    /// A request was answered with this status, and so long after its arrival the answer is over.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.metrics.answered(status, took);
    }

    /// Counts an unmeasured request that its pod did not start and that goes to another pod.
    pub(crate) fn repeats_unmeasured(&self) {
        self.metrics.retries.inc();
    }

    /// Counts an unmeasured request that was answered here because no pod was ready.
    pub(crate) fn answered_health_check(&self) {
        self.metrics.answered_health_checks.inc();
    }

    /// Counts a browser's request that was answered with a page while no pod took it.
    pub(crate) fn showed_page(&self) {
        self.context.metrics.count_refusal(RefusalReason::Starting);
    }

    /// The reason why requests wait, as a text for clients.
    pub(crate) fn waits_for(&self) -> String {
        self.state.lock().queue.revision.waits_for().to_owned()
    }

    /// Whether any pod is ready, with or without a free slot.
    pub(crate) fn has_ready_pod(&self) -> bool {
        self.state.lock().queue.revision.has_ready_pod()
    }

    /// Whether the present assignment names the port. A revision that is known no more has none.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.settings.load().ports.contains(&port) && !self.state.lock().queue.revision.is_gone()
    }

    /// The present time of the activator's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// Whether idle connections to that address may be kept.
    pub(crate) fn keeps(&self, address: SocketAddr) -> bool {
        self.settings.load().kept.contains(&address)
    }

    /// An entry of the revision on the agenda was taken. Since then a request may have brought another one.
    pub(crate) fn note_due(&self) {
        let mut state = self.state.lock();
        state.planned = state.planned.filter(|&entry| self.context.agenda.holds(entry));
    }

    /// Lets the thread of the links do something with the revision.
    fn with<T>(&self, act: impl FnOnce(&mut ActivatorRevision) -> T) -> T {
        let now = self.now();
        let mut state = self.state.lock();
        let done = act(&mut state.queue.revision);
        // Before the commands are carried out: a client that is told of the end of the revision finds it
        // counted out.
        if state.queue.revision.is_gone() && std::mem::take(&mut state.is_counted) {
            self.context.metrics.assigned_revisions.dec();
        }
        state.queue.carry_out(now);
        self.plan(&mut state);
        done
    }

    /// Takes over a newer assignment; from the return on, pods that it does not name or names as draining are
    /// picked no more.
    fn assign(&self, assignment: &Arc<Assignment>, now: Timestamp) {
        // Not under the lock, for which requests wait: of a thousand pods this is work.
        let settings = Arc::new(AssignedSettings::of(assignment));
        let mut state = self.state.lock();
        state.queue.revision.assign(assignment, now);
        // Before the commands are carried out: a request that is granted a pod finds its name, and one that
        // reads the new settings finds pods that fit them.
        self.settings.store(settings);
        state.queue.carry_out(now);
        self.plan(&mut state);
    }

    /// A request joins the queue, under a ticket that is drawn for it.
    fn join(&self, event: impl FnOnce(Ticket) -> RequestEvent) -> Result<RequestTurn, RequestRefusal> {
        let now = self.now();
        let mut state = self.state.lock();
        let ticket = state.queue.revision.draw_ticket();
        self.turn(&mut state, ticket, event(ticket), now)
    }

    /// A request joins the queue again, under the ticket that it had.
    fn join_again(&self, ticket: Ticket, event: RequestEvent) -> Result<RequestTurn, RequestRefusal> {
        let now = self.now();
        self.turn(&mut self.state.lock(), ticket, event, now)
    }

    fn turn(
        &self,
        state: &mut SharedState,
        ticket: Ticket,
        event: RequestEvent,
        now: Timestamp,
    ) -> Result<RequestTurn, RequestRefusal> {
        let mut ends = None;
        // Nearly always a slot is free. Then there is no place to be had, and no channel is made.
        let answer = state.queue.join(ticket, event, now, || {
            let place = self.context.take_waiting_place()?;
            let (sender, receiver) = oneshot::channel();
            ends = Some((receiver, place));
            Some(sender)
        });
        self.plan(state);
        if let Some(answer) = answer {
            return answer.map(RequestTurn::Granted);
        }
        let (receiver, place) = ends.expect("a request without an answer was made to wait");
        Ok(RequestTurn::Waits(QueuedRequest { ticket, since: now, receiver, _place: place }))
    }

    /// Something happened to a request that does not wait.
    fn tell(&self, event: RequestEvent) {
        self.tell_at(event, self.now());
    }

    fn tell_at(&self, event: RequestEvent, now: Timestamp) {
        let mut state = self.state.lock();
        state.queue.handle(event, now);
        self.plan(&mut state);
    }

    /// A request leaves the queue.
    fn leave(&self, mut waiting: QueuedRequest) {
        let now = self.now();
        let mut state = self.state.lock();
        // Under the lock: an answer may come in this instant, and a slot would be lost with it.
        let unseen = waiting.receiver.try_recv().ok();
        state.queue.leave(waiting.ticket, unseen, now);
        self.plan(&mut state);
    }

    /// Sees to it that the thread of the links looks at the revision when there is news, or when time has
    /// freed something.
    fn plan(&self, state: &mut SharedState) {
        let at = if state.queue.take_has_news() {
            Some(Timestamp::ZERO)
        } else {
            state.queue.revision.next_deadline()
        };
        // That look finds out when the next one is due, so there is one entry on the agenda, the earliest.
        if let Some(at) = at.filter(|&at| state.planned.is_none_or(|planned| at < planned.at())) {
            state.planned = Some(self.context.agenda.add(at, &self.name, state.planned));
        }
    }

    /// Shows the concurrency of the last second.
    fn show(&self, concurrency: f64) {
        let mut state = self.state.lock();
        let concurrency = in_steps(concurrency);
        self.metrics.concurrency.inc_by(concurrency - std::mem::replace(&mut state.concurrency, concurrency));
    }
}

/// Activators of one process share the series, which are their sums: of an activator that ends nothing is
/// left.
impl Drop for SharedRevision {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.metrics.concurrency.dec_by(state.concurrency);
        if state.is_counted {
            self.context.metrics.assigned_revisions.dec();
        }
    }
}

/// In steps of 1/1024, so that sums and differences are exact and nothing is left of what has ended.
fn in_steps(concurrency: f64) -> f64 {
    (concurrency * 1024.0).round() / 1024.0
}
