//! The three clocks of a request: how long it may take, how long until its response begins, how long it may
//! be silent.
//!
//! One timer of the runtime serves all three, set to whichever is due first. Bytes only note the time; the
//! timer finds that out when it fires and goes back to sleep, so that a byte never costs a timer operation.
//! Timers of requests that are over are kept with their timer of the runtime for those that come next: one
//! with each connection over HTTP/1.1, whose next request waits in the same task, and some with each thread.

mod alarm;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use runtime::Clock;
use vocabulary::{LateTimeout, RequestTimeouts, Timestamp};

use alarm::Alarm;

/// How many timers are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Timers of requests that are over.
    static SPARE: RefCell<Vec<Timers>> = const { RefCell::new(Vec::new()) };
}

/// Which limit a request exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The whole exchange took too long.
    Request,
    /// The response did not begin in time.
    ResponseStart,
    /// No byte moved in either direction for too long.
    Idle,
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Request => "request timeout",
            Self::ResponseStart => "response start timeout",
            Self::Idle => "idle timeout",
        })
    }
}

/// When a byte of the exchange last moved, in either direction. Clones share the one answer.
#[derive(Clone, Debug)]
pub struct Activity(Rc<NotedActivity>);

#[derive(Debug)]
struct NotedActivity {
    clock: Clock,
    last: Cell<Timestamp>,
}

impl Activity {
    fn since(last: Timestamp, clock: Clock) -> Self {
        Self(Rc::new(NotedActivity { clock, last: Cell::new(last) }))
    }

    /// Notes that a byte of the exchange moved now.
    pub fn mark(&self) {
        self.0.last.set(self.0.clock.now());
    }
}

/// The running timers of one request. They start with the request, so time in a queue counts. Boxed, because
/// they are moved with the request, and then with its answer and the body of that.
///
/// The box is there until they are dropped, and goes to the spares then.
#[derive(Debug)]
pub struct Timers(Option<Box<RunningTimers>>);

/// The state of [`Timers`], in its box.
#[derive(Debug)]
struct RunningTimers {
    clock: Clock,
    limits: RequestTimeouts,
    started_at: Timestamp,
    is_response_awaited: bool,
    activity: Option<Activity>,
    /// The timer of the runtime, perhaps left from a request before; `None` until a limit is waited for.
    alarm: Option<Alarm>,
    /// Where these timers go when their request is over; `None` once they are there, and without a
    /// connection.
    place: Option<SpareTimers>,
}

/// Where the timers of a request that is over wait for the next one of the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpareTimers(Rc<RefCell<Option<Box<RunningTimers>>>>);

impl SpareTimers {
    /// Starts the clocks that `limits` names, as of `started_at`.
    pub(crate) fn start(&self, limits: RequestTimeouts, started_at: Timestamp, clock: Clock) -> Timers {
        let spare = self.0.borrow_mut().take();
        Timers::begin(RunningTimers::new(limits, started_at, clock, Some(self.clone())), spare)
    }
}

pin_project! {
    /// Work under the limits of [`Timers`]. A type of its own, because an async function would hold the work
    /// twice.
    #[must_use = "futures do nothing unless polled"]
    pub struct LimitedWork<'t, Work> {
        timers: &'t mut Timers,
        #[pin]
        work: Work,
    }
}

impl<Work: Future> Future for LimitedWork<'_, Work> {
    type Output = Result<Work::Output, ExceededLimit>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // The work first: what is done in the same moment as its time is up was done in time.
        if let Poll::Ready(output) = this.work.poll(context) {
            return Poll::Ready(Ok(output));
        }
        this.timers.poll_expired(context).map(Err)
    }
}

impl Timers {
    /// Starts the clocks that `limits` names.
    pub fn start(limits: RequestTimeouts, clock: Clock) -> Self {
        Self::start_at(limits, clock.now(), clock)
    }

    /// Starts the clocks that `limits` names, as of `started_at`.
    pub(crate) fn start_at(limits: RequestTimeouts, started_at: Timestamp, clock: Clock) -> Self {
        Self::begin(RunningTimers::new(limits, started_at, clock, None), None)
    }

    /// Takes the box of timers that are over, with the alarm in it, if there are any.
    fn begin(running: RunningTimers, spare: Option<Box<RunningTimers>>) -> Self {
        let spare = spare.or_else(|| SPARE.with_borrow_mut(Vec::pop)?.0.take());
        let Some(mut spare) = spare else { return Self(Some(Box::new(running))) };
        let alarm = spare.alarm.take();
        *spare = RunningTimers { alarm, ..running };
        Self(Some(spare))
    }

    /// When the request arrived, from which all timers of the request count.
    pub fn started_at(&self) -> Timestamp {
        self.running().started_at
    }

    /// The end of a response that has begun, once the time is up.
    pub(crate) fn late(&self) -> LateTimeout {
        self.running().limits.late
    }

    /// Where bytes of this exchange are to be noted; `None` if no timer depends on them.
    pub fn activity(&self) -> Option<Activity> {
        self.running().activity.clone()
    }

    /// The response began: it has no start to wait for any more. Counts as activity.
    pub(crate) fn response_started(&mut self) {
        let running = self.running_mut();
        running.is_response_awaited = false;
        if let Some(activity) = &running.activity {
            activity.mark();
        }
    }

    /// Runs `work` until it is done or a timer fires; then it is dropped.
    pub fn limit<Work: Future>(&mut self, work: Work) -> LimitedWork<'_, Work> {
        LimitedWork { timers: self, work }
    }

    /// Ready once a timer has fired; otherwise wakes the task when one does.
    pub(crate) fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        self.running_mut().poll_expired(context)
    }

    fn running(&self) -> &RunningTimers {
        self.0.as_deref().expect("timers run until they are dropped")
    }

    fn running_mut(&mut self) -> &mut RunningTimers {
        self.0.as_deref_mut().expect("timers run until they are dropped")
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        let Some(mut running) = self.0.take() else { return };
        running.activity = None;
        if let Some(place) = running.place.take() {
            let mut spare = place.0.borrow_mut();
            // The next request needs no more than one.
            if spare.is_none() {
                *spare = Some(running);
                return;
            }
        }
        // The thread may be about to end, and have no spares any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(Self(Some(running)));
            }
        });
    }
}

impl RunningTimers {
    fn new(limits: RequestTimeouts, started_at: Timestamp, clock: Clock, place: Option<SpareTimers>) -> Self {
        let activity = limits.idle.map(|_| Activity::since(started_at, clock));
        Self { clock, limits, started_at, is_response_awaited: true, activity, alarm: None, place }
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        loop {
            // Asked anew each time: a byte that moved, or a response that began, has changed it without
            // touching the alarm.
            let Some((at, expired)) = self.next_deadline() else { return Poll::Pending };
            let instant = self.clock.instant(at);
            let is_set = |alarm: &Alarm| alarm.at() <= instant && alarm.will_wake(context.waker());
            if self.alarm.as_ref().is_some_and(is_set) {
                return Poll::Pending;
            }
            self.forget_foreign_alarm();
            match &mut self.alarm {
                // Later than it is set to is fine: it fires early, finds that out, and is set again.
                Some(alarm) if alarm.at() <= instant => {
                    if alarm.poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    if alarm.at() >= instant || at <= self.clock.now() {
                        return Poll::Ready(expired);
                    }
                    alarm.move_to(instant);
                }
                Some(alarm) => alarm.move_to(instant),
                None => self.alarm = Some(Alarm::set(instant)),
            }
        }
    }

    /// Sees to it that the alarm, if there is one, fires here: the thread may have had another runtime when
    /// it was made.
    fn forget_foreign_alarm(&mut self) {
        if self.alarm.as_ref().is_some_and(|alarm| !alarm.is_of_present_runtime()) {
            self.alarm = None;
        }
    }

    /// The earliest limit and which one it is.
    fn next_deadline(&self) -> Option<(Timestamp, ExceededLimit)> {
        let start = self.limits.response_start.filter(|_| self.is_response_awaited);
        // Both count from the arrival, so that the shorter one is due first.
        let first = match (self.limits.request, start) {
            (Some(request), Some(start)) if start < request => Some((start, ExceededLimit::ResponseStart)),
            (Some(request), Some(_) | None) => Some((request, ExceededLimit::Request)),
            (None, Some(start)) => Some((start, ExceededLimit::ResponseStart)),
            (None, None) => None,
        };
        let first = first.map(|(limit, expired)| (self.started_at + limit, expired));
        let (Some(limit), Some(activity)) = (self.limits.idle, &self.activity) else { return first };
        let idle = activity.0.last.get() + limit;
        first.filter(|(at, _)| *at <= idle).or(Some((idle, ExceededLimit::Idle)))
    }
}

#[cfg(test)]
mod tests;
