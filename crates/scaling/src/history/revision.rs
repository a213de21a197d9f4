//! The history of one revision: seconds in, minutes and hours out.
//!
//! A second is closed three seconds after its end, when its late reports have come; its capacity is looked at
//! when it ends. Both happen at the next event, however much later that is: between two events nothing
//! changes, so the seconds between them are equal but for the demand that is still being reported.

use std::ops::Range;
use std::sync::Arc;

use forecasting::{MinuteDemand, PredictionRecord};
use serde::{Deserialize, Serialize};
use settings::{DemandMetric, Metric};
use vocabulary::Timestamp;

use super::demand_days::{DemandBin, DemandDays};
use super::facts::{DemandSeconds, ReplacementCause, RevisionCondition, SecondFacts};
use super::packed::{PackedRows, RowLimits, RowRun};
use super::tally::{SECOND_FIELDS, SPAN_FIELDS, SpanTally, row_of_second};
use super::totals::LifeTotals;
use crate::window::SecondSums;

/// Reports of a second can be replaced for three seconds after it.
const LATE_SECONDS: u64 = 3;
/// Fifteen minutes by the second.
pub(super) const SECONDS_KEPT: RowLimits = RowLimits { rows: 15 * 60, bytes: 10_000 };
/// Twenty-six hours by the minute: a day, and what days of daylight saving differ by.
pub(super) const MINUTES_KEPT: RowLimits = RowLimits { rows: 26 * 60, bytes: 30_000 };
/// Thirty-five days by the hour: five weeks.
pub(super) const HOURS_KEPT: RowLimits = RowLimits { rows: 35 * 24, bytes: 30_000 };
pub(super) const MINUTE: u64 = 60;
pub(super) const HOUR: u64 = 3600;
/// A clock that is put back by more was wrong before: what it stamped is not kept.
pub(super) const CLOCK_REPEATS_MAX: u64 = HOUR;

/// What was measured of a revision and decided about it.
///
/// A copy shares with this value everything that is not written any more. To copy costs this value and six
/// references, less than 1 KB; what a copy or this value writes next is copied then, the second that is added
/// with at most 1 KB of seconds before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionHistory {
    pub(super) seconds: PackedRows<SECOND_FIELDS>,
    pub(super) minutes: PackedRows<SPAN_FIELDS>,
    pub(super) hours: PackedRows<SPAN_FIELDS>,
    pub(super) minute: OpenSpan,
    pub(super) hour: OpenSpan,
    /// The first second that is not closed.
    pub(super) next: u64,
    /// The seconds from `next` on that have ended and are not closed; none while the revision rests.
    pub(super) pending: Vec<SecondFacts>,
    /// What happened in the second that runs, behind the pending ones.
    running: SecondFacts,
    /// Busy pods that were reported in the second after theirs.
    late_busy: u32,
    /// The requests that waited in the second before `next`.
    last_waiting: u32,
    waking_since: Option<Timestamp>,
    /// What the ended hours came to since this process measures; `None` before the first.
    pub(super) ended_hours: Option<Arc<LifeTotals>>,
    pub(super) demand: Option<Arc<DemandDays>>,
    /// What a store has read of the forecast, on its way to that.
    pub(super) forecast: Option<Box<PredictionRecord>>,
}

/// A minute or an hour that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenSpan {
    pub(super) index: u64,
    pub(super) tally: SpanTally,
}

/// Seconds that are all equal.
#[derive(Clone, Copy)]
struct EqualSeconds {
    count: u64,
    facts: SecondFacts,
    demand: SecondSums,
}

impl RevisionHistory {
    /// A history that begins with this second since 1970.
    pub(crate) fn beginning_at(second: u64) -> Self {
        Self {
            seconds: PackedRows::new(&SECONDS_KEPT),
            minutes: PackedRows::new(&MINUTES_KEPT),
            hours: PackedRows::new(&HOURS_KEPT),
            minute: OpenSpan::default(),
            hour: OpenSpan::default(),
            next: second,
            pending: Vec::new(),
            running: SecondFacts::default(),
            late_busy: 0,
            last_waiting: 0,
            waking_since: None,
            ended_hours: None,
            demand: None,
            forecast: None,
        }
    }

    /// A history that ends with this second since 1970, and has nothing but this demand.
    pub fn of_demand(end: u64, demand: DemandDays) -> Self {
        Self { demand: Some(Arc::new(demand)), ..Self::beginning_at(end) }
    }

    /// Takes in demand that was measured elsewhere, whether demand was kept until now or not.
    pub fn add_demand(&mut self, demand: &DemandDays) {
        self.keep_demand(demand.metric(), demand.bin());
        self.import_demand(demand);
    }

    /// The second that runs, as far as the history knows.
    pub(crate) fn running_second(&self) -> u64 {
        self.next + u64::try_from(self.pending.len()).unwrap_or(0)
    }

    /// Ends the seconds before `second`, which runs now. In all of them the revision was in this condition.
    pub(crate) fn advance(&mut self, second: u64, condition: RevisionCondition, demand: &DemandSeconds<'_>) {
        if second <= self.running_second() {
            return;
        }
        let mut ended = std::mem::take(&mut self.running);
        let waiting = ended.condition.waiting.max(condition.waiting);
        ended.condition = RevisionCondition { waiting, ..condition };
        self.pending.push(ended);
        let steady = SecondFacts::new(condition);
        self.close_before(second.saturating_sub(LATE_SECONDS), steady, demand);
        while self.running_second() < second {
            self.pending.push(steady);
        }
    }

    /// The revision rests in this condition. Seconds that are pending and are like it take no memory: the
    /// next look finds that they ended, and that they were like all after them.
    pub(crate) fn rest(&mut self, condition: RevisionCondition) {
        let steady = SecondFacts::new(condition);
        if self.running == SecondFacts::default() && self.pending.iter().all(|facts| *facts == steady) {
            self.pending = Vec::new();
        }
    }

    /// Goes on at another second, since the clock shows another time: a gap where it leaps forward. A clock
    /// that was put back repeats seconds, which are measured once, by what is the case until it has caught
    /// up; one that was wrong by more than an hour loses what it stamped.
    pub(crate) fn clock_moved(&mut self, second: u64, demand: &DemandSeconds<'_>) {
        let end = self.running_second();
        self.close_before(end, SecondFacts::default(), demand);
        self.go_on_at(second);
    }

    /// Goes on after a restart, in which nothing was observed.
    pub(crate) fn resume_at(&mut self, second: u64) {
        self.pending.clear();
        self.running = SecondFacts::default();
        self.go_on_at(second);
    }

    /// A pod held a request in the second that ended last.
    pub(crate) fn note_busy_pod(&mut self) {
        if let Some(ended) = self.pending.last_mut() {
            ended.busy = ended.busy.saturating_add(1);
        }
    }

    /// The number of requests that wait at this moment.
    pub(crate) fn note_waiting(&mut self, waiting: u32) {
        let known = &mut self.running.condition.waiting;
        *known = waiting.max(*known);
    }

    /// The greatest number of requests that was noted as waiting in the second that runs.
    pub(crate) fn waiting_now(&self) -> u32 {
        self.running.condition.waiting
    }

    /// Whether a cold start is under way.
    pub(crate) fn is_waking(&self) -> bool {
        self.waking_since.is_some()
    }

    /// The count changed; a raise from zero is a cold start, which ends with the first ready pod.
    pub(crate) fn note_count(&mut self, from: u32, to: u32, now: Timestamp) {
        self.running.note_raise(from, to);
        self.waking_since = match (from, to) {
            (_, 0) => None,
            (0, _) => Some(now),
            (_, _) => self.waking_since,
        };
    }

    /// Pods were started in the place of others, without a raise of the count.
    pub(crate) fn note_replacements(&mut self, cause: ReplacementCause, pods: u32) {
        self.running.replacements.note(cause, pods);
    }

    /// A pod is ready: a cold start has ended, if one was under way.
    pub(crate) fn note_ready(&mut self, now: Timestamp) {
        if let Some(since) = self.waking_since.take() {
            let waited = now.saturating_since(since).as_millis();
            self.running.wakes.note(u32::try_from(waited).unwrap_or(u32::MAX));
        }
    }

    /// Takes out what a store has read of the forecast.
    pub(crate) fn take_forecast(&mut self) -> Option<PredictionRecord> {
        self.forecast.take().map(|record| *record)
    }

    /// The first second since 1970 that is not closed.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    /// Begins to keep the demand of a metric for fifteen days, in minutes of this length. Another metric, or
    /// another length, begins anew.
    pub(crate) fn keep_demand(&mut self, metric: impl Into<DemandMetric>, bin: DemandBin) {
        let metric = metric.into();
        let is_kept = |days: &Arc<DemandDays>| days.metric() == metric && days.bin() == bin;
        if !self.demand.as_ref().is_some_and(is_kept) {
            self.demand = Some(Arc::new(DemandDays::new(metric, bin)));
        }
    }

    /// Takes in demand that was measured elsewhere, where demand of the same metric and of minutes of the
    /// same length is kept.
    pub(crate) fn import_demand(&mut self, imported: &DemandDays) {
        let is_kept =
            |days: &&mut Arc<DemandDays>| days.metric() == imported.metric() && days.bin() == imported.bin();
        if let Some(days) = self.demand.as_mut().filter(is_kept) {
            *days = Arc::new(days.merged_with(imported));
        }
    }

    /// Forgets the demand of the past fifteen days, and keeps no more of it.
    pub fn forget_demand(&mut self) {
        self.demand = None;
    }

    /// The demand of the past fifteen days; `None` unless it is kept.
    pub fn demand(&self) -> Option<&DemandDays> {
        self.demand.as_deref()
    }

    /// Whether rows that are kept no longer take memory once this second runs: those of a revision that has
    /// rested since.
    pub(crate) fn has_old_rows(&self, second: u64) -> bool {
        self.seconds.has_old(second)
            || self.minutes.has_old(second / MINUTE)
            || self.hours.has_old(second / HOUR)
    }

    /// Gives back the memory of rows that are kept no longer.
    pub(crate) fn forget_old_rows(&mut self, second: u64) {
        self.seconds.forget_old(second);
        self.minutes.forget_old(second / MINUTE);
        self.hours.forget_old(second / HOUR);
    }

    /// The memory in use, in bytes, with what copies share.
    pub fn bytes(&self) -> usize {
        let rows = self.seconds.heap_bytes() + self.minutes.heap_bytes() + self.hours.heap_bytes();
        let demand = self.demand.as_ref().map_or(0, |demand| size_of::<DemandDays>() + demand.heap_bytes());
        let totals =
            self.ended_hours.as_ref().map_or(0, |_| size_of::<LifeTotals>() + 2 * size_of::<usize>());
        size_of::<Self>() + self.pending.capacity() * size_of::<SecondFacts>() + rows + totals + demand
    }

    /// What all closed seconds came to since this process measures. It only grows.
    pub(super) fn totals(&self) -> LifeTotals {
        self.ended_hours.as_deref().copied().unwrap_or_default().with(&self.hour.tally.span())
    }

    /// The same once it has rested in this condition until a second that runs, without the rest being told.
    /// `None` where seconds before the rest are not closed yet: their end has to be told first.
    pub(super) fn totals_after_rest(&self, second: u64, condition: RevisionCondition) -> Option<LifeTotals> {
        let is_closed =
            self.pending.is_empty() && self.running == SecondFacts::default() && self.late_busy == 0;
        let rest = second.saturating_sub(LATE_SECONDS).saturating_sub(self.next).min(HOURS_KEPT.rows * HOUR);
        is_closed.then(|| self.totals().after_rest(condition.capacity, rest))
    }

    /// What the hour that runs has come to was measured by another process, and is counted there.
    pub(super) fn count_without_open_hour(&mut self) {
        let totals = self.ended_hours.as_deref().copied().unwrap_or_default();
        self.ended_hours = Some(Arc::new(totals.without(&self.hour.tally.span())));
    }

    /// Closes the seconds before `end`: first the pending ones, then others that were like `steady`.
    fn close_before(&mut self, end: u64, steady: SecondFacts, demand: &DemandSeconds<'_>) {
        while self.next < end {
            let is_steady = self.pending.is_empty();
            let facts = if is_steady { steady } else { self.pending.remove(0) };
            // A rest of weeks is closed at once: looking at each of its seconds would hold the wake up.
            let quiet =
                if is_steady && self.late_busy == 0 { quiet_seconds(self.next..end, demand) } else { 0 };
            let (count, demand) =
                if quiet > 0 { (quiet, SecondSums::default()) } else { (1, (demand.at)(self.next)) };
            let facts = self.with_late_busy(facts);
            self.close(EqualSeconds { count, facts, demand });
        }
    }

    fn go_on_at(&mut self, second: u64) {
        if second > self.next {
            self.next = second;
        } else if self.next - second > CLOCK_REPEATS_MAX {
            self.seconds.truncate(second);
            self.minutes.truncate(second / MINUTE);
            self.hours.truncate(second / HOUR);
            self.count_ended_hour(self.hour);
            (self.minute, self.hour) = (OpenSpan::default(), OpenSpan::default());
            self.next = second;
        }
    }

    /// A pod's reports of two seconds may come within one, and none in the next. No more pods can have been
    /// busy than were ready; the others were in the second after.
    fn with_late_busy(&mut self, mut facts: SecondFacts) -> SecondFacts {
        let ready = facts.condition.capacity.ready;
        let busy = facts.busy.saturating_add(self.late_busy);
        facts.busy = busy.min(ready);
        self.late_busy = (busy - facts.busy).min(ready);
        facts
    }

    fn close(&mut self, seconds: EqualSeconds) {
        let EqualSeconds { mut count, mut facts, demand } = seconds;
        // Demand has a reporter, also before the first evaluation, which is what notes that one is heard.
        facts.condition.is_heard |= demand != SecondSums::default();
        facts.waited = facts.condition.waiting.saturating_sub(self.last_waiting);
        self.last_waiting = facts.condition.waiting;
        let end = self.next.saturating_add(count);
        // What is older than everything that is kept would be dropped as soon as it was written.
        count = count.min(HOURS_KEPT.rows * HOUR);
        let kept = count.min(SECONDS_KEPT.rows);
        self.seconds.push(RowRun { first: end - kept, count: kept, row: row_of_second(&facts, demand) });
        self.note_seconds(end - kept..end, facts.condition, demand);
        let mut second = end - count;
        while second < end {
            let is_recent = end - second <= MINUTES_KEPT.rows * MINUTE + MINUTE;
            let step = if is_recent { MINUTE } else { HOUR };
            let part_end = end.min((second / step + 1) * step);
            let part = u32::try_from(part_end - second).expect("an hour has 3,600 seconds");
            if is_recent {
                self.open_minute(second / MINUTE);
                self.minute.tally.add(&facts, demand, part);
                if let (Some(cpu), Some(days)) = (facts.condition.cpu, &mut self.demand) {
                    Arc::make_mut(days).note_cpu(cores(cpu), part);
                }
            }
            self.open_hour(second / HOUR);
            self.hour.tally.add(&facts, demand, part);
            // They came to wait in the first of the seconds.
            facts.waited = 0;
            second = part_end;
        }
        self.next = end;
    }

    /// Ends the open minute, if it is not this one.
    fn open_minute(&mut self, minute: u64) {
        let Some(OpenSpan { index, tally }) = self.minute.follow_with(minute) else { return };
        self.minutes.push(RowRun { first: index, count: 1, row: tally.minute_row() });
        let Some(days) = self.demand.as_mut().filter(|days| days.bin() == DemandBin::Minute) else { return };
        let requests = match days.metric() {
            DemandMetric::Concurrency => Metric::Concurrency,
            DemandMetric::Rps => Metric::Rps,
            DemandMetric::Cpu => return Arc::make_mut(days).end_cpu_minute(index),
        };
        if tally.heard_seconds() > 0 {
            let [mean, maximum] = [tally.mean(), tally.maximum()].map(|sums| sums.of(requests));
            Arc::make_mut(days).note(index, MinuteDemand { mean, maximum });
        }
    }

    /// Notes the demand of seconds where these stand for minutes.
    fn note_seconds(&mut self, seconds: Range<u64>, condition: RevisionCondition, demand: SecondSums) {
        let Some(days) = self.demand.as_mut().filter(|days| days.bin() == DemandBin::Second) else { return };
        let known = match days.metric() {
            DemandMetric::Concurrency => condition.is_heard.then_some(demand.concurrency),
            DemandMetric::Rps => condition.is_heard.then_some(demand.rate),
            DemandMetric::Cpu => condition.cpu.map(cores),
        };
        if let Some(demand) = known {
            let days = Arc::make_mut(days);
            seconds.for_each(|second| days.note(second, MinuteDemand { mean: demand, maximum: demand }));
        }
    }

    /// Ends the open hour, if it is not this one.
    fn open_hour(&mut self, hour: u64) {
        if let Some(ended) = self.hour.follow_with(hour) {
            self.hours.push(RowRun { first: ended.index, count: 1, row: ended.tally.row() });
            self.count_ended_hour(ended);
        }
    }

    fn count_ended_hour(&mut self, ended: OpenSpan) {
        let totals = self.ended_hours.as_deref().copied().unwrap_or_default();
        self.ended_hours = Some(Arc::new(totals.with(&ended.tally.span())));
    }
}

fn cores(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1000.0
}

/// The number of seconds from the first one on in which nothing was asked for.
fn quiet_seconds(seconds: Range<u64>, demand: &DemandSeconds<'_>) -> u64 {
    if seconds.start < demand.reported.start {
        seconds.end.min(demand.reported.start) - seconds.start
    } else if seconds.start >= demand.reported.end {
        seconds.end - seconds.start
    } else {
        0
    }
}

impl OpenSpan {
    /// Begins the span of this number; the former one, if that was another in which anything was measured.
    fn follow_with(&mut self, index: u64) -> Option<Self> {
        if self.index == index {
            return None;
        }
        let former = std::mem::replace(self, Self { index, tally: SpanTally::default() });
        (!former.tally.is_empty()).then_some(former)
    }
}
