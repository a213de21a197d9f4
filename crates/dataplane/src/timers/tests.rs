use std::future::poll_fn;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::*;
use crate::connection::Connection;

fn limits(request: Option<u64>, response_start: Option<u64>, idle: Option<u64>) -> RequestTimeouts {
    let seconds = |limit: Option<u64>| limit.map(Duration::from_secs);
    RequestTimeouts {
        request: seconds(request),
        response_start: seconds(response_start),
        idle: seconds(idle),
        ..RequestTimeouts::default()
    }
}

async fn expire(timers: &mut Timers) -> (ExceededLimit, Duration) {
    let expired = poll_fn(|context| timers.poll_expired(context)).await;
    let running = timers.running();
    (expired, running.clock.now().saturating_since(running.started_at))
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

#[tokio::test(start_paused = true)]
async fn timers_that_a_request_had_before_fire_when_they_are_to() {
    // Of other tests on this thread.
    while let Some(mut spare) = SPARE.with_borrow_mut(Vec::pop) {
        spare.0 = None;
    }
    let clock = Clock::start();
    for (used, after) in [(5, 9), (9, 5), (0, 3)] {
        let mut before = Timers::start(limits(Some(used), None, None), clock);
        let _ = poll_fn(|context| Poll::Ready(before.poll_expired(context))).await;
        drop(before);
        assert_eq!(SPARE.with_borrow(Vec::len), 1);
        let mut timers = Timers::start(limits(None, Some(after), None), clock);
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
        let (expired, took) = expire(&mut timers).await;
        assert_eq!((expired, took.as_secs()), (ExceededLimit::ResponseStart, after), "after {used}");
    }
}

#[tokio::test(start_paused = true)]
async fn timers_of_a_connection_fire_for_each_of_its_requests() {
    let (spare, clock) = (SpareTimers::default(), Clock::start());
    let start = |seconds| spare.start(limits(Some(seconds), None, None), clock.now(), clock);
    for (used, after) in [(5, 9), (9, 5), (2, 2)] {
        // Waited for by the task of the test, and by another.
        for is_own_task in [true, false] {
            let mut before = start(used);
            let polled = poll_fn(|context| {
                let mut other = Context::from_waker(std::task::Waker::noop());
                Poll::Ready(before.poll_expired(if is_own_task { context } else { &mut other }))
            });
            assert!(polled.await.is_pending());
            drop(before);
            assert!(spare.0.borrow().is_some(), "they wait for the next request");
            // The second of the two finds an alarm that has fired.
            for _ in 0..2 {
                let mut timers = start(after);
                assert!(spare.0.borrow().is_none());
                let (expired, took) = expire(&mut timers).await;
                assert_eq!((expired, took.as_secs()), (ExceededLimit::Request, after), "after {used}");
            }
        }
    }
}

/// Each has a waker of its own, which keeps the memory of its stream.
#[tokio::test(start_paused = true)]
async fn timers_of_streams_fire_for_their_own_and_stay_with_no_connection() {
    let (clock, connection) = (Clock::start(), Connection::new(([127, 0, 0, 1], 80).into()));
    connection.mark_as_of_streams();
    while let Some(mut spare) = SPARE.with_borrow_mut(Vec::pop) {
        spare.0 = None;
    }
    // The streams of the second round find the alarms of the first.
    for _ in 0..2 {
        let start = |seconds| connection.start_timers(limits(Some(seconds), None, None), clock.now(), clock);
        let stream = |seconds| {
            let mut timers = start(seconds);
            async move { expire(&mut timers).await.1.as_secs() }
        };
        let streams: FuturesUnordered<_> = [5, 2, 9].into_iter().map(stream).collect();
        assert_eq!(streams.collect::<Vec<_>>().await, [2, 5, 9]);
        assert_eq!(SPARE.with_borrow(Vec::len), 3);
    }
}

#[test]
fn an_alarm_of_a_runtime_that_is_gone_is_not_used_again() {
    for _ in 0..2 {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let mut timers = Timers::start(limits(Some(2), None, None), Clock::start());
            assert_eq!(expire(&mut timers).await.1.as_secs(), 2);
        });
    }
}
