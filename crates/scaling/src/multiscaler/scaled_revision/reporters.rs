//! What reporters say of the revision, and which of it is acted upon at once.

use vocabulary::{BootId, PodCount, PresentCount, Reporter, Sample, Timestamp};

use super::{Commands, ScaledRevision};
use crate::decision::Trigger;
use crate::multiscaler::collectors::Collectors;
use crate::surge;

impl ScaledRevision {
    pub(in crate::multiscaler) fn reporter_started(
        &mut self,
        reporter: Reporter,
        boot: BootId,
        second: u64,
        now: Timestamp,
    ) {
        self.collectors.start_reporter(reporter, boot, second, now);
    }

    pub(in crate::multiscaler) fn history(&mut self, reporter: Reporter, sample: Sample, now: Timestamp) {
        self.end_rest_of_history();
        self.collectors.record(reporter, sample, now);
    }

    pub(in crate::multiscaler) fn reporter_heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        match reporter {
            // Knative asks ready pods only. One that starts for a minute must not dilute the first load that
            // it gets.
            Reporter::Pod(pod) if self.pods.is_ready(pod) => self.collectors.idle(pod, second, now),
            Reporter::Pod(_) | Reporter::Activator(_) => self.collectors.heard(reporter, second, now),
        }
    }

    pub(in crate::multiscaler) fn reporter_lost(&mut self, reporter: Reporter, now: Timestamp) {
        self.collectors.lost(reporter, now);
    }

    pub(in crate::multiscaler) fn reporter_removed(&mut self, reporter: Reporter) {
        self.collectors.remove(reporter);
    }

    /// A reporter's second. It is acted upon at once if it shows demand where none was seen (Knative's poke),
    /// or a growing queue.
    pub(in crate::multiscaler) fn load_reported(
        &mut self,
        reporter: Reporter,
        sample: Sample,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        self.keep_history(now);
        self.note_busy(reporter, sample);
        if sample.load.concurrency.value() > 0.0 || sample.load.request_rate.value() > 0.0 {
            self.note_request(now);
        }
        // All collectors get the same reports, so the first of them knows the waiting requests for any
        // metric.
        let waiting = self.collectors.first().waiting();
        self.collectors.record(reporter, sample, now);
        let queue_grew = self.spec.surge_evaluation && self.collectors.first().waiting() > waiting;
        if queue_grew || self.is_poked_by(reporter, sample.load.concurrency.value() > 0.0) {
            self.evaluate(Trigger::Surge, now, commands);
        }
    }

    /// The requests that a reporter holds at this instant. They are acted upon at once if they grew beyond
    /// the capacity of the present count.
    pub(in crate::multiscaler) fn present_reported(
        &mut self,
        reporter: Reporter,
        count: PresentCount,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        self.keep_history(now);
        if count.in_flight > 0 || count.waiting > 0 {
            self.note_request(now);
        }
        let totals = |collectors: &Collectors| {
            let first = collectors.first();
            (first.present_total().unwrap_or(0.0), first.surge_total(now).unwrap_or(0.0))
        };
        let (present_before, surge_before) = totals(&self.collectors);
        self.collectors.present(reporter, count, now);
        let (present, surge) = totals(&self.collectors);
        // Counts that are decided by grow also where one is repeated that had become too old for that.
        let has_grown = present > present_before || surge > surge_before;
        let needs_more = || {
            // Evaluating for a need that is already met could change nothing, and bursts are reported up to
            // fifty times a second.
            let provided =
                self.algorithm.desired().map_or(PodCount::ZERO, |desired| desired.min(self.reactive()));
            surge::need(&self.spec, surge, self.reactive_ready()) > provided
        };
        let surges = self.spec.surge_evaluation && has_grown && needs_more();
        if surges || self.is_poked_by(reporter, count.in_flight > 0) {
            self.evaluate(Trigger::Surge, now, commands);
        }
    }

    /// Knative's poke: an activator saw demand, and the last answer was exactly zero.
    fn is_poked_by(&self, reporter: Reporter, sees_demand: bool) -> bool {
        sees_demand
            && matches!(reporter, Reporter::Activator(_))
            && self.algorithm.counts_requests()
            && self.algorithm.desired() == Some(PodCount::ZERO)
    }
}
