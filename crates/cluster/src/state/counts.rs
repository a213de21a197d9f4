//! How do counts of workloads reach the API server, and what is told of its answers?

use orchestration::OrderOutcome;
use vocabulary::{RevisionName, Timestamp};

use super::ClusterState;
use crate::count_writer::{CountStep, CountWrite, WriteEnding};
use crate::resources::workload::ScaleSubject;
use crate::write::{ClusterWrite, Failure, ScaleAnswer};

impl ClusterState {
    pub(super) fn write_counts(&mut self, now: Timestamp) {
        for step in self.index.take_count_steps(now) {
            match step {
                CountStep::Begin(write, subject) => self.begin_count(write, subject),
                CountStep::Refuse(write, outcome) => self.order_ended((write.seat, write.order), outcome),
            }
        }
    }

    fn begin_count(&mut self, write: CountWrite, subject: ScaleSubject) {
        // Before the count: Kubernetes chooses which pods to end as soon as the count is smaller.
        let hints = if write.to < write.from {
            self.index.deletion_hints(&write.revision, write.to, &write.end_first)
        } else {
            Vec::new()
        };
        self.writes.push_back(ClusterWrite::Count { write, subject, hints });
    }

    pub(super) fn scaled(
        &mut self,
        revision: &RevisionName,
        answer: Result<ScaleAnswer, Failure>,
        now: Timestamp,
    ) {
        let Some(ended) = self.index.count_answered(revision, ending(&answer), now) else { return };
        let outcome = answer.map(|answer| answer.outcome);
        self.note_scaling(&ended.write, &outcome, now);
        let outcome = outcome.unwrap_or_else(|failure| failure.outcome());
        let key = (ended.write.seat, ended.write.order);
        self.order_ended(key, outcome);
        if ended.is_replaced {
            self.order_ended(key, OrderOutcome::Superseded);
        }
    }
}

/// What an answer means for the count. Whether the object is gone is for the watch to say: the index is asked
/// before the next attempt.
fn ending(answer: &Result<ScaleAnswer, Failure>) -> WriteEnding {
    match answer {
        Ok(ScaleAnswer { outcome: OrderOutcome::Done, version }) => WriteEnding::Written(*version),
        Ok(_) => WriteEnding::GivenUp,
        Err(Failure::NotOwner) => WriteEnding::NotOwner,
        Err(Failure::Passing { after, .. }) => WriteEnding::Failed(*after),
        Err(Failure::Conflict | Failure::Gone(_) | Failure::Refused(_) | Failure::Forbidden(_)) => {
            WriteEnding::Failed(None)
        }
    }
}
