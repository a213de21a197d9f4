//! Which link may be dialled now? At most 64 at once and 500 a second, the important ones first.
//!
//! After a restart thousands of links are due at the same instant. Dialling them all at once would overflow
//! listen queues and starve the few that matter most: activators first, then pods of revisions that a request
//! waits for, then the rest.
//!
//! Turns follow a schedule, one each 2 ms, and not "2 ms after the last": timers have a granularity of a
//! millisecond and fire late on a busy machine, so a pause after each turn would be half as long again and
//! more, and with it the time until everything is linked. What is late is caught up with, but only a few
//! turns of it: a pacer that was idle must not owe a burst to the first callers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::Priority;
use runtime::{Clock, vital};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vocabulary::Timestamp;

/// Dials under way at once.
const DIALS_AT_ONCE_MAX: usize = 64;
/// The least time between two dials: 500 a second.
pub(super) const DIAL_EVERY: Duration = Duration::from_millis(2);
/// How far the schedule may lie in the past: eight turns, which no listen queue notices. It is longer than a
/// timer is late while there are cores to spare.
const CATCH_UP_MAX: Duration = Duration::from_millis(16);
/// Requests on their way to the pacer; it takes them at once, so this only smooths a burst.
const REQUESTS_MAX: usize = 1024;

/// Gives turns for dialling, by priority and at a bounded rate.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    requests: mpsc::Sender<(Priority, oneshot::Sender<OwnedSemaphorePermit>)>,
}

impl Pacer {
    /// Starts giving turns, one in each interval of this length, until `stop`.
    pub(super) fn start(clock: Clock, every: Duration, tasks: &TaskTracker, stop: CancellationToken) -> Self {
        let (requests, receiver) = mpsc::channel(REQUESTS_MAX);
        let queue = Queue { clock, every, waiting: BTreeMap::new(), arrived: 0, free_at: Timestamp::ZERO };
        tasks.spawn(async move {
            stop.run_until_cancelled(vital("the pacer of the autoscaler's links", queue.run(receiver))).await;
        });
        Self { requests }
    }

    /// Waits for a turn; it lasts until the permit is dropped. After the pacer has stopped no turn ever
    /// comes.
    pub(super) async fn turn(&self, priority: Priority) -> OwnedSemaphorePermit {
        let (grant, granted) = oneshot::channel();
        if self.requests.send((priority, grant)).await.is_ok()
            && let Ok(permit) = granted.await
        {
            return permit;
        }
        std::future::pending().await
    }
}

/// The waiting requests for turns, most important first, then in the order they came.
struct Queue {
    clock: Clock,
    every: Duration,
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<OwnedSemaphorePermit>>,
    arrived: u64,
    /// When the next turn is due by the schedule.
    free_at: Timestamp,
}

impl Queue {
    async fn run(mut self, mut requests: mpsc::Receiver<(Priority, oneshot::Sender<OwnedSemaphorePermit>)>) {
        let turns = Arc::new(Semaphore::new(DIALS_AT_ONCE_MAX));
        loop {
            // Cancel-safe: a turn that is cancelled drops its permit, which goes back, and requests stay in
            // their channel.
            tokio::select! {
                biased;
                request = requests.recv() => {
                    let Some((priority, grant)) = request else { return };
                    self.arrived += 1;
                    self.waiting.insert((priority, self.arrived), grant);
                }
                permit = next_turn(self.clock, Arc::clone(&turns), self.free_at), if !self.waiting.is_empty() => {
                    self.grant(permit);
                }
            }
        }
    }

    /// Gives the turn to the first task that still wants it.
    fn grant(&mut self, mut permit: OwnedSemaphorePermit) {
        while let Some((_, grant)) = self.waiting.pop_first() {
            match grant.send(permit) {
                Ok(()) => {
                    self.free_at = self.free_at.max(self.clock.now() - CATCH_UP_MAX) + self.every;
                    return;
                }
                Err(unwanted) => permit = unwanted,
            }
        }
    }
}

/// Cancel-safe: a permit that is not handed out is free again.
async fn next_turn(clock: Clock, turns: Arc<Semaphore>, free_at: Timestamp) -> OwnedSemaphorePermit {
    let permit = turns.acquire_owned().await.expect("the semaphore is never closed");
    clock.sleep_until(free_at).await;
    permit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(clock: Clock) -> (Pacer, TaskTracker, CancellationToken) {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        (Pacer::start(clock, DIAL_EVERY, &tasks, stop.clone()), tasks, stop)
    }

    #[tokio::test(start_paused = true)]
    async fn five_hundred_dials_take_a_second_however_late_the_timers_are() {
        let clock = Clock::start();
        let (pacer, _tasks, _stop) = pacer(clock);
        let begin = clock.now();
        for _ in 0..501 {
            drop(pacer.turn(Priority::Rest).await);
        }
        // Tokio's timers have a granularity of a millisecond; what they are late is caught up with. The first
        // few come at once.
        let elapsed = clock.now().saturating_since(begin);
        assert!((1000 - 16..=1002).contains(&elapsed.as_millis()), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_only_a_few_come_at_once() {
        let clock = Clock::start();
        let (pacer, _tasks, _stop) = pacer(clock);
        drop(pacer.turn(Priority::Rest).await);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let resumed = clock.now();
        let mut at_once = 0;
        loop {
            drop(pacer.turn(Priority::Rest).await);
            if clock.now() > resumed {
                break;
            }
            at_once += 1;
        }
        // The one that is due, and eight that are caught up with.
        assert_eq!(at_once, 9);
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_64_dial_at_once_and_the_important_ones_first() {
        let clock = Clock::start();
        let (pacer, tasks, _stop) = pacer(clock);
        let mut held = Vec::new();
        for _ in 0..DIALS_AT_ONCE_MAX {
            held.push(pacer.turn(Priority::Rest).await);
        }
        let (order, mut granted) = mpsc::channel(3);
        for priority in [Priority::Rest, Priority::Awaited, Priority::Activator] {
            let (pacer, order) = (pacer.clone(), order.clone());
            tasks.spawn(async move {
                let permit = pacer.turn(priority).await;
                order.send((priority, permit)).await.expect("the test listens");
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(granted.try_recv().is_err(), "all 64 turns are taken");
        held.pop();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let (priority, permit) = granted.recv().await.expect("three tasks");
            seen.push(priority);
            drop(permit);
        }
        assert_eq!(seen, [Priority::Activator, Priority::Awaited, Priority::Rest]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_whose_task_is_gone_goes_to_the_next() {
        let (pacer, _tasks, _stop) = pacer(Clock::start());
        let mut held = Vec::new();
        for _ in 0..DIALS_AT_ONCE_MAX {
            held.push(pacer.turn(Priority::Rest).await);
        }
        let given_up = tokio::time::timeout(Duration::from_secs(1), pacer.turn(Priority::Activator)).await;
        assert!(given_up.is_err());
        held.clear();
        drop(pacer.turn(Priority::Rest).await);
    }
}
