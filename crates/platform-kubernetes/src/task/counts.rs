//! How do counts of workloads reach the API server, and what follows from its answers?

use orchestration::OrderOutcome;
use vocabulary::{RevisionName, Timestamp};

use super::{Answer, ClusterTask};
use crate::requests::{CountWrite, Failure, ScaleAnswer, ScaleSubject};

impl ClusterTask {
    pub(super) fn write_counts(&mut self, now: Timestamp) {
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for (revision, queue) in &mut self.count_writes {
            let Some(write) = queue.begin(now) else { continue };
            let Some(target) = self.index.record_of(revision).map(ScaleSubject::of) else {
                queue.done();
                gone.push((write.seat, write.order));
                continue;
            };
            if !self.index.may_change(revision, write.from, write.to) {
                queue.done();
                kept.push((write.seat, write.order, write.from));
                continue;
            }
            if write.from != write.to {
                self.own_counts.written(revision, write.to);
            }
            self.index.count_begins(revision, write.to);
            let is_smaller = write.to < write.from;
            let hints = is_smaller.then(|| self.index.deletion_hints(revision, write.to, &write.end_first));
            let (requests, revision) = (self.requests.clone(), revision.clone());
            // A panic in it is ours.
            self.answers.spawn(async move {
                // Before the count: Kubernetes chooses which pods to end as soon as the count is smaller.
                requests.hint(write.fence, revision.namespace(), &hints.unwrap_or_default()).await;
                let answer = requests.scale(&write, &target).await;
                Answer::Scaled(revision, answer)
            });
        }
        for key in gone {
            self.order_ended(key, OrderOutcome::Gone);
        }
        // The count stays as if another writer had written it again. The Service's problems say why.
        for (seat, order, found) in kept {
            self.order_ended((seat, order), OrderOutcome::Conflict { found });
        }
        self.count_writes.retain(|_, queue| !queue.is_idle(now));
    }

    pub(super) fn scaled(
        &mut self,
        revision: &RevisionName,
        answer: Result<ScaleAnswer, Failure>,
        now: Timestamp,
    ) {
        let version = answer.as_ref().ok().and_then(|answer| answer.version);
        self.index.count_ended(revision, version);
        let outcome = answer.map(|answer| answer.outcome);
        let Some(queue) = self.count_writes.get_mut(revision) else { return };
        let Some(write) = queue.under_way() else { return };
        let key = (write.seat, write.order);
        let write = write.clone();
        self.note_scaling(&write, &outcome, now);
        let Some(queue) = self.count_writes.get_mut(revision) else { return };
        let replaced = match &outcome {
            Err(Failure::Passing { after, .. }) => queue.failed(*after, now),
            // Whether the object is gone is for the watch to say: the index is asked before the next attempt.
            Err(Failure::Conflict | Failure::Gone(_) | Failure::Refused(_) | Failure::Forbidden(_)) => {
                queue.failed(None, now)
            }
            Ok(_) | Err(Failure::NotOwner) => {
                queue.done();
                None
            }
        };
        if let (Ok(OrderOutcome::Done), Some(waiting)) = (&outcome, queue.waiting_mut()) {
            waiting.rebase_onto(&write);
        }
        if let (Some(replaced), Some(waiting)) = (&replaced, queue.waiting_mut()) {
            waiting.supersede(replaced);
        }
        let outcome = outcome.unwrap_or_else(|failure| {
            tracing::warn!(%revision, ?failure, "the count could not be written");
            failure.outcome()
        });
        self.order_ended(key, outcome);
        self.superseded(replaced);
    }

    pub(super) fn superseded(&mut self, write: Option<CountWrite>) {
        if let Some(write) = write {
            self.order_ended((write.seat, write.order), OrderOutcome::Superseded);
        }
    }
}
