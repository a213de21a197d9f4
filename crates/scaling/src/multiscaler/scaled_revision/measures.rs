//! The history of the revision: which moments it is told of.
//!
//! The history counts equal seconds at once, so it is told of a change just before it happens, and of a
//! second when the first report after it comes. A revision at rest is not looked at: its next event tells of
//! the whole rest.

use std::ops::Range;

use vocabulary::{PodCount, Reporter, Sample, Timestamp};

use super::ScaledRevision;
use crate::history::{
    CapacityCounts, DemandSeconds, RevisionCondition, RevisionHistory, Series, SeriesRange, WallClock,
};

impl ScaledRevision {
    pub(in crate::multiscaler) fn kept_history(&self) -> Option<&RevisionHistory> {
        self.history.as_deref()
    }

    /// The series up to now; the history itself is left as it is, for readers change nothing.
    pub(in crate::multiscaler) fn series(&self, range: SeriesRange, now: Timestamp) -> Option<Series> {
        let mut history = self.history.as_deref()?.clone();
        self.advance_history(&mut history, now);
        Some(history.series(range))
    }

    pub(in crate::multiscaler) fn set_clock(&mut self, clock: WallClock, now: Timestamp) {
        self.keep_history(now);
        if let Some(mut history) = self.history.take() {
            // The seconds that are pending were numbered by the clock as it was.
            self.with_demand(|demand| history.clock_moved(clock.second_at(now), demand));
            self.history = Some(history);
        }
        self.clock = clock;
    }

    pub(in crate::multiscaler) fn history_restored(
        &mut self,
        mut history: Box<RevisionHistory>,
        now: Timestamp,
    ) {
        history.resume_at(self.clock.second_at(now));
        self.history = Some(history);
    }

    /// Tells the history of all seconds that have ended. Nothing may have changed since the last look.
    pub(super) fn keep_history(&mut self, now: Timestamp) {
        if self.history.is_none() && !self.is_at_rest() {
            // The request that ended the rest came in the second before its report.
            let first = self.clock.second_at(now).saturating_sub(1);
            self.history = Some(Box::new(RevisionHistory::beginning_at(first)));
        }
        if let Some(mut history) = self.history.take() {
            self.advance_history(&mut history, now);
            self.history = Some(history);
        }
    }

    /// Whether there is no pod, none is wanted, and the windows hold no request.
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_idle_at_zero() && self.collectors.first().holds_nothing()
    }

    /// The count is about to change, by us or by another client.
    pub(super) fn note_count(&mut self, to: PodCount, now: Timestamp) {
        self.keep_history(now);
        let first = self.clock.second_at(now);
        let history = self.history.get_or_insert_with(|| Box::new(RevisionHistory::beginning_at(first)));
        history.note_count(self.wanted.value(), to.value(), now);
    }

    pub(super) fn note_ready_pods(&mut self, now: Timestamp) {
        if let Some(history) = self.history.as_mut().filter(|_| !self.pods.ready().is_empty()) {
            history.note_ready(now);
        }
    }

    pub(super) fn note_busy(&mut self, reporter: Reporter, sample: Sample) {
        let is_busy = sample.load.concurrency.value() > 0.0 || sample.load.request_rate.value() > 0.0;
        match reporter {
            Reporter::Pod(_) if is_busy => {
                if let Some(history) = &mut self.history {
                    history.note_busy_pod();
                }
            }
            Reporter::Pod(_) | Reporter::Activator(_) => {}
        }
    }

    pub(super) fn note_waiting(&mut self) {
        if let Some(history) = &mut self.history {
            history.note_waiting(self.collectors.first().waiting());
        }
    }

    /// Requests are measured, from now on if they were not before.
    pub(super) fn note_data(&mut self, now: Timestamp) {
        if !self.has_data {
            self.keep_history(now);
            self.has_data = true;
        }
    }

    /// Requests are not measured, from now on if they were before.
    pub(super) fn note_no_data(&mut self, now: Timestamp) {
        if self.has_data {
            self.keep_history(now);
            self.has_data = false;
        }
    }

    fn advance_history(&self, history: &mut RevisionHistory, now: Timestamp) {
        let second = self.clock.second_at(now);
        // Asked first: most reports come within a second of which the history was told.
        if second > history.running_second() {
            self.with_demand(|demand| history.advance(second, self.condition(), demand));
        }
    }

    fn condition(&self) -> RevisionCondition {
        let counts = self.pods.counts();
        let (not_ready, ending) = (counts.not_ready.value(), counts.terminating.value());
        RevisionCondition {
            capacity: CapacityCounts {
                wanted: self.wanted.value(),
                ready: counts.ready.value(),
                starting: not_ready.saturating_sub(ending),
                ending,
            },
            waiting: self.collectors.first().waiting(),
            is_heard: self.has_data,
        }
    }

    fn with_demand(&self, act: impl FnOnce(&DemandSeconds<'_>)) {
        let (collector, clock) = (self.collectors.first(), self.clock);
        let at = |second| collector.demand_at(clock.monotonic(second));
        let Range { start, end } = collector.reported_seconds();
        act(&DemandSeconds { at: &at, reported: clock.wall(start)..clock.wall(end) });
    }
}
