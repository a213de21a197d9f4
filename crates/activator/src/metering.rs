//! Closes the activator's seconds, and counts in each what the process holds.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::runtime::RuntimeMetrics;

use crate::context::Context;
use crate::link::LinkContext;

/// What is counted once a second.
pub(crate) struct SecondsMeter {
    context: Arc<Context>,
    link: Rc<LinkContext>,
    /// The threads that serve requests, and how many tasks of theirs are counted.
    workers: Vec<RuntimeMetrics>,
    counted_tasks: Cell<i64>,
}

/// Its tasks end with an activator; another one of this process goes on counting.
impl Drop for SecondsMeter {
    fn drop(&mut self) {
        self.count_tasks(0);
    }
}

impl SecondsMeter {
    pub(crate) fn new(context: Arc<Context>, link: Rc<LinkContext>, workers: Vec<RuntimeMetrics>) -> Self {
        Self { context, link, workers, counted_tasks: Cell::default() }
    }

    /// Closes one second after the other, for ever.
    pub(crate) async fn run(&self) {
        loop {
            self.link.pass_time().await;
            self.count_tasks(self.workers.iter().map(RuntimeMetrics::num_alive_tasks).sum());
            self.context.metrics.note_memory(self.context.limits.unread_memory);
        }
    }

    fn count_tasks(&self, tasks: usize) {
        let tasks = i64::try_from(tasks).unwrap_or(i64::MAX);
        let counted = self.counted_tasks.replace(tasks);
        self.context.metrics.tasks.inc_by(tasks - counted);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtime::{Clock, MetricsRegistry};
    use throttling::{ActivatorEvent, LinkNumber};
    use vocabulary::{
        ActivatorWord, Assignment, ReplicaName, RevisionLoad, RevisionName, Timestamp, Version,
    };

    use super::*;
    use crate::assignments::Assignments;
    use crate::backends::Backends;
    use crate::config::{ActivatorConfig, Limits};
    use crate::forwarders::TrustedForwarders;
    use crate::metrics::ActivatorMetrics;
    use crate::revision_ports::RevisionPorts;
    use crate::shared_revision::RequestSeat;

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
            place: crate::place::ActivatorPlace::Ebb,
        }))
    }

    fn assignment() -> Assignment {
        Assignment::of_nothing(
            RevisionName::parse("default/service/hello").expect("a name"),
            Version::default(),
        )
    }

    /// The thread of the links without workers and without a listener.
    fn link(context: &Arc<Context>, assignments: &Arc<Assignments>) -> Rc<LinkContext> {
        let (backends, _) = Backends::new(0);
        let ports = RevisionPorts::new(
            [127, 0, 0, 1].into(),
            backends.clone(),
            context.metrics.revision_ports.clone(),
        );
        Rc::new(LinkContext::new(Arc::clone(context), Arc::clone(assignments), backends, ports))
    }

    /// Each closed second's number, and concurrency and arrivals of the only revision, as a hello tells them.
    fn seconds_of(link: &Rc<LinkContext>, assignments: &Assignments) -> Vec<(u64, Vec<(f64, f64)>)> {
        let loads = |loads: &[RevisionLoad]| {
            loads.iter().map(|of| (of.load.concurrency.value(), of.load.request_rate.value())).collect()
        };
        let next = LinkNumber(2);
        link.handle(ActivatorEvent::LinkOpened { link: next });
        let words = assignments.next_words(next);
        let [ActivatorWord::Hello(hello)] = &words[..] else { panic!("the hello comes first: {words:?}") };
        hello.history.iter().map(|(second, of_all)| (*second, loads(of_all))).collect()
    }

    /// What closes the seconds had no core from 1.5 s to 4.5 s, while other threads took requests. Seconds 1,
    /// 2 and 3 passed meanwhile: none is missing, and the requests of all of them are not those of one. A
    /// revision that became busy in the last of them held nothing in the others.
    #[tokio::test(start_paused = true)]
    async fn a_stall_of_three_seconds_is_shared_out_over_them() {
        for began_at in [500, 3_500] {
            let context = context();
            let assignments = Arc::new(Assignments::new(Arc::clone(&context)));
            let link = link(&context, &assignments);
            let meter = SecondsMeter::new(Arc::clone(&context), Rc::clone(&link), Vec::new());
            let mut running = Box::pin(meter.run());
            let began = Timestamp::from_secs(context.clock.now().whole_secs());
            let wait_until = async |milliseconds| {
                let at = began + Duration::from_millis(milliseconds);
                tokio::time::advance(at.saturating_since(context.clock.now())).await;
            };
            let first = LinkNumber(1);
            link.handle(ActivatorEvent::LinkOpened { link: first });
            link.handle(ActivatorEvent::Assigned { link: first, assignment: Arc::new(assignment()) });
            let revision = assignments.revisions().pop().expect("it is known");
            let mut held = Vec::new();
            for milliseconds in [500, 1_000, 1_500, 3_500, 4_500, 5_000] {
                wait_until(milliseconds).await;
                if milliseconds != 3_500 {
                    assert!(futures_util::poll!(&mut running).is_pending());
                }
                if milliseconds == began_at {
                    held.extend((0..3).map(|_| RequestSeat::arrived(&revision).expect("there is room")));
                }
            }
            let (first, missed) = match began_at {
                500 => (vec![(1.5, 3.0)], vec![(3.0, 0.0)]),
                _ => (Vec::new(), vec![(3.0 / 3.5, 1.0)]),
            };
            let last = vec![(3.0, 0.0)];
            let each = [first, missed.clone(), missed.clone(), missed, last];
            assert_eq!(seconds_of(&link, &assignments), (0..).zip(each).collect::<Vec<_>>());
        }
    }
}
