//! How long were two counts of each revision the same?

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{PodCount, RevisionName};

use crate::record_time::RecordTime;

/// The two counts that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountSide {
    /// As the recorded process decided.
    Recorded,
    /// As the replay decides now.
    Replayed,
}

/// The counts of all revisions, as they were recorded and as they are decided in a replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountComparison {
    pairs: BTreeMap<RevisionName, CountPair>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CountPair {
    recorded: Option<PodCount>,
    replayed: Option<PodCount>,
    since: RecordTime,
    likeness: CountLikeness,
    first: Option<CountPairTime>,
}

/// Since when two counts differ first.
#[derive(Clone, Copy, Debug)]
struct CountPairTime {
    at: RecordTime,
    recorded: PodCount,
    replayed: PodCount,
}

/// How long counts were compared, and how long they were the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountLikeness {
    /// The sum over all revisions.
    pub compared: Duration,
    /// The part of it in which both counts were the same.
    pub equal: Duration,
}

/// The first difference between the counts of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountDivergence {
    /// The revision whose counts differ.
    pub revision: RevisionName,
    /// The time since which they differed first.
    pub at: RecordTime,
    /// The count of the run that was recorded.
    pub recorded: PodCount,
    /// The count of the replay.
    pub replayed: PodCount,
    /// All of the time, that before the first difference included.
    pub likeness: CountLikeness,
}

impl CountLikeness {
    /// The share of the time in which both counts were the same; 1 where nothing was compared.
    pub fn share(self) -> f64 {
        if self.compared.is_zero() { 1.0 } else { self.equal.as_secs_f64() / self.compared.as_secs_f64() }
    }
}

impl CountComparison {
    /// One of the two counts of a revision changes.
    pub(crate) fn note(
        &mut self,
        revision: &RevisionName,
        side: CountSide,
        count: PodCount,
        now: RecordTime,
    ) {
        let pair = self.pairs.entry(revision.clone()).or_default();
        pair.advance(now);
        match side {
            CountSide::Recorded => pair.recorded = Some(count),
            CountSide::Replayed => pair.replayed = Some(count),
        }
    }

    /// The comparison ends, or begins anew: until both counts are said again, none is known.
    pub(crate) fn pause(&mut self, now: RecordTime) {
        for pair in self.pairs.values_mut() {
            pair.advance(now);
            (pair.recorded, pair.replayed) = (None, None);
        }
    }

    /// All revisions together, up to the last change or pause.
    pub(crate) fn likeness(&self) -> CountLikeness {
        let zero = CountLikeness::default();
        self.pairs.values().fold(zero, |sum, pair| CountLikeness {
            compared: sum.compared + pair.likeness.compared,
            equal: sum.equal + pair.likeness.equal,
        })
    }

    /// The first difference of each revision that has one, in the order of time.
    pub(crate) fn divergences(&self) -> Vec<CountDivergence> {
        let all = self.pairs.iter().filter_map(|(revision, pair)| {
            let CountPairTime { at, recorded, replayed } = pair.first?;
            let (revision, likeness) = (revision.clone(), pair.likeness);
            Some(CountDivergence { revision, at, recorded, replayed, likeness })
        });
        let mut all: Vec<CountDivergence> = all.collect();
        all.sort_by_key(|difference| difference.at);
        all
    }
}

impl CountPair {
    fn advance(&mut self, now: RecordTime) {
        let span = now.at.saturating_since(self.since.at);
        let since = std::mem::replace(&mut self.since, now);
        // Both may change at one instant, and differ for none.
        let (Some(recorded), Some(replayed), false) = (self.recorded, self.replayed, span.is_zero()) else {
            return;
        };
        self.likeness.compared += span;
        if recorded == replayed {
            self.likeness.equal += span;
        } else if self.first.is_none() {
            self.first = Some(CountPairTime { at: since, recorded, replayed });
        }
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Timestamp;

    use super::*;

    fn at(second: u64) -> RecordTime {
        RecordTime { at: Timestamp::from_secs(second), wall: Duration::from_secs(second) }
    }

    #[test]
    fn time_is_compared_from_when_both_counts_are_known() {
        let name = RevisionName::parse("default/service/hello").expect("three parts");
        let mut counts = CountComparison::default();
        let mut note = |second, side, count| counts.note(&name, side, PodCount::new(count), at(second));
        note(10, CountSide::Recorded, 1);
        note(20, CountSide::Replayed, 1);
        // Both change at once, one after the other.
        note(50, CountSide::Recorded, 3);
        note(50, CountSide::Replayed, 3);
        note(60, CountSide::Replayed, 5);
        note(70, CountSide::Recorded, 5);
        counts.pause(at(100));
        counts.pause(at(500));
        let likeness = counts.likeness();
        assert_eq!((likeness.compared.as_secs(), likeness.equal.as_secs()), (80, 70));
        let [first] = counts.divergences().try_into().expect("one revision differs");
        assert_eq!(first.at, at(60));
        assert_eq!((first.recorded.value(), first.replayed.value()), (3, 5));
        assert_eq!(first.likeness.share(), 0.875);
    }
}
