//! The history of the revision: which moments it is told of.
//!
//! The history counts equal seconds at once, so it is told of a change just before it happens, and of a
//! second when the first report after it comes. A revision that rests, with pods or without, is not looked
//! at: its next event tells of the whole rest. So its history is not written either, and readers share the
//! one copy that there is.

use std::ops::Range;
use std::sync::Arc;

use forecasting::PredictionRecord;
use vocabulary::{PodCount, Reporter, Sample, Timestamp};

use super::{DecisionNews, HistoryFeed, ScaledRevision};
use crate::history::{
    CapacityCounts, DemandDays, DemandSeconds, PublishedHistory, RevisionCondition, RevisionHistory,
    WallClock,
};
use crate::multiscaler::PodFact;
use crate::multiscaler::prediction::demand_bin;

impl ScaledRevision {
    pub(in crate::multiscaler) fn kept_history(&self) -> Option<&RevisionHistory> {
        self.history.as_deref()
    }

    /// The history for readers, as it is now. It costs one more reference.
    pub(in crate::multiscaler) fn published_history(&self) -> Option<PublishedHistory> {
        let history = Arc::clone(self.history.as_ref()?);
        let rests = self.history_feed == HistoryFeed::Resting;
        let rest = rests.then(|| RevisionCondition { waiting: 0, ..self.condition() });
        Some(PublishedHistory::new(history, self.clock, rest))
    }

    /// The revision appears. Its history begins with this second, unless it sleeps.
    pub(in crate::multiscaler) fn begin_history(&mut self, clock: WallClock, now: Timestamp) {
        self.clock = clock;
        if !self.is_at_rest(now) {
            self.history = Some(Arc::new(RevisionHistory::beginning_at(clock.second_at(now))));
            self.news = DecisionNews::Changed;
        }
    }

    /// The wall clock shows another time than the one by which the history went.
    pub(in crate::multiscaler) fn set_clock(&mut self, clock: WallClock, now: Timestamp) {
        self.keep_history(now);
        let second = clock.second_at(now);
        // The seconds that are pending were numbered by the clock as it was.
        self.change_history(|history, revision| {
            revision.with_demand(|demand| history.clock_moved(second, demand));
        });
        self.clock = clock;
    }

    pub(in crate::multiscaler) fn history_restored(
        &mut self,
        mut history: Box<RevisionHistory>,
        now: Timestamp,
    ) {
        let second = self.clock.second_at(now);
        let forecast = history.take_forecast();
        let is_same_metric = history.demand().map(DemandDays::metric) == Some(self.spec.demand().metric);
        let seconds_ago = second.saturating_sub(history.end());
        history.resume_at(second);
        self.history = Some(Arc::from(history));
        self.history_feed = HistoryFeed::EachSecond;
        self.news = DecisionNews::Changed;
        self.note_other_past();
        if let Some(mut record) = forecast {
            if !is_same_metric {
                // Sums of another metric say nothing of this one. The count is one of pods.
                record = PredictionRecord { reactive: record.reactive, ..PredictionRecord::default() };
            }
            self.restore_forecast(&record, seconds_ago, now);
        }
        self.keep_demand();
        self.watch_demand(now);
    }

    pub(in crate::multiscaler) fn demand_imported(&mut self, demand: &DemandDays, now: Timestamp) {
        self.keep_history(now);
        let second = self.clock.second_at(now);
        // A revision that was never used has a past from now on.
        self.history.get_or_insert_with(|| Arc::new(RevisionHistory::beginning_at(second)));
        self.keep_demand();
        self.change_history(|history, _| history.import_demand(demand));
        self.note_other_past();
        self.watch_demand(now);
    }

    /// Keeps the demand of fifteen days where a forecast reads it, and nowhere else.
    pub(super) fn keep_demand(&mut self) {
        let metric = self.spec.demand().metric;
        let asked = self.spec.prediction.as_ref().map(|asked| (metric, demand_bin(asked)));
        let kind = |days: &DemandDays| (days.metric(), days.bin());
        let kept = self.history.as_ref().map(|history| history.demand().map(kind));
        if kept.is_some_and(|kept| kept != asked) {
            self.change_history(|history, _| match asked {
                Some((metric, bin)) => history.keep_demand(metric, bin),
                None => history.forget_demand(),
            });
        }
    }

    /// Tells the history of all seconds that have ended. Nothing may have changed since the last look.
    pub(super) fn keep_history(&mut self, now: Timestamp) {
        self.end_rest_of_history();
        let second = self.clock.second_at(now);
        if self.history.is_none() && !self.is_at_rest(now) {
            // The request that ended the rest came in the second before its report.
            self.history = Some(Arc::new(RevisionHistory::beginning_at(second.saturating_sub(1))));
        }
        // Asked first: most reports come within a second of which the history was told.
        if self.history.as_ref().is_some_and(|history| history.running_second() < second) {
            self.change_history(|history, revision| {
                revision.with_demand(|demand| history.advance(second, revision.condition(), demand));
            });
        }
    }

    /// Tells the history of the time since the last evaluation, unless the revision rested all the while.
    pub(super) fn keep_history_at_evaluation(&mut self, now: Timestamp) {
        if self.history_feed == HistoryFeed::Resting && self.is_quiet(now) {
            return self.forget_old_rows(now);
        }
        self.keep_history(now);
        self.note_waiting();
        // Told once more when nothing is asked for any longer: the last second with demand is closed by that.
        self.history_feed = HistoryFeed::EachSecond;
        if self.is_quiet(now) {
            self.history_feed = HistoryFeed::Resting;
            // From now on readers add the time that passes, so this is news to them in any case.
            let condition = self.condition();
            self.change_history(|history, _| history.rest(condition));
        }
    }

    /// Whether there is no pod, none is wanted, and the windows hold no request.
    fn is_at_rest(&self, now: Timestamp) -> bool {
        self.is_idle_at_zero() && self.collectors.first().holds_nothing(now)
    }

    /// The count is about to change, by us or by another client.
    pub(super) fn note_count(&mut self, to: PodCount, now: Timestamp) {
        self.keep_history(now);
        let (from, first) = (self.wanted, self.clock.second_at(now));
        self.pod_starts.note_count(from, to);
        self.history.get_or_insert_with(|| Arc::new(RevisionHistory::beginning_at(first)));
        self.change_history(|history, _| history.note_count(from.value(), to.value(), now));
    }

    /// The pods are about to be these. Of those that are new, some may stand in for others.
    pub(super) fn note_started_pods(&mut self, facts: &[PodFact]) {
        let appeared = self.pods.appearing(facts);
        if let Some(replacements) = self.pod_starts.note_pods(facts, appeared, self.wanted) {
            self.change_history(|history, _| {
                history.note_replacements(replacements.cause, replacements.pods.value());
            });
        }
    }

    pub(super) fn note_ready_pods(&mut self, now: Timestamp) {
        let is_waking = self.history.as_ref().is_some_and(|history| history.is_waking());
        if is_waking && !self.pods.ready().is_empty() {
            self.change_history(|history, _| history.note_ready(now));
        }
    }

    pub(super) fn note_busy(&mut self, reporter: Reporter, sample: Sample) {
        let is_busy = sample.load.concurrency.value() > 0.0 || sample.load.request_rate.value() > 0.0;
        match reporter {
            Reporter::Pod(_) if is_busy => self.change_history(|history, _| history.note_busy_pod()),
            Reporter::Pod(_) | Reporter::Activator(_) => {}
        }
    }

    /// Something happens, or a past second of a reporter comes into the windows.
    pub(super) fn end_rest_of_history(&mut self) {
        if std::mem::take(&mut self.history_feed) == HistoryFeed::Resting && self.history.is_some() {
            // A reader must not take it for rest any longer.
            self.news = DecisionNews::Changed;
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

    /// Whether the windows hold no request, and none waits.
    fn is_quiet(&self, now: Timestamp) -> bool {
        let collector = self.collectors.first();
        collector.holds_nothing(now) && collector.waiting() == 0
    }

    fn note_waiting(&mut self) {
        let waiting = self.collectors.first().waiting();
        if self.history.as_ref().is_some_and(|history| history.waiting_now() < waiting) {
            self.change_history(|history, _| history.note_waiting(waiting));
        }
    }

    /// A revision that rests for long gives back the memory of what is kept no longer.
    fn forget_old_rows(&mut self, now: Timestamp) {
        let second = self.clock.second_at(now);
        if self.history.as_ref().is_some_and(|history| history.has_old_rows(second)) {
            self.change_history(|history, _| history.forget_old_rows(second));
        }
    }

    /// Every change of the history is made here. If a reader holds the history, the change is made in a copy,
    /// which shares all blocks that have ended.
    fn change_history(&mut self, change: impl FnOnce(&mut RevisionHistory, &Self)) {
        if let Some(mut history) = self.history.take() {
            change(Arc::make_mut(&mut history), self);
            self.history = Some(history);
            self.news = DecisionNews::Changed;
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
            cpu: self.forecast.as_ref().and_then(|forecast| forecast.cpu),
        }
    }

    fn with_demand(&self, act: impl FnOnce(&DemandSeconds<'_>)) {
        let (collector, clock) = (self.collectors.first(), self.clock);
        let at = |second| collector.demand_at(clock.monotonic(second));
        let Range { start, end } = collector.reported_seconds();
        act(&DemandSeconds { at: &at, reported: clock.wall(start)..clock.wall(end) });
    }
}
