//! What an activator holds of a revision, and when requests have arrived by that.
//!
//! An activator says each growth of its present count at once, or 10 ms after its last word about it. So as
//! many requests at least as the count has grown by have arrived since, or just now. Less is said once it has
//! lasted for 100 ms, so the count that was said last is about the present one, at the end of a second too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{ActivatorHello, ActivatorWord, RevisionLoad, RevisionName};

use crate::peers::PeerName;

/// The least time between two words about the present count (`throttling`, early reports).
const WORDS_APART: Duration = Duration::from_millis(10);
/// An activator lets no more requests wait for a revision, so no growth that tells more is one of requests.
const GROWTH_MAX: u32 = 10_000;

/// The present counts of all activators. Times are those since the record began.
#[derive(Debug, Default)]
pub(crate) struct KnownPresences(BTreeMap<PeerName, BTreeMap<RevisionName, KnownPresence>>);

impl KnownPresences {
    /// Takes in what an activator says. Returns when requests have arrived by that, at the latest: those of
    /// the revision whose present count it is; none by another word.
    pub(crate) fn hear(&mut self, peer: &PeerName, word: &ActivatorWord, now: Duration) -> Vec<Duration> {
        match word {
            ActivatorWord::Hello(ActivatorHello { present, .. }) => {
                let held = present.iter().map(|(revision, count)| {
                    (revision.clone(), KnownPresence::holding(count.in_flight, now))
                });
                self.0.insert(peer.clone(), held.collect());
                Vec::new()
            }
            ActivatorWord::Loads { loads, .. } => {
                self.second_ended(peer, loads, now);
                Vec::new()
            }
            ActivatorWord::Present { revision, count, .. } => {
                let known = self.0.entry(peer.clone()).or_default();
                known.entry(revision.clone()).or_default().counted(count.in_flight, now)
            }
            ActivatorWord::Acknowledged { .. } | ActivatorWord::Emptied { .. } | ActivatorWord::Draining => {
                Vec::new()
            }
        }
    }

    /// An activator holds nothing of a revision that it does not name for its second. Of one whose count it
    /// has never said, as where the first part of a record is missing, it holds about what it held on
    /// average.
    fn second_ended(&mut self, peer: &PeerName, loads: &[RevisionLoad], now: Duration) {
        let named: BTreeSet<&RevisionName> = loads.iter().map(|load| &load.revision).collect();
        let known = self.0.entry(peer.clone()).or_default();
        known.retain(|revision, _| named.contains(revision));
        for RevisionLoad { revision, load, .. } in loads {
            let held = || KnownPresence::holding(rounded_up(load.concurrency.value()), now);
            known.entry(revision.clone()).or_insert_with(held);
        }
    }
}

/// The present count of one revision at one activator, as its owner knows it.
#[derive(Clone, Copy, Debug, Default)]
struct KnownPresence {
    count: u32,
    said_at: Duration,
}

impl KnownPresence {
    /// So many requests are there, whenever they have arrived.
    fn holding(count: u32, at: Duration) -> Self {
        Self { count, said_at: at }
    }

    /// The activator holds so many requests. Returns when those arrived that it holds more than before, at
    /// the latest.
    fn counted(&mut self, count: u32, at: Duration) -> Vec<Duration> {
        let grown_by = count.saturating_sub(self.count).min(GROWTH_MAX);
        let since = self.said_at.max(at.saturating_sub(WORDS_APART)).min(at);
        let apart = (at - since) / grown_by.max(1);
        *self = Self { count, said_at: at };
        (1..=grown_by).map(|place| since + apart * place).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of what is no count gives the nearest one"
)]
fn rounded_up(concurrency: f64) -> u32 {
    concurrency.ceil() as u32
}

#[cfg(test)]
mod tests {
    use vocabulary::{Concurrency, Load, PresentCount, ReplicaName};

    use super::*;

    fn hello() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("three parts")
    }

    fn present(in_flight: u32) -> ActivatorWord {
        let count = PresentCount { in_flight, waiting: 0 };
        ActivatorWord::Present { revision: hello(), count, oldest_wait: Duration::ZERO }
    }

    fn second(second: u64, concurrency: f64) -> ActivatorWord {
        let load = Load { concurrency: Concurrency::clamped(concurrency), ..Load::default() };
        let of_hello =
            RevisionLoad { revision: hello(), load, oldest_wait: Duration::ZERO, callers: Vec::new() };
        let loads = if load.is_zero() { Vec::new() } else { vec![of_hello] };
        ActivatorWord::Loads { second, loads }
    }

    #[test]
    fn a_second_changes_no_count_that_was_said_unless_nothing_is_held() {
        let at = Duration::from_millis;
        let peer = PeerName::Activator(ReplicaName::new("a"));
        let mut known = KnownPresences::default();
        let mut hear = |word: &ActivatorWord, milliseconds| known.hear(&peer, word, at(milliseconds)).len();
        assert_eq!(hear(&second(1, 4.5), 1_000), 0);
        assert_eq!(hear(&present(7), 1_100), 2, "about five were there");
        assert_eq!(hear(&second(2, 1.0), 2_000), 0);
        assert_eq!(hear(&present(6), 2_100), 0, "less is no growth");
        assert_eq!(hear(&second(3, 0.0), 3_000), 0);
        assert_eq!(hear(&present(6), 3_100), 6);
    }

    #[test]
    fn growth_tells_when_requests_have_arrived() {
        let at = Duration::from_millis;
        let mut known = KnownPresence::default();
        assert_eq!(known.counted(1, at(2_000)), [at(2_000)]);
        // A burst: the rest of it is told with the next word.
        assert_eq!(known.counted(5, at(2_008)), [at(2_002), at(2_004), at(2_006), at(2_008)]);
        assert!(known.counted(3, at(2_300)).is_empty());
        assert_eq!(known.counted(4, at(2_700)), [at(2_700)]);
        assert_eq!(known.counted(6, at(3_200)), [at(3_195), at(3_200)]);
        assert!(KnownPresence::holding(7, at(0)).counted(7, at(10)).is_empty());
        assert_eq!(known.counted(u32::MAX, at(4_000)).len(), 10_000);
    }
}
