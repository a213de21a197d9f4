//! One revision as one activator holds it: the requests that wait, the slots of its pods, its load, and
//! whether it is this activator's to serve.
//!
//! Facts go in: requests by [`ActivatorRevision::handle`], assignments by [`ActivatorRevision::assign`], time
//! by [`ActivatorRevision::advance`]. Drain [`ActivatorRevision::next_command`] after each, before the next.
//!
//! ```text
//!            Arrived, Rejoined                   Grant
//!   request ───────────────────► queue ───────────────────────► pod ──► Ended
//!                │                 ▲  │                          │
//!                ▼                 │  └─► Refuse, GaveUp         │ RestBegan
//!              Refuse              ├──── NotStarted, FoundNoRoom ┤
//!                                  └──── RestEnded ── rest ◄─────┘
//! ```
//!
//! A request is part of the load from `Arrived` to `Ended`, `GaveUp`, `RestGivenUp` or `Refuse`, so every
//! request in the queue is. Nothing that waits is refused but by the end of the revision, a named limit, or a
//! hold that its assignment carries while no pod is ready.
//!
//! What a shell that runs requests on several threads does with it, so that a request stays cheap: it keeps
//! each revision behind a lock of its own, never held across a wait, and looks it up without a lock over all.
//! A request takes the lock twice: for its arrival, and for its end. When a slot is free the grant is the
//! only command of an arrival, so neither a channel nor a waker is made; those belong to
//! [`RevisionCommand::Wait`]. The queue of commands keeps its memory, so no event allocates. No event reads a
//! clock or another lock: when a revision becomes active it need not know which second is open, because the
//! idle part of that second is added when it is closed ([`ActivatorRevision::close_seconds`]). The thread of
//! the links is woken by [`RevisionCommand::TakeNews`] alone, which comes once for all news until they are
//! taken: of a busy revision every 10 ms at most.

mod early_report;
mod questions;
mod requests;
mod retirement;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use vocabulary::{Assignment, Load, PodState, Standing, Timestamp, Version};

use crate::load_meter::{LoadMeter, Origin};
use crate::throttler::{DirectPick, Dispatch, Throttler};
use crate::ticket::Ticket;
use early_report::EarlyReport;
pub use requests::{RequestEvent, RequestRefusal, RevisionCommand, UnmeasuredChoice};
pub(crate) use retirement::RetiredRemainder;
use retirement::Retirement;

/// What a revision is made with, beside its assignment.
#[derive(Clone, Copy, Debug)]
pub struct RevisionSeed {
    /// The number of requests that may wait.
    pub depth: u32,
    /// The number from which its random choices follow.
    pub seed: u64,
    /// Whether the activator is on its way out.
    pub is_leaving: bool,
}

/// The load of a revision in each of some seconds, and how long its oldest request has waited at their end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedSecond {
    /// What was measured, with what waits at the end.
    pub load: Load,
    /// Zero if no request waits.
    pub oldest_wait: Duration,
}

/// What the thread of the links has not heard of a revision yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevisionNews {
    /// The revision has something to report in this second, and had not before.
    pub is_active: bool,
    /// The time of an early report has come.
    pub is_report_due: bool,
    /// The last request of a retired revision has ended.
    pub is_emptied: bool,
}

/// Since when a revision has something to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    /// Since this time; no second of it was closed yet.
    Begun(Timestamp),
    Measured,
}

/// A revision that was assigned to an activator.
#[derive(Clone, Debug)]
pub struct ActivatorRevision {
    assignment: Arc<Assignment>,
    throttler: Throttler,
    meter: LoadMeter,
    activity: Activity,
    has_refused_under_hold: bool,
    report: EarlyReport,
    retirement: Retirement,
    paced_at: Option<Timestamp>,
    is_leaving: bool,
    is_gone: bool,
    news: RevisionNews,
    commands: VecDeque<RevisionCommand>,
}

impl ActivatorRevision {
    /// A revision without requests, with the pods of its first assignment.
    pub fn new(assignment: &Arc<Assignment>, seed: RevisionSeed, now: Timestamp) -> Self {
        let mut throttler = Throttler::new(seed.depth, seed.seed);
        throttler.set_pods(assignment.container_concurrency, &assignment.pods);
        let mut retirement = Retirement::default();
        retirement.assigned(assignment.standing, assignment.version);
        Self {
            assignment: Arc::clone(assignment),
            throttler,
            meter: LoadMeter::new(now),
            activity: Activity::Idle,
            has_refused_under_hold: false,
            report: EarlyReport::default(),
            retirement,
            paced_at: None,
            is_leaving: seed.is_leaving,
            is_gone: false,
            news: RevisionNews::default(),
            commands: VecDeque::new(),
        }
    }

    /// A number for a request, by which its events name it.
    pub fn draw_ticket(&mut self) -> Ticket {
        self.throttler.draw_ticket()
    }

    /// Something happened to a request.
    pub fn handle(&mut self, event: RequestEvent, now: Timestamp) {
        match event {
            RequestEvent::Arrived { ticket } => self.arrived(ticket, now),
            RequestEvent::Rejoined { ticket, arrived } => {
                if self.takes(ticket, now) {
                    self.throttler.rejoin_as(ticket, arrived);
                    self.joined(ticket, now);
                }
            }
            RequestEvent::RestEnded { ticket, arrived } => {
                self.throttler.rejoin_as(ticket, arrived);
                self.waits_again(ticket, now);
            }
            RequestEvent::RestGivenUp => self.load_ended(now),
            RequestEvent::PlaceRefused { ticket } => {
                self.refuse_waiting(ticket, RequestRefusal::ActivatorQueueFull, now);
            }
            RequestEvent::GaveUp { ticket } => {
                if self.throttler.abandon(ticket) {
                    self.load_ended(now);
                }
            }
            RequestEvent::Started { dispatch } => self.started(&dispatch, now),
            RequestEvent::NotStarted { dispatch } => {
                self.throttler.requeue(&dispatch, now);
                self.waits_again(dispatch.ticket, now);
            }
            RequestEvent::FoundNoRoom { dispatch } => {
                self.throttler.requeue_for_want_of_room(&dispatch, now);
                self.waits_again(dispatch.ticket, now);
            }
            RequestEvent::RestBegan { dispatch } => {
                self.throttler.note_not_started(dispatch.pod, now);
                self.throttler.finish(dispatch.pod);
                self.pump(now);
            }
            RequestEvent::Ended { dispatch } => {
                self.throttler.finish(dispatch.pod);
                self.pump(now);
                self.load_ended(now);
            }
            RequestEvent::DirectStarted { pick } => {
                self.throttler.note_started(pick.pod);
                self.pump(now);
            }
            RequestEvent::DirectNotStarted { pick } => {
                self.throttler.note_not_started(pick.pod, now);
                // Without a better pod, those that rest are tried sooner.
                self.pump(now);
            }
            RequestEvent::DirectEnded { pick } => {
                self.throttler.finish_direct(pick.pod);
                self.note_if_emptied();
            }
        }
    }

    /// Takes over an assignment, which the caller knows to be newer. From the return on, pods that it does
    /// not name or names as draining are picked no more.
    pub fn assign(&mut self, assignment: &Arc<Assignment>, now: Timestamp) {
        self.throttler.set_pods(assignment.container_concurrency, &assignment.pods);
        self.retirement.assigned(assignment.standing, assignment.version);
        self.assignment = Arc::clone(assignment);
        self.pump(now);
        if self.refuses_waiting() {
            self.refuse_all(RequestRefusal::Held, now);
        }
    }

    /// The owner has named the revision again, in the version that is in force.
    pub(crate) fn repeat(&mut self, standing: Standing) {
        self.retirement.assigned(standing, self.assignment.version);
    }

    /// The owner has told all of its revisions and not named this one: other activators serve it, if any
    /// does.
    pub(crate) fn retire(&mut self) {
        self.retirement.standing = Standing::Retired;
    }

    /// The owner has said, in that version, that the revision may be forgotten once it is empty.
    pub(crate) fn may_be_forgotten(&mut self, version: Version) {
        self.retirement.forgettable(version);
    }

    /// The revision exists no more: what waits is refused.
    pub(crate) fn remove(&mut self, now: Timestamp) {
        self.is_gone = true;
        self.refuse_all(RequestRefusal::Gone, now);
    }

    /// The activator is on its way out: its owner hears at once of requests that end here, because it hears
    /// at once of those that begin at another activator.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Time has passed: lets go what it has freed, and says so if a report is due.
    pub fn advance(&mut self, now: Timestamp) {
        self.pump(now);
        self.tell_when_due(now);
    }

    /// The next thing to do.
    pub fn next_command(&mut self) -> Option<RevisionCommand> {
        self.commands.pop_front()
    }

    /// When [`ActivatorRevision::advance`] is to be called next.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.paced_at.into_iter().chain(self.report.due()).min()
    }

    /// Picks a ready pod past queue and slots. Ends with [`RequestEvent::DirectEnded`].
    pub fn pick_direct(&mut self, now: Timestamp) -> Option<DirectPick> {
        if self.is_gone {
            return None;
        }
        self.throttler.pick_direct(now)
    }

    /// Picks a pod for a request that is not measured: past queue and slots, if a pod is ready. The request
    /// joins neither queue nor load, so the owner does not hear of it.
    pub fn pick_unmeasured(&mut self, now: Timestamp) -> Result<UnmeasuredChoice, RequestRefusal> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        if let Some(pick) = self.throttler.pick_direct(now) {
            return Ok(UnmeasuredChoice::Pod(pick));
        }
        let until = self.throttler.next_trial(now);
        Ok(until.map_or(UnmeasuredChoice::NoPod, |until| UnmeasuredChoice::AllRest { until }))
    }

    /// What is left of a retired revision. From the answer `Forgotten` on it refuses every request.
    pub(crate) fn remainder(&mut self) -> RetiredRemainder {
        match (self.retirement.standing, self.holds_nothing(), self.retirement.forget) {
            (Standing::Assigned, _, _) | (Standing::Retired, false, _) => RetiredRemainder::Something,
            (Standing::Retired, true, None) => RetiredRemainder::Nothing,
            (Standing::Retired, true, Some(version)) => {
                self.is_gone = true;
                RetiredRemainder::Forgotten(version)
            }
        }
    }

    fn arrived(&mut self, ticket: Ticket, now: Timestamp) {
        // Asked before the throttler hears of it: a place that was taken and given back would still count as
        // an arrival.
        if !self.takes(ticket, now) {
            return;
        }
        match self.throttler.arrive_as(ticket, now) {
            Ok(()) => self.joined(ticket, now),
            Err(full) => self.refuse(ticket, RequestRefusal::RevisionQueueFull { limit: full.depth }),
        }
    }

    /// Whether a request may join the queue; if not, it is refused.
    fn takes(&mut self, ticket: Ticket, now: Timestamp) -> bool {
        let Some(refusal) = self.refusal() else { return true };
        if refusal == RequestRefusal::Held {
            self.activate(now);
            self.has_refused_under_hold = true;
        }
        self.refuse(ticket, refusal);
        false
    }

    /// A request is in the queue, and part of the load from now on.
    fn joined(&mut self, ticket: Ticket, now: Timestamp) {
        self.activate(now);
        self.meter.arrived(Origin::Direct, now);
        self.turn(ticket, now);
        let held = self.meter.present().in_flight;
        if held > self.report.reported() {
            self.report.plan(now);
            self.tell_when_due(now);
        } else if held == self.report.reported() {
            self.report.forget_fall();
        }
    }

    /// A request that was part of the load before is in the queue again. The revision may have gone, or be
    /// held, since.
    fn waits_again(&mut self, ticket: Ticket, now: Timestamp) {
        match self.refusal() {
            Some(refusal) => {
                self.refuse_waiting(ticket, refusal, now);
                self.pump(now);
            }
            None => self.turn(ticket, now),
        }
    }

    fn started(&mut self, dispatch: &Dispatch, now: Timestamp) {
        self.throttler.note_started(dispatch.pod);
        if dispatch.slice == vocabulary::Slice::Outside {
            self.throttler.note_admitted_outside(now);
        }
        self.pump(now);
    }

    /// Grants what can be granted; the request of this ticket has to wait if it was not among that.
    fn turn(&mut self, ticket: Ticket, now: Timestamp) {
        self.pump(now);
        if self.throttler.is_waiting(ticket) {
            self.commands.push_back(RevisionCommand::Wait { ticket });
        }
    }

    fn pump(&mut self, now: Timestamp) {
        while let Some(dispatch) = self.throttler.next_dispatch(now) {
            self.commands.push_back(RevisionCommand::Grant { dispatch });
        }
        self.paced_at = self.throttler.next_deadline(now);
    }

    /// A request is no part of the load any more.
    fn load_ended(&mut self, now: Timestamp) {
        self.meter.finished(Origin::Direct, now);
        if self.meter.present().in_flight < self.report.reported() {
            // What ends at one activator may go on at another, whose reports add up with the last one of this
            // activator. While this one leaves, that is so for most.
            if self.is_leaving {
                self.report.plan(now);
            } else {
                self.report.plan_fall(now);
            }
            self.tell_when_due(now);
        }
        self.note_if_emptied();
    }

    fn refuse(&mut self, ticket: Ticket, refusal: RequestRefusal) {
        self.commands.push_back(RevisionCommand::Refuse { ticket, refusal });
    }

    fn refuse_waiting(&mut self, ticket: Ticket, refusal: RequestRefusal, now: Timestamp) {
        if self.throttler.abandon(ticket) {
            self.refuse(ticket, refusal);
            self.load_ended(now);
        }
    }

    fn refuse_all(&mut self, refusal: RequestRefusal, now: Timestamp) {
        for ticket in self.throttler.take_waiting() {
            self.refuse(ticket, refusal);
            self.load_ended(now);
        }
        self.paced_at = None;
    }

    /// The revision has something to report from now on.
    fn activate(&mut self, now: Timestamp) {
        if self.activity == Activity::Idle {
            self.activity = Activity::Begun(now);
            self.meter = LoadMeter::new(now);
            // The report from before the revision fell idle is over: a request that is held now is news.
            self.report.closed_with(0);
            self.tell(RevisionNews { is_active: true, ..self.news });
        }
    }

    fn tell_when_due(&mut self, now: Timestamp) {
        if self.report.take_due(now) {
            self.tell(RevisionNews { is_report_due: true, ..self.news });
        }
    }

    /// If the last request of a retired revision has ended, the thread of the links looks at the remainder.
    fn note_if_emptied(&mut self) {
        let is_retired = self.retirement.standing == Standing::Retired;
        if is_retired && !self.retirement.is_noted && self.holds_nothing() {
            self.retirement.is_noted = true;
            self.tell(RevisionNews { is_emptied: true, ..self.news });
        }
    }

    fn tell(&mut self, news: RevisionNews) {
        if self.news == RevisionNews::default() {
            self.commands.push_back(RevisionCommand::TakeNews);
        }
        self.news = news;
    }

    /// Every request is part of the load, or holds a place in a pod.
    fn holds_nothing(&self) -> bool {
        self.meter.present().in_flight == 0 && self.throttler.held() == 0
    }

    fn refuses_waiting(&self) -> bool {
        self.assignment.hold.is_some() && !self.throttler.has_ready_pod()
    }

    /// Why no request may join the queue now; `None` if requests may.
    fn refusal(&self) -> Option<RequestRefusal> {
        match (self.is_gone, self.refuses_waiting()) {
            (true, _) => Some(RequestRefusal::Gone),
            (false, true) => Some(RequestRefusal::Held),
            (false, false) => None,
        }
    }
}

/// Where idle connections may be kept under an assignment: at pods that are named and not on their way out.
pub(crate) fn kept_addresses(assignment: &Assignment) -> std::collections::BTreeSet<std::net::SocketAddr> {
    let stays = assignment.pods.iter().filter(|pod| pod.state != PodState::Draining);
    stays.flat_map(|pod| pod.exits.all(pod.address)).collect()
}
