//! The measures of a span: added up exactly, written as a row of numbers, and read again.

use serde::{Deserialize, Serialize};
use vocabulary::MilliValue;

use super::amount::{amount_of, code_of};
use super::facts::{PLACES, SecondFacts};
use super::span::HistorySpan;
use crate::window::SecondSums;

/// The numbers of a row of seconds.
pub(super) const SECOND_FIELDS: usize = 13;
/// The numbers of a row of minutes or hours.
pub(super) const SPAN_FIELDS: usize = 30;
/// The seconds of the longest span, an hour.
const SECONDS_MAX: u32 = 3600;

/// What is added up of a span that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SpanTally {
    /// All counts, as they will stand in the row; its concurrency is that of each second, added up, and its
    /// requests are in the field below.
    span: HistorySpan,
    /// The requests in thousandths, each second rounded up to one.
    requests: u64,
}

impl SpanTally {
    /// Adds this many seconds, all of them equal; what happened in one of them is in the facts once.
    pub(super) fn add(&mut self, facts: &SecondFacts, demand: SecondSums, count: u32) {
        let (span, condition) = (&mut self.span, facts.condition);
        let capacity = condition.capacity;
        span.seconds += count;
        if condition.is_heard {
            span.heard_seconds += count;
            span.concurrency += demand.concurrency * f64::from(count);
            let requests = u64::try_from(MilliValue::ceil_from(demand.rate * 1000.0).value()).unwrap_or(0);
            self.requests = self.requests.saturating_add(requests.saturating_mul(u64::from(count)));
            span.concurrency_max = span.concurrency_max.max(demand.concurrency);
            span.rate_max = span.rate_max.max(demand.rate);
        }
        span.waiting_max = span.waiting_max.max(condition.waiting);
        let sums = [
            (&mut span.waiting_seconds, condition.waiting),
            (&mut span.wanted_seconds, capacity.wanted),
            (&mut span.ready_seconds, capacity.ready),
            (&mut span.busy_seconds, facts.busy),
            (&mut span.starting_seconds, capacity.starting),
            (&mut span.ending_seconds, capacity.ending),
        ];
        for (sum, each) in sums {
            *sum = sum.saturating_add(each.saturating_mul(count));
        }
        for (sum, raises) in span.raises_from.iter_mut().zip(facts.raises) {
            *sum = sum.saturating_add(raises);
        }
        for (wanted, seconds) in (0..).zip(&mut span.seconds_wanting) {
            *seconds += if wanted == capacity.wanted { count } else { 0 };
        }
        let counts = [
            (&mut span.rollout_starts, facts.replacements.rollout()),
            (&mut span.failed_pod_starts, facts.replacements.failed_pod()),
            (&mut span.waited, facts.waited),
        ];
        for (sum, count) in counts {
            *sum = sum.saturating_add(count);
        }
        span.wakes_ended = span.wakes_ended.saturating_add(facts.wakes.ended);
        span.wake_wait_ms = span.wake_wait_ms.saturating_add(facts.wakes.wait_ms);
        span.wake_wait_ms_max = span.wake_wait_ms_max.max(facts.wakes.wait_ms_max);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.span.seconds == 0
    }

    pub(super) fn heard_seconds(&self) -> u32 {
        self.span.heard_seconds
    }

    /// The averages and maxima of demand, before they are rounded.
    pub(super) fn mean(&self) -> SecondSums {
        let seconds = f64::from(self.span.heard_seconds.max(1));
        SecondSums { concurrency: self.span.concurrency / seconds, rate: self.whole_requests() / seconds }
    }

    pub(super) fn maximum(&self) -> SecondSums {
        SecondSums { concurrency: self.span.concurrency_max, rate: self.span.rate_max }
    }

    /// The span as it is read from its row.
    pub(super) fn span(&self) -> HistorySpan {
        span_of(&self.row())
    }

    /// The row of a minute, without what only the ledger of hours keeps apart: numbers that stay zero take no
    /// place.
    pub(super) fn minute_row(&self) -> [u32; SPAN_FIELDS] {
        let [from_zero, others @ ..] = self.span.raises_from;
        let raises = others.iter().fold(0, |sum: u32, raises| sum.saturating_add(*raises));
        let raises_from = [from_zero, 0, 0, 0, 0, raises];
        let span = HistorySpan { raises_from, seconds_wanting: [0; PLACES - 1], ..self.span };
        Self { span, ..*self }.row()
    }

    /// The row of an hour, with all its numbers. Three of them are differences that are mostly the same from
    /// row to row, and then take no place: of all ready pods those that are idle, by how much the pods that
    /// are ready or start are not those that are wanted, and of the seconds of waiting those of requests that
    /// had waited before.
    pub(super) fn row(&self) -> [u32; SPAN_FIELDS] {
        let span = &self.span;
        let [from_zero, from_one, from_two, from_three, from_four, from_more] = span.raises_from;
        let [zero, one, two, three, four] = span.seconds_wanting;
        [
            code_of(self.mean().concurrency),
            code_of(span.concurrency_max),
            self.requests_rounded(),
            code_of(span.rate_max),
            span.ready_seconds.wrapping_sub(span.busy_seconds),
            span.wanted_seconds,
            span.starting_seconds,
            span.wanted_seconds.wrapping_sub(span.ready_seconds).wrapping_sub(span.starting_seconds),
            span.waiting_seconds,
            span.waiting_max,
            span.waiting_seconds.wrapping_sub(span.waited),
            zero,
            one,
            two,
            three,
            four,
            span.wake_wait_ms,
            span.wakes_ended,
            from_zero,
            from_more,
            span.wake_wait_ms_max,
            span.seconds,
            span.heard_seconds,
            span.ending_seconds,
            from_one,
            from_two,
            from_three,
            from_four,
            span.rollout_starts,
            span.failed_pod_starts,
        ]
    }

    /// Every number of the tally, as a record keeps them: doubles by their bits.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let span = &self.span;
        let doubles = [span.concurrency, span.concurrency_max, span.rate_max].map(f64::to_bits);
        let counts = self.row().map(u64::from);
        doubles.into_iter().chain([self.requests]).chain(counts).collect()
    }

    /// The tally with these numbers; `None` if they are not those of one.
    pub(super) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let [concurrency, concurrency_max, rate_max, requests, counts @ ..] = numbers else { return None };
        let counts: Vec<u32> =
            counts.iter().map(|&count| u32::try_from(count).ok()).collect::<Option<_>>()?;
        let row: [u32; SPAN_FIELDS] = counts.try_into().ok()?;
        let [concurrency, concurrency_max, rate_max] =
            [concurrency, concurrency_max, rate_max].map(|&bits| f64::from_bits(bits));
        let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
        if ![concurrency, concurrency_max, rate_max].into_iter().all(is_amount) {
            return None;
        }
        let counted = span_of(&row);
        let mut parts = counted.seconds_wanting.into_iter().chain([counted.heard_seconds]);
        if counted.seconds > SECONDS_MAX || parts.any(|part| part > counted.seconds) {
            return None;
        }
        // The demand of the row was rounded; a span that goes on adds up what was measured.
        let span = HistorySpan { concurrency, requests: 0.0, concurrency_max, rate_max, ..counted };
        Some(Self { span, requests: *requests })
    }

    fn requests_rounded(&self) -> u32 {
        u32::try_from(self.requests.saturating_add(500) / 1000).unwrap_or(u32::MAX)
    }

    fn whole_requests(&self) -> f64 {
        f64::from(self.requests_rounded())
    }
}

/// The span that a row of minutes or hours tells.
pub(super) fn span_of(row: &[u32; SPAN_FIELDS]) -> HistorySpan {
    let &[
        concurrency,
        concurrency_max,
        requests,
        rate_max,
        idle_seconds,
        wanted_seconds,
        starting_seconds,
        missing_seconds,
        waiting_seconds,
        waiting_max,
        waited_on,
        zero,
        one,
        two,
        three,
        four,
        wake_wait_ms,
        wakes_ended,
        from_zero,
        from_more,
        wake_wait_ms_max,
        seconds,
        heard_seconds,
        ending_seconds,
        from_one,
        from_two,
        from_three,
        from_four,
        rollout_starts,
        failed_pod_starts,
    ] = row;
    let ready_seconds = wanted_seconds.wrapping_sub(starting_seconds).wrapping_sub(missing_seconds);
    HistorySpan {
        seconds,
        heard_seconds,
        concurrency: amount_of(concurrency),
        concurrency_max: amount_of(concurrency_max),
        requests: f64::from(requests),
        rate_max: amount_of(rate_max),
        waiting_seconds,
        waiting_max,
        wanted_seconds,
        ready_seconds,
        busy_seconds: ready_seconds.wrapping_sub(idle_seconds),
        starting_seconds,
        ending_seconds,
        raises_from: [from_zero, from_one, from_two, from_three, from_four, from_more],
        seconds_wanting: [zero, one, two, three, four],
        rollout_starts,
        failed_pod_starts,
        waited: waiting_seconds.wrapping_sub(waited_on),
        wakes_ended,
        wake_wait_ms,
        wake_wait_ms_max,
    }
}

/// The row of one second.
pub(super) fn row_of_second(facts: &SecondFacts, demand: SecondSums) -> [u32; SECOND_FIELDS] {
    let condition = facts.condition;
    let demand = if condition.is_heard { demand } else { SecondSums::default() };
    let [from_zero, others @ ..] = facts.raises;
    [
        code_of(demand.concurrency),
        code_of(demand.rate),
        facts.busy,
        condition.waiting,
        condition.capacity.ready,
        condition.capacity.wanted,
        condition.capacity.starting,
        u32::from(condition.is_heard),
        condition.capacity.ending,
        from_zero,
        others.iter().fold(0, |sum: u32, raises| sum.saturating_add(*raises)),
        facts.wakes.ended,
        facts.wakes.wait_ms,
    ]
}

/// The span that the row of a second tells. Raises of a count above zero all stand in the last place: a
/// second does not keep them apart. Starts without a raise, and how many requests came to wait, are not in
/// the row.
pub(super) fn span_of_second(row: &[u32; SECOND_FIELDS]) -> HistorySpan {
    let &[
        concurrency,
        rate,
        busy,
        waiting,
        ready,
        wanted,
        starting,
        heard,
        ending,
        from_zero,
        raises,
        ended,
        wait,
    ] = row;
    HistorySpan {
        seconds: 1,
        heard_seconds: heard,
        concurrency: amount_of(concurrency),
        concurrency_max: amount_of(concurrency),
        requests: amount_of(rate),
        rate_max: amount_of(rate),
        waiting_seconds: waiting,
        waiting_max: waiting,
        wanted_seconds: wanted,
        ready_seconds: ready,
        busy_seconds: busy,
        starting_seconds: starting,
        ending_seconds: ending,
        raises_from: [from_zero, 0, 0, 0, 0, raises],
        seconds_wanting: [0; PLACES - 1],
        rollout_starts: 0,
        failed_pod_starts: 0,
        waited: 0,
        wakes_ended: ended,
        wake_wait_ms: wait,
        wake_wait_ms_max: wait,
    }
}
