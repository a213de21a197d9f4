//! What a revision says of itself: to its owner by the second and early, and to the shell.

use std::sync::Arc;
use std::time::Duration;

use vocabulary::{Assignment, PodName, PresentCount, Standing, Timestamp};

use super::{ActivatorRevision, Activity, ClosedSecond, RevisionCommand, RevisionNews};
use crate::throttler::Dispatch;

impl ActivatorRevision {
    /// What the thread of the links has to hear; it is no news after that.
    pub fn take_news(&mut self) -> RevisionNews {
        self.retirement.is_noted = false;
        std::mem::take(&mut self.news)
    }

    /// Lets time pass, and takes all news with those that this has brought: no command asks for them then.
    pub(crate) fn advance_and_take_news(&mut self, now: Timestamp) -> RevisionNews {
        self.advance(now);
        self.commands.retain(|command| *command != RevisionCommand::TakeNews);
        self.take_news()
    }

    /// The present count for an early report, and how long the oldest request has waited. The count is the
    /// one reported from now on.
    pub fn take_early_report(&mut self, now: Timestamp) -> (PresentCount, Duration) {
        let count = self.present();
        self.report.made(count.in_flight, now);
        (count, self.oldest_wait(now))
    }

    /// Ends so many seconds, the first of which began at `began`, and says what each of them held. `None` if
    /// there is nothing to say any more: the revision is idle from now on.
    pub fn close_seconds(&mut self, count: u32, began: Timestamp, now: Timestamp) -> Option<ClosedSecond> {
        if let Activity::Begun(at) = self.activity {
            self.meter.began_earlier(at.saturating_since(began));
        }
        let measured = self.meter.close_seconds(count, now);
        let has_refused = std::mem::take(&mut self.has_refused_under_hold);
        let mut load = if has_refused { measured.with_refused_requests() } else { measured };
        let present = self.present();
        load.queued = present.waiting;
        self.report.closed_with(present.in_flight);
        if load.is_zero() && present.in_flight == 0 {
            self.activity = Activity::Idle;
            return None;
        }
        self.activity = Activity::Measured;
        Some(ClosedSecond { load, oldest_wait: self.oldest_wait(now) })
    }

    /// The assignment that is in force.
    pub fn assignment(&self) -> &Arc<Assignment> {
        &self.assignment
    }

    /// Whether this activator is to serve the revision.
    pub fn standing(&self) -> Standing {
        self.retirement.standing
    }

    /// Whether the revision is known to its activator no more: it refuses every request.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The requests that are part of the load, and those of them that wait.
    pub fn present(&self) -> PresentCount {
        let waiting = self.throttler.counts().waiting;
        PresentCount { in_flight: self.meter.present().in_flight, waiting }
    }

    /// Requests that wait or run in pods, through the queue or past it.
    pub fn held(&self) -> u32 {
        self.throttler.held()
    }

    /// Whether any pod is ready, with or without a free slot.
    pub fn has_ready_pod(&self) -> bool {
        self.throttler.has_ready_pod()
    }

    /// The name of the pod that takes a request.
    pub fn pod_name(&self, dispatch: &Dispatch) -> Option<&PodName> {
        self.throttler.pod_name(dispatch.pod)
    }

    /// The reason for which requests wait, as a text for clients.
    pub fn waits_for(&self) -> &str {
        if self.throttler.has_ready_pod() {
            "every slot of its ready pods is taken"
        } else if self.assignment.waiting_for.is_empty() {
            "no pod is ready"
        } else {
            &self.assignment.waiting_for
        }
    }

    fn oldest_wait(&self, now: Timestamp) -> Duration {
        let oldest = self.throttler.counts().oldest_arrival;
        oldest.map_or(Duration::ZERO, |arrival| now.saturating_since(arrival))
    }
}
