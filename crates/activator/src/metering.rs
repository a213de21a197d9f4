//! Closes the activator's seconds, and remembers them for an autoscaler that connects later.

use std::cell::Cell;
use std::sync::Arc;

use link::History;
use parking_lot::Mutex;
use tokio::runtime::RuntimeMetrics;
use tokio::sync::watch;
use vocabulary::{Load, RequestRate, RevisionLoad, Timestamp};

use crate::context::Context;

/// One second of the activator: all revisions with something to say.
pub(crate) type ReportedSecond = (u64, Vec<RevisionLoad>);

/// The activator's past seconds.
pub(crate) struct Metering {
    context: Arc<Context>,
    history: Mutex<History<ReportedSecond>>,
    /// The first second that is not closed yet.
    open_second: watch::Sender<u64>,
    /// The threads that serve requests, and how many tasks of theirs are counted.
    workers: Vec<RuntimeMetrics>,
    counted_tasks: Cell<i64>,
}

/// Its tasks end with an activator; another one of this process goes on counting.
impl Drop for Metering {
    fn drop(&mut self) {
        self.count_tasks(0);
    }
}

impl Metering {
    pub(crate) fn new(context: Arc<Context>, workers: Vec<RuntimeMetrics>) -> Self {
        Self {
            context,
            history: Mutex::new(History::new()),
            open_second: watch::Sender::new(0),
            workers,
            counted_tasks: Cell::default(),
        }
    }

    /// Closes one second after the other, for ever.
    pub(crate) async fn run(&self) {
        loop {
            let open = *self.open_second.borrow();
            self.context.clock.sleep_until(self.context.beginning_of(open + 1)).await;
            self.close(open, self.context.clock.now());
            self.count_tasks(self.workers.iter().map(RuntimeMetrics::num_alive_tasks).sum());
            self.context.metrics.note_memory(self.context.limits.http2_memory);
        }
    }

    fn count_tasks(&self, tasks: usize) {
        let tasks = i64::try_from(tasks).unwrap_or(i64::MAX);
        let counted = self.counted_tasks.replace(tasks);
        self.context.metrics.tasks.inc_by(tasks - counted);
    }

    /// The first second that is not closed yet.
    pub(crate) fn open_second(&self) -> u64 {
        *self.open_second.borrow()
    }

    /// Changes when a second is closed.
    pub(crate) fn closings(&self) -> watch::Receiver<u64> {
        self.open_second.subscribe()
    }

    /// All seconds that are remembered, oldest first.
    pub(crate) fn history(&self) -> Vec<ReportedSecond> {
        self.history.lock().to_vec()
    }

    /// The remembered seconds from `first` on.
    pub(crate) fn since(&self, first: u64) -> Vec<ReportedSecond> {
        let mut seconds = self.history();
        seconds.retain(|(second, _)| *second >= first);
        seconds
    }

    /// Closes `open` and whatever else has passed: a thread that did not run for a while reports the average of that time for each of its seconds,
    /// so that none is missing and none counts double.
    fn close(&self, open: u64, now: Timestamp) {
        let after = self.context.second_of(now).max(open + 1);
        let passed = u32::try_from(after - open).unwrap_or(u32::MAX);
        let loads = self.take_loads(now, passed);
        let mut history = self.history.lock();
        let kept = u64::try_from(History::<ReportedSecond>::SECONDS_MAX).unwrap_or(u64::MAX);
        for second in open.max(after.saturating_sub(kept))..after {
            history.push((second, loads.clone()));
        }
        drop(history);
        self.open_second.send_replace(after);
    }

    fn take_loads(&self, now: Timestamp, seconds: u32) -> Vec<RevisionLoad> {
        // Taking the list out first keeps the order of locks: a revision that becomes active holds its own, then this one.
        let active = std::mem::take(&mut *self.context.active.lock());
        let mut loads = Vec::with_capacity(active.len());
        for (name, revision) in active {
            if let Some(second) = revision.close_second(now) {
                let load = spread(second.load, seconds);
                loads.push(RevisionLoad { revision: name.clone(), load, oldest_wait: second.oldest_wait });
                self.context.active.lock().insert(name, revision);
            }
        }
        loads
    }
}

/// One second's part of a longer time: averages stay, arrivals are shared out.
fn spread(load: Load, seconds: u32) -> Load {
    let each = |rate: RequestRate| RequestRate::clamped(rate.value() / f64::from(seconds.max(1)));
    Load {
        request_rate: each(load.request_rate),
        proxied_request_rate: each(load.proxied_request_rate),
        ..load
    }
}
