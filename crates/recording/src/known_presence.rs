//! What an activator holds of a revision, and when requests have arrived by that.
//!
//! An activator says each growth of its present count at once, or 10 ms after its last word about it. So as
//! many requests at least as the count has grown by have arrived since, or just now.

use std::collections::BTreeMap;
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
            ActivatorWord::Acknowledged { .. }
            | ActivatorWord::Emptied { .. }
            | ActivatorWord::Draining => Vec::new(),
        }
    }

    /// A revision that an activator does not name held nothing in its second.
    fn second_ended(&mut self, peer: &PeerName, loads: &[RevisionLoad], now: Duration) {
        let known = self.0.entry(peer.clone()).or_default();
        for presence in known.values_mut() {
            presence.second_ended(0.0, now);
        }
        for RevisionLoad { revision, load, .. } in loads {
            known.entry(revision.clone()).or_default().second_ended(load.concurrency.value(), now);
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
    /// The activator says on a new link that it holds so many requests.
    fn holding(count: u32, at: Duration) -> Self {
        Self { count, said_at: at }
    }

    /// A second is over in which the activator held so many requests on average. How many it holds at its end
    /// is not said; growth is told from there on.
    fn second_ended(&mut self, concurrency: f64, at: Duration) {
        *self = Self { count: rounded_up(concurrency), said_at: at };
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
    use super::*;

    #[test]
    fn growth_tells_when_requests_have_arrived() {
        let at = Duration::from_millis;
        let mut known = KnownPresence::default();
        assert_eq!(known.counted(1, at(2_000)), [at(2_000)]);
        // A burst: the rest of it is told with the next word.
        assert_eq!(known.counted(5, at(2_008)), [at(2_002), at(2_004), at(2_006), at(2_008)]);
        assert!(known.counted(3, at(2_300)).is_empty());
        assert_eq!(known.counted(4, at(2_700)), [at(2_700)]);
        known.second_ended(2.3, at(3_000));
        assert!(known.counted(3, at(3_100)).is_empty(), "so many may have been there");
        assert_eq!(known.counted(5, at(3_200)), [at(3_195), at(3_200)]);
        assert!(KnownPresence::holding(7, at(0)).counted(7, at(10)).is_empty());
        assert_eq!(known.counted(u32::MAX, at(4_000)).len(), 10_000);
    }
}
