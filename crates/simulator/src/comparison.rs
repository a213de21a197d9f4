//! When do two variants differ most, and why?
//!
//! Between two changes of either count both stand still. Neighbouring spans in which one and the same variant
//! has more pods are one difference; a difference is shown at its greatest.

use std::cmp::Reverse;
use std::time::Duration;

use vocabulary::PodCount;

use crate::tally::RecordedCount;

/// A span of time in which one variant has more pods than the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountDifference {
    /// When the difference was greatest first, as a time since the load began.
    pub at: Duration,
    /// How long one variant had more pods.
    pub lasted: Duration,
    /// The count of the first variant at that time, with its reason.
    pub first: RecordedCount,
    /// The count of the second variant at that time, with its reason.
    pub second: RecordedCount,
}

impl CountDifference {
    fn pods(&self) -> u32 {
        self.first.count.value().abs_diff(self.second.count.value())
    }

    fn has_more_in_first(&self) -> bool {
        self.first.count > self.second.count
    }
}

/// The greatest differences of two variants, at most so many, in the order of time. Counts are oldest first.
pub fn greatest_differences(
    first: &[RecordedCount],
    second: &[RecordedCount],
    length: Duration,
    most: usize,
) -> Vec<CountDifference> {
    let mut differences = differences(first, second, length);
    // Of differences by as many pods the longest matters most.
    differences.sort_by_key(|difference| Reverse((difference.pods(), difference.lasted)));
    differences.truncate(most);
    differences.sort_by_key(|difference| difference.at);
    differences
}

fn differences(first: &[RecordedCount], second: &[RecordedCount], length: Duration) -> Vec<CountDifference> {
    let mut times: Vec<Duration> = first.iter().chain(second).map(|count| count.at).collect();
    times.sort();
    times.dedup();
    let ends = times.iter().skip(1).copied().chain([length]);
    let mut found: Vec<CountDifference> = Vec::new();
    let mut is_open = false;
    for (at, end) in times.iter().copied().zip(ends) {
        let span = span_between(first, second, at, end);
        let Some(span) = span.filter(|span| span.pods() > 0) else {
            is_open = false;
            continue;
        };
        match found.last_mut().filter(|_| is_open) {
            Some(open) if open.has_more_in_first() == span.has_more_in_first() => open.extend_by(span),
            Some(_) | None => found.push(span),
        }
        is_open = true;
    }
    found
}

impl CountDifference {
    fn extend_by(&mut self, next: Self) {
        let lasted = self.lasted + next.lasted;
        if next.pods() > self.pods() {
            *self = next;
        }
        self.lasted = lasted;
    }
}

/// Both counts in a span in which neither changes; `None` before either was ordered.
fn span_between(
    first: &[RecordedCount],
    second: &[RecordedCount],
    at: Duration,
    end: Duration,
) -> Option<CountDifference> {
    Some(CountDifference {
        at,
        lasted: end.saturating_sub(at),
        first: count_at(first, at)?.clone(),
        second: count_at(second, at)?.clone(),
    })
}

fn count_at(counts: &[RecordedCount], at: Duration) -> Option<&RecordedCount> {
    let after = counts.partition_point(|count| count.at <= at);
    counts.get(after.checked_sub(1)?)
}

/// The least and the greatest count of all that were ordered; `None` if none was.
pub fn count_range(counts: &[RecordedCount]) -> Option<(PodCount, PodCount)> {
    let counts = counts.iter().map(|recorded| recorded.count);
    Some((counts.clone().min()?, counts.max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(u64, u32)]) -> Vec<RecordedCount> {
        let recorded = of.iter().map(|&(at, count)| RecordedCount {
            at: Duration::from_secs(at),
            count: PodCount::new(count),
            why: format!("{count} are needed"),
        });
        recorded.collect()
    }

    /// Time, length and both counts of each difference.
    fn found(first: &[(u64, u32)], second: &[(u64, u32)], most: usize) -> Vec<(u64, u64, u32, u32)> {
        let found = greatest_differences(&counts(first), &counts(second), Duration::from_secs(100), most);
        let found = found.iter().map(|difference| {
            let (at, lasted) = (difference.at.as_secs(), difference.lasted.as_secs());
            (at, lasted, difference.first.count.value(), difference.second.count.value())
        });
        found.collect()
    }

    #[test]
    fn a_difference_is_shown_at_its_greatest_and_ends_when_it_turns() {
        let first = [(0, 1), (10, 3), (20, 8), (30, 1), (50, 0)];
        let second = [(0, 1), (40, 2), (60, 0)];
        // From 10 s to 30 s the first has more, at most 7; from 40 s to 60 s the second.
        assert_eq!(found(&first, &second, 3), [(20, 20, 8, 1), (50, 20, 0, 2)]);
        assert_eq!(found(&first, &second, 1), [(20, 20, 8, 1)]);
    }

    #[test]
    fn equal_variants_do_not_differ_and_the_last_difference_ends_with_the_load() {
        assert!(found(&[(0, 1), (5, 2)], &[(0, 1), (5, 2)], 3).is_empty());
        assert_eq!(found(&[(0, 1), (90, 2)], &[(0, 1)], 3), [(90, 10, 2, 1)]);
        assert_eq!(
            count_range(&counts(&[(0, 4), (1, 2), (2, 9)])),
            Some((PodCount::new(2), PodCount::new(9)))
        );
        assert_eq!(count_range(&[]), None);
    }
}
