//! The three clocks of a request: how long it may take, how long until its response begins, how long it may
//! be silent.
//!
//! One timer of the runtime serves all three, set to whichever is due first. Bytes only note the time; the
//! timer finds that out when it fires and goes back to sleep, so that a byte never costs a timer operation.

mod alarm;

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use runtime::Clock;
use vocabulary::{RequestTimeouts, Timestamp};

use alarm::Alarm;

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
pub struct Activity {
    clock: Clock,
    last: Rc<Cell<Timestamp>>,
}

impl Activity {
    /// Notes that a byte of the exchange moved now.
    pub fn mark(&self) {
        self.last.set(self.clock.now());
    }
}

/// The running timers of one request. They start with the request, so time in a queue counts. Boxed, because
/// they are moved with the request, and then with its answer and the body of that.
#[derive(Debug)]
pub struct Timers(Box<RunningTimers>);

/// The state of [`Timers`], in its box.
#[derive(Debug)]
struct RunningTimers {
    clock: Clock,
    limits: RequestTimeouts,
    started_at: Timestamp,
    is_response_awaited: bool,
    activity: Option<Activity>,
    alarm: Option<Alarm>,
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
        let started_at = clock.now();
        Self::start_at(limits, started_at, clock)
    }

    /// Starts the clocks as of `started_at`, for a request that has waited elsewhere.
    pub fn start_at(limits: RequestTimeouts, started_at: Timestamp, clock: Clock) -> Self {
        let activity = limits.idle.map(|_| Activity { clock, last: Rc::new(Cell::new(started_at)) });
        Self(Box::new(RunningTimers {
            clock,
            limits,
            started_at,
            is_response_awaited: true,
            activity,
            alarm: None,
        }))
    }

    /// When the request arrived, from which all timers of the request count.
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// Where bytes of this exchange are to be noted; `None` if no timer depends on them.
    pub fn activity(&self) -> Option<Activity> {
        self.0.activity.clone()
    }

    /// The response began: it has no start to wait for any more. Counts as activity.
    pub(crate) fn response_started(&mut self) {
        self.0.is_response_awaited = false;
        if let Some(activity) = &self.0.activity {
            activity.mark();
        }
    }

    /// Runs `work` until it is done or a timer fires; then it is dropped.
    pub fn limit<Work: Future>(&mut self, work: Work) -> LimitedWork<'_, Work> {
        LimitedWork { timers: self, work }
    }

    /// Ready once a timer has fired; otherwise wakes the task when one does.
    pub(crate) fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        self.0.poll_expired(context)
    }
}

impl RunningTimers {
    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        loop {
            // Asked anew each time: a byte that moved, or a response that began, has changed it without
            // touching the alarm.
            let Some((at, expired)) = self.next_deadline() else { return Poll::Pending };
            let instant = self.clock.instant(at);
            match &mut self.alarm {
                // Later than it is set to is fine: it fires early, finds that out, and is set again.
                Some(alarm) if alarm.at() <= Some(instant) => {
                    if alarm.poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    if alarm.at() >= Some(instant) || at <= self.clock.now() {
                        return Poll::Ready(expired);
                    }
                    alarm.move_to(instant);
                }
                Some(alarm) => alarm.move_to(instant),
                None => self.alarm = Some(Alarm::set(instant)),
            }
        }
    }

    /// The earliest limit and which one it is.
    fn next_deadline(&self) -> Option<(Timestamp, ExceededLimit)> {
        let request = self.limits.request.map(|limit| (self.started_at + limit, ExceededLimit::Request));
        let start = self
            .limits
            .response_start
            .filter(|_| self.is_response_awaited)
            .map(|limit| (self.started_at + limit, ExceededLimit::ResponseStart));
        let idle = match (self.limits.idle, &self.activity) {
            (Some(limit), Some(activity)) => Some((activity.last.get() + limit, ExceededLimit::Idle)),
            (Some(_) | None, _) => None,
        };
        [request, start, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    fn limits(request: Option<u64>, response_start: Option<u64>, idle: Option<u64>) -> RequestTimeouts {
        let seconds = |limit: Option<u64>| limit.map(Duration::from_secs);
        RequestTimeouts {
            request: seconds(request),
            response_start: seconds(response_start),
            idle: seconds(idle),
        }
    }

    async fn expire(timers: &mut Timers) -> (ExceededLimit, Duration) {
        let expired = poll_fn(|context| timers.poll_expired(context)).await;
        (expired, timers.0.clock.now().saturating_since(timers.0.started_at))
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_limit_fires_and_names_itself() {
        let clock = Clock::start();
        for (given, expected) in [
            (limits(Some(3), Some(5), None), (ExceededLimit::Request, 3)),
            (limits(Some(20), Some(2), None), (ExceededLimit::ResponseStart, 2)),
            (limits(Some(20), None, Some(2)), (ExceededLimit::Idle, 2)),
        ] {
            let (expired, after) = expire(&mut Timers::start(given, clock)).await;
            assert_eq!((expired, after.as_secs()), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_limit_never_fires() {
        let mut timers = Timers::start(limits(None, None, None), Clock::start());
        let year = timers.limit(tokio::time::sleep(Duration::from_hours(8760))).await;
        assert_eq!(year, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_begun_response_ends_the_wait_for_its_start_only() {
        let mut timers = Timers::start(limits(Some(9), Some(2), None), Clock::start());
        timers.response_started();
        let (expired, after) = expire(&mut timers).await;
        assert_eq!((expired, after.as_secs()), (ExceededLimit::Request, 9));
    }

    #[tokio::test(start_paused = true)]
    async fn every_byte_restarts_the_idle_clock_exactly() {
        let mut timers = Timers::start(limits(None, None, Some(2)), Clock::start());
        let activity = timers.activity().expect("an idle limit is set");
        for _ in 0..4 {
            let wait = tokio::time::sleep(Duration::from_millis(1500));
            assert_eq!(timers.limit(wait).await, Ok(()));
            activity.mark();
        }
        let (expired, after) = expire(&mut timers).await;
        assert_eq!((expired, after.as_millis()), (ExceededLimit::Idle, 8000));
    }
}
