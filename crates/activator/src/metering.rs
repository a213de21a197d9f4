//! Closes the activator's seconds, and remembers them for an autoscaler that connects later.

use std::cell::Cell;
use std::sync::Arc;

use link::History;
use parking_lot::Mutex;
use tokio::runtime::RuntimeMetrics;
use tokio::sync::watch;
use vocabulary::{RevisionLoad, Timestamp};

use crate::assigned_revision::RevisionSecond;
use crate::context::Context;

/// One second of the activator: all revisions with something to say.
pub(crate) type ReportedSecond = (u64, Vec<RevisionLoad>);

/// The loads of the activator's last seconds, and the second that is measured now.
pub(crate) struct PastSeconds {
    context: Arc<Context>,
    history: Mutex<History<ReportedSecond>>,
    /// The first second that is not closed yet.
    open_second: watch::Sender<u64>,
    /// The threads that serve requests, and how many tasks of theirs are counted.
    workers: Vec<RuntimeMetrics>,
    counted_tasks: Cell<i64>,
}

/// Its tasks end with an activator; another one of this process goes on counting.
impl Drop for PastSeconds {
    fn drop(&mut self) {
        self.count_tasks(0);
    }
}

impl PastSeconds {
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
            self.context.clock.sleep_until(self.context.seconds.beginning_of(open + 1)).await;
            self.close(open, self.context.clock.now());
            self.count_tasks(self.workers.iter().map(RuntimeMetrics::num_alive_tasks).sum());
            self.context.metrics.note_memory(self.context.limits.unread_memory);
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

    /// Closes `open` and whatever else has passed.
    fn close(&self, open: u64, now: Timestamp) {
        let ended = self.context.seconds.ended(open, now);
        self.context.begin_second(ended.next());
        let loads = self.take_loads(ended.count(), now);
        let mut history = self.history.lock();
        for second in ended.latest(History::<ReportedSecond>::SECONDS_MAX) {
            history.push((second, loads.clone()));
        }
        drop(history);
        self.open_second.send_replace(ended.next());
    }

    fn take_loads(&self, seconds: u32, now: Timestamp) -> Vec<RevisionLoad> {
        // Taking the list out first keeps the order of locks: a revision that becomes active holds its own,
        // then this one.
        let active = std::mem::take(&mut *self.context.active.lock());
        let mut loads = Vec::with_capacity(active.len());
        for (name, revision) in active {
            if let Some(RevisionSecond { load, oldest_wait }) = revision.close_seconds(seconds, now) {
                loads.push(RevisionLoad { revision: name.clone(), load, oldest_wait });
                self.context.active.lock().insert(name, revision);
            }
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use runtime::{Clock, MetricsRegistry};
    use vocabulary::{
        Assignment, HeadSizeLimit, IgnoredUserAgents, ReplicaName, RequestTimeouts, RevisionName, Routing,
        Standing, Version,
    };

    use super::*;
    use crate::assigned_revision::AssignedRevision;
    use crate::config::{ActivatorConfig, Limits};
    use crate::forwarders::TrustedForwarders;
    use crate::metrics::ActivatorMetrics;

    fn context() -> Arc<Context> {
        let metrics = ActivatorMetrics::register(&MetricsRegistry::default());
        Arc::new(Context::new(ActivatorConfig {
            name: ReplicaName::new("a"),
            workers: 1,
            limits: Limits::default(),
            connections: metrics.connection_budget(1_000),
            clock: Clock::start(),
            metrics,
            reporting: tokio::sync::watch::channel(Arc::default()).1,
            log_format: runtime::LogFormat::Text,
            forwarders: TrustedForwarders::default(),
        }))
    }

    fn assignment() -> Assignment {
        Assignment {
            revision: RevisionName::parse("default/service/hello").expect("a name"),
            version: Version::default(),
            hosts: Vec::new(),
            ports: BTreeSet::new(),
            routing: Routing::ThroughActivator,
            container_concurrency: 0,
            timeouts: RequestTimeouts::default(),
            pods: Vec::new(),
            hop_keys: Vec::new(),
            waiting_for: String::new(),
            standing: Standing::Assigned,
            hold: None,
            ignored_user_agents: IgnoredUserAgents::default(),
            head_size_limit: HeadSizeLimit::default(),
        }
    }

    /// Each closed second's number, and concurrency and arrivals of the only revision.
    fn seconds_of(metering: &PastSeconds) -> Vec<(u64, Vec<(f64, f64)>)> {
        let loads = |loads: Vec<RevisionLoad>| {
            loads.iter().map(|of| (of.load.concurrency.value(), of.load.request_rate.value())).collect()
        };
        metering.history().into_iter().map(|(second, of_all)| (second, loads(of_all))).collect()
    }

    /// What closes the seconds had no core from 1.5 s to 4.5 s, while other threads took requests. Seconds 1,
    /// 2 and 3 passed meanwhile: none is missing, and the requests of all of them are not those of one. A
    /// revision that became busy in the last of them held nothing in the others.
    #[tokio::test(start_paused = true)]
    async fn a_stall_of_three_seconds_is_shared_out_over_them() {
        for began_at in [500, 3_500] {
            let context = context();
            let metering = PastSeconds::new(Arc::clone(&context), Vec::new());
            let mut running = Box::pin(metering.run());
            let wait_until = async |milliseconds| {
                let at = context.seconds.beginning_of(0) + Duration::from_millis(milliseconds);
                tokio::time::advance(at.saturating_since(context.clock.now())).await;
            };
            let revision = Arc::new(AssignedRevision::new(&assignment(), &context));
            let mut held = Vec::new();
            for milliseconds in [500, 1_000, 1_500, 3_500, 4_500, 5_000] {
                wait_until(milliseconds).await;
                if milliseconds != 3_500 {
                    assert!(futures_util::poll!(&mut running).is_pending());
                }
                if milliseconds == began_at {
                    held.extend((0..3).map(|_| revision.enter().expect("there is room")));
                }
            }
            let (first, missed) = match began_at {
                500 => (vec![(1.5, 3.0)], vec![(3.0, 0.0)]),
                _ => (Vec::new(), vec![(3.0 / 3.5, 1.0)]),
            };
            let last = vec![(3.0, 0.0)];
            let each = [first, missed.clone(), missed.clone(), missed, last];
            assert_eq!(seconds_of(&metering), (0..).zip(each).collect::<Vec<_>>());
        }
    }
}
