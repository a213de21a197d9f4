//! The gaps between requests, and the interval of a gap for which a warm pod is worth what it costs.
//!
//! An interval is worth the cold starts that it would have avoided in the gaps that were seen, less its
//! pod-minutes at the price that a person sets. Timers have gaps that are nearly alike: for them an interval
//! late in the gap avoids every cold start at the cost of a few minutes. Requests without a pattern have
//! short gaps if anything; for them the interval begins with the gap, so the pod stays.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

const GAPS_KEPT: usize = 200;
/// Fewer gaps than this tell nothing.
const GAPS_MIN: usize = 6;
/// Longer gaps, in minutes, are only counted.
const GAP_MAX: usize = 240;
/// So many lengths are tried as the begin of an interval, and as many as its end.
const LENGTHS_TRIED: usize = 24;
/// An interval has to be worth more cold starts than this.
const WORTH_MIN: f64 = 0.5;

/// The minutes of a gap in which a pod is kept warm, both included, counted from the end of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmInterval {
    /// The first of the minutes; with 0 the last pod stays.
    pub from: usize,
    /// The last of the minutes.
    pub to: usize,
}

/// What a warm pod costs and brings, as a person and the workload have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmTerms {
    /// The pod-minutes that one avoided cold start may cost; 0 keeps no pod warm.
    pub worth: f64,
    /// The minutes until a pod that is asked for is ready, rounded up.
    pub look_ahead: usize,
    /// The minutes for which class kpa keeps the last pod anyway.
    pub kept_anyway: usize,
}

/// The last gaps between requests, in whole minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleGaps {
    minutes: VecDeque<u16>,
}

/// The gaps by their lengths, added up from the shortest one on.
struct GapSums {
    /// The number of gaps that are shorter than a place.
    counts: [u32; GAP_MAX + 2],
    /// The sum of their minutes.
    minutes: [u32; GAP_MAX + 2],
    /// All gaps, with those that are only counted.
    all: u32,
}

/// An interval with what it is worth, in cold starts.
#[derive(Clone, Copy)]
struct ValuedInterval {
    interval: WarmInterval,
    value: f64,
}

impl IdleGaps {
    /// Notes a gap of so many whole minutes.
    pub fn note(&mut self, minutes: u64) {
        if self.minutes.len() == GAPS_KEPT {
            self.minutes.pop_front();
        }
        let kept = u16::try_from(minutes).unwrap_or(u16::MAX);
        self.minutes.push_back(kept);
    }

    /// The interval that is worth most; `None` where none is worth a pod, or too few gaps were seen.
    pub fn interval(&self, terms: &WarmTerms) -> Option<WarmInterval> {
        if self.minutes.len() < GAPS_MIN || terms.worth <= 0.0 {
            return None;
        }
        let sums = GapSums::of(self.minutes.iter().map(|minutes| usize::from(*minutes)));
        let lengths = self.lengths_tried();
        let mut best: Option<ValuedInterval> = None;
        for (place, first) in lengths.iter().enumerate() {
            for last in &lengths[place..] {
                let interval = WarmInterval::widened(*first, *last);
                let valued = ValuedInterval { interval, value: sums.value(interval, terms) };
                if best.is_none_or(|best| valued.is_better_than(best)) {
                    best = Some(valued);
                }
            }
        }
        best.filter(|best| best.value > WORTH_MIN).map(|best| best.interval)
    }

    /// The gaps, the oldest first.
    pub(crate) fn minutes(&self) -> Vec<u16> {
        self.minutes.iter().copied().collect()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.minutes.capacity() * size_of::<u16>()
    }

    /// The lengths of gaps that were seen; of many, so many that lie evenly among them.
    fn lengths_tried(&self) -> Vec<usize> {
        let known = self.minutes.iter().map(|minutes| usize::from(*minutes));
        let mut lengths: Vec<usize> = known.filter(|minutes| *minutes <= GAP_MAX).collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() > LENGTHS_TRIED {
            let last = lengths.len() - 1;
            lengths = (0..LENGTHS_TRIED).map(|step| lengths[step * last / (LENGTHS_TRIED - 1)]).collect();
        }
        lengths
    }
}

impl WarmInterval {
    /// The interval around gaps of these lengths, a little wider than they were.
    fn widened(first: usize, last: usize) -> Self {
        Self { from: (first * 95 / 100).saturating_sub(1), to: (last * 105).div_ceil(100) + 1 }
    }

    /// Whether a pod is kept warm when a gap has lasted for so many whole minutes.
    pub fn holds_at(self, minutes: u64) -> bool {
        usize::try_from(minutes).is_ok_and(|minutes| (self.from..=self.to).contains(&minutes))
    }

    fn length(self) -> usize {
        self.to - self.from
    }
}

impl ValuedInterval {
    /// Of equal values the shorter interval is better, then the later one.
    fn is_better_than(self, other: Self) -> bool {
        let shorter = other.interval.length().cmp(&self.interval.length());
        let later = self.interval.from.cmp(&other.interval.from);
        self.value.total_cmp(&other.value).then(shorter).then(later).is_gt()
    }
}

impl GapSums {
    fn of(gaps: impl Iterator<Item = usize>) -> Self {
        let mut by_length = [0_u32; GAP_MAX + 1];
        let mut all = 0;
        for gap in gaps {
            all += 1;
            if let Some(count) = by_length.get_mut(gap) {
                *count += 1;
            }
        }
        let mut sums = Self { counts: [0; GAP_MAX + 2], minutes: [0; GAP_MAX + 2], all };
        for (minutes, (length, count)) in (0_u32..).zip(by_length.iter().enumerate()) {
            sums.counts[length + 1] = sums.counts[length] + count;
            sums.minutes[length + 1] = sums.minutes[length] + count * minutes;
        }
        sums
    }

    /// What an interval is worth: the cold starts that it avoids, less the pod-minutes at their price.
    fn value(&self, interval: WarmInterval, terms: &WarmTerms) -> f64 {
        let WarmInterval { from, to } = interval;
        // While class kpa keeps the pod, a request finds it, and it costs nothing.
        let stays = from <= terms.kept_anyway;
        let warm_from = if stays { terms.kept_anyway } else { from.saturating_add(terms.look_ahead) };
        let avoided = self.counts_between(warm_from, to);
        f64::from(avoided) - f64::from(self.pod_minutes(from.max(terms.kept_anyway), to)) / terms.worth
    }

    /// The number of gaps of these lengths, both included.
    fn counts_between(&self, least: usize, greatest: usize) -> u32 {
        let [least, end] = [least, greatest + 1].map(|length| length.min(GAP_MAX + 1));
        self.counts[end].saturating_sub(self.counts[least])
    }

    /// The pod-minutes of all gaps while a pod is warm from one minute of a gap to another.
    fn pod_minutes(&self, from: usize, to: usize) -> u32 {
        if from > to {
            return 0;
        }
        let [start, end] = [from, to + 1].map(|length| length.min(GAP_MAX + 1));
        let within = self.counts[end] - self.counts[start];
        let minutes = self.minutes[end] - self.minutes[start];
        let longer = self.all - self.counts[end];
        let [from, to] = [from, to].map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        // A gap of g minutes costs g - from + 1 of them, a longer one than the interval to - from + 1.
        minutes + within - within * from + longer * (to - from + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(look_ahead: usize) -> WarmTerms {
        WarmTerms { worth: 20.0, look_ahead, kept_anyway: 0 }
    }

    fn gaps(minutes: &[u64]) -> IdleGaps {
        let mut gaps = IdleGaps::default();
        for minutes in minutes {
            gaps.note(*minutes);
        }
        gaps
    }

    const NEARLY_TEN: [u64; 8] = [9, 10, 10, 11, 10, 10, 9, 10];

    #[test]
    fn f6_a_timer_of_nearly_ten_minutes_has_a_pod_from_the_seventh_to_the_eleventh() {
        let interval = gaps(&NEARLY_TEN).interval(&terms(2));
        assert_eq!(interval, Some(WarmInterval { from: 7, to: 11 }));
        let sums = GapSums::of(NEARLY_TEN.into_iter().map(|gap| usize::try_from(gap).expect("small")));
        let value = |from, to| sums.value(WarmInterval { from, to }, &terms(2));
        assert_eq!([value(7, 11), value(8, 12)], [8.0 - 31.0 / 20.0, 6.0 - 23.0 / 20.0]);
    }

    #[test]
    fn f7_gaps_of_five_hours_are_as_with_class_kpa() {
        assert_eq!(gaps(&[300; 8]).interval(&terms(2)), None);
        assert_eq!(gaps(&[300; 8]).interval(&WarmTerms { worth: 1e9, ..terms(2) }), None);
    }

    #[test]
    fn f9_a_shorter_look_ahead_begins_later() {
        let interval = gaps(&NEARLY_TEN).interval(&terms(1));
        assert_eq!(interval, Some(WarmInterval { from: 8, to: 12 }));
        let sums = GapSums::of(NEARLY_TEN.into_iter().map(|gap| usize::try_from(gap).expect("small")));
        assert_eq!(sums.value(WarmInterval { from: 8, to: 12 }, &terms(1)), 8.0 - 23.0 / 20.0);
    }

    #[test]
    fn fewer_than_six_gaps_and_a_worth_of_nothing_keep_no_pod() {
        assert_eq!(gaps(&[10; 5]).interval(&terms(2)), None);
        assert!(gaps(&[10; 6]).interval(&terms(2)).is_some());
        assert_eq!(gaps(&[10; 6]).interval(&WarmTerms { worth: 0.0, ..terms(2) }), None);
    }

    #[test]
    fn gaps_that_class_kpa_outlasts_are_no_cold_starts() {
        // A hundred short gaps, and twenty of an hour: the pod is started for those.
        let mut minutes = vec![1; 100];
        minutes.extend([60; 20]);
        let kept = WarmTerms { kept_anyway: 2, ..terms(2) };
        assert_eq!(gaps(&minutes).interval(&kept), Some(WarmInterval { from: 56, to: 64 }));
        assert_eq!(gaps(&[1; 100]).interval(&kept), None);
    }

    #[test]
    fn the_last_two_hundred_gaps_count() {
        let mut minutes = vec![10; 200];
        minutes.extend([300; 200]);
        assert_eq!(gaps(&minutes).interval(&terms(2)), None);
        assert!(gaps(&minutes).heap_bytes() <= 600);
    }

    /// Gap by gap, as a person reckons.
    fn value_by_gaps(gaps: &[u64], interval: WarmInterval, terms: &WarmTerms) -> f64 {
        let (mut avoided, mut spent) = (0.0, 0.0);
        for gap in gaps {
            let gap = usize::try_from(*gap).expect("small");
            let is_counted_only = gap > GAP_MAX;
            let is_late_enough =
                interval.from + terms.look_ahead <= gap || interval.from <= terms.kept_anyway;
            let is_cold_start = gap >= terms.kept_anyway;
            if !is_counted_only && is_cold_start && is_late_enough && gap <= interval.to {
                avoided += 1.0;
            }
            let last = if is_counted_only { interval.to } else { gap.min(interval.to) };
            spent += (interval.from.max(terms.kept_anyway)..=last).map(|_| 1.0).sum::<f64>();
        }
        avoided - spent / terms.worth
    }

    proptest! {
        #[test]
        fn sums_tell_what_gaps_tell_one_by_one(
            minutes in prop::collection::vec(0..300_u64, 1..60),
            (first, length) in (0..240_usize, 0..240_usize),
            (look_ahead, kept_anyway) in (0..20_usize, 0..10_usize),
        ) {
            let terms = WarmTerms { worth: 8.0, look_ahead, kept_anyway };
            let interval = WarmInterval::widened(first, (first + length).min(GAP_MAX));
            let sums = GapSums::of(minutes.iter().map(|gap| usize::try_from(*gap).expect("small")));
            prop_assert_eq!(sums.value(interval, &terms), value_by_gaps(&minutes, interval, &terms));
        }

        #[test]
        fn no_interval_around_gaps_that_were_seen_is_worth_more(
            minutes in prop::collection::vec(0..40_u64, 6..60),
            (look_ahead, kept_anyway) in (0..6_usize, 0..4_usize),
        ) {
            let terms = WarmTerms { worth: 8.0, look_ahead, kept_anyway };
            let seen = gaps(&minutes);
            let value = |interval| value_by_gaps(&minutes, interval, &terms);
            let best = seen.interval(&terms).map_or(WORTH_MIN, value);
            let lengths = seen.lengths_tried();
            for first in &lengths {
                for last in lengths.iter().filter(|last| *last >= first) {
                    prop_assert!(value(WarmInterval::widened(*first, *last)) <= best);
                }
            }
        }
    }
}
