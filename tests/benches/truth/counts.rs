//! Two courses of the count of pods, one beside the other.

use std::time::Duration;

use anyhow::Context;
use recording::RecordedLoad;

/// So often in a second two courses are compared.
const LOOKS_PER_SECOND: f64 = 10.0;

/// The count of pods that was wanted, as it changed.
pub(crate) struct PodCounts(Vec<(f64, u64)>);

/// How two courses of the count differ.
pub(crate) struct CountComparison {
    /// The share of time in which both are the same, from 0 to 1.
    pub(crate) equal: f64,
    /// The share of time in which they differ by one at most.
    pub(crate) within_one: f64,
    /// The longest time in which they differ by more than one, in seconds.
    pub(crate) longest_apart: f64,
    /// How often each rises from zero.
    pub(crate) starts_from_zero: (usize, usize),
    /// How much more pod time the second one has, as a part of that of the first.
    pub(crate) pod_time_apart: f64,
}

impl PodCounts {
    /// Of seconds and counts, in the order of time; before the first it is zero.
    pub(crate) fn new(changes: Vec<(f64, u64)>) -> Self {
        Self(changes)
    }

    /// What a recorded run decided about the only Service, whose load has this name.
    pub(crate) fn of_record(recorded: &RecordedLoad, name: &str) -> anyhow::Result<Self> {
        let revision = recorded.revisions.values().next().with_context(|| format!("{name} is recorded"))?;
        let changes = revision.counts.iter().map(|(at, count)| (at.as_secs_f64(), count.value().into()));
        Ok(Self(changes.collect()))
    }

    fn at(&self, second: f64) -> u64 {
        let after = self.0.partition_point(|(at, _)| *at <= second);
        self.0[..after].last().map_or(0, |(_, count)| *count)
    }

    /// How another course differs from this one in the time from zero on.
    pub(crate) fn compared_with(&self, other: &Self, length: Duration) -> CountComparison {
        let length = length.as_secs_f64();
        let looks = (0_u32..).map(|look| (f64::from(look) + 0.5) / LOOKS_PER_SECOND);
        let pairs: Vec<(u64, u64)> =
            looks.take_while(|at| *at < length).map(|at| (self.at(at), other.at(at))).collect();
        let share = |holds: &dyn Fn(u64) -> bool| {
            let count = pairs.iter().filter(|(one, two)| holds(one.abs_diff(*two))).count();
            real(count) / real(pairs.len().max(1))
        };
        let pods = |of: fn(&(u64, u64)) -> u64| pairs.iter().map(|pair| capped(of(pair))).sum::<f64>();
        let (first, second) = (pods(|pair| pair.0), pods(|pair| pair.1));
        CountComparison {
            equal: share(&|apart| apart == 0),
            within_one: share(&|apart| apart <= 1),
            longest_apart: longest(&pairs) / LOOKS_PER_SECOND,
            starts_from_zero: (self.starts_from_zero(length), other.starts_from_zero(length)),
            pod_time_apart: (second - first) / first.max(1.0),
        }
    }

    fn starts_from_zero(&self, length: f64) -> usize {
        let mut before = 0;
        let rises = |(_, count): &&(f64, u64)| std::mem::replace(&mut before, *count) == 0 && *count > 0;
        self.0.iter().take_while(|(at, _)| *at < length).filter(rises).count()
    }
}

/// The most looks in a row that show more than one pod of difference.
fn longest(pairs: &[(u64, u64)]) -> f64 {
    let (mut longest, mut present) = (0.0_f64, 0.0);
    for (one, two) in pairs {
        present = if one.abs_diff(*two) > 1 { present + 1.0 } else { 0.0 };
        longest = longest.max(present);
    }
    longest
}

fn real(count: usize) -> f64 {
    capped(u64::try_from(count).unwrap_or(u64::MAX))
}

/// As a real number; what does not fit 32 bits is the greatest that does.
fn capped(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
