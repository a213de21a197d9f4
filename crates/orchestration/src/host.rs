//! Does the host behind a link still take clients' connections, as far as the autoscaler can tell?
//!
//! Silence says nothing: a process that stalls is silent, and clients' connections reach it. A link that is
//! late or broke *and* two looks beside it that failed make a peer *suspected*. Whether the peer is dead or
//! we are cut off shows by the others: a peer is *lost* only if at least half of all peers that were linked
//! gave a sign since the moment from which its own is missing. Within the longest time between two frames
//! each of those that live does. If they do not, we are the one that is cut off, and no peer is lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::Timestamp;

/// By then each peer that lives was heard: the longest time between two frames, and half a second on the way.
const ALL_HEARD_WITHIN: Duration = Duration::from_millis(2500);

/// Signs of life of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostSigns {
    /// Whether its link stood since the peer is ours.
    was_linked: bool,
    /// Its last frame, or the last connection that its host accepted beside a silent link.
    alive_at: Timestamp,
    standing: HostStanding,
}

/// What follows from the signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HostStanding {
    /// The last sign is recent, or no look has failed.
    #[default]
    Reachable,
    /// It gave no sign since then, and two looks failed.
    Suspected { since: Timestamp },
    /// The same, while others did give signs: no client reaches it. Until its next frame.
    Lost,
}

impl HostSigns {
    /// A frame arrived. Whether that brings a lost peer back.
    pub(crate) fn heard(&mut self, now: Timestamp) -> bool {
        let was_lost = self.is_lost();
        *self = Self { was_linked: true, alive_at: now, standing: HostStanding::Reachable };
        was_lost
    }

    /// Its host accepted a connection. That brings no lost peer back: its process may be gone for good.
    pub(crate) fn accepted(&mut self, now: Timestamp) {
        self.alive_at = now;
        self.trust();
    }

    /// Two looks failed. One that is suspected stays so since it first was.
    pub(crate) fn suspect(&mut self, since: Timestamp) {
        if self.standing == HostStanding::Reachable {
            self.standing = HostStanding::Suspected { since };
        }
    }

    /// What was suspected is put aside.
    pub(crate) fn trust(&mut self) {
        if self.is_suspected() {
            self.standing = HostStanding::Reachable;
        }
    }

    /// Declares the host dead: no client reaches it. Its next frame takes that back.
    pub(crate) fn lose(&mut self) {
        self.standing = HostStanding::Lost;
    }

    pub(crate) fn was_linked(&self) -> bool {
        self.was_linked
    }

    pub(crate) fn alive_at(&self) -> Timestamp {
        self.alive_at
    }

    /// Whether nothing speaks against it.
    pub(crate) fn is_trusted(&self) -> bool {
        self.standing == HostStanding::Reachable
    }

    pub(crate) fn is_suspected(&self) -> bool {
        matches!(self.standing, HostStanding::Suspected { .. })
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.standing == HostStanding::Lost
    }

    /// Since when it gives no sign, if it is suspected.
    pub(crate) fn suspected_since(&self) -> Option<Timestamp> {
        match self.standing {
            HostStanding::Suspected { since } => Some(since),
            HostStanding::Reachable | HostStanding::Lost => None,
        }
    }
}

/// The signs of all peers that were linked, and of those that are suspected.
#[derive(Debug)]
pub(crate) struct HostCensus {
    /// When each host last gave a sign, in ascending order.
    alive_at: Vec<Timestamp>,
}

/// What the census says of one suspected peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostVerdict {
    /// At least half of all gave a sign since its own is missing.
    Lost,
    /// More than half did not, and had the time to.
    CutOff,
    /// Those that live had no time yet.
    Undecided,
}

impl HostCensus {
    pub(crate) fn new(signs: impl Iterator<Item = HostSigns>) -> Self {
        let mut alive_at: Vec<Timestamp> = signs.map(|signs| signs.alive_at).collect();
        alive_at.sort_unstable();
        Self { alive_at }
    }

    pub(crate) fn verdict(&self, since: Timestamp, now: Timestamp) -> HostVerdict {
        let silent = self.alive_at.partition_point(|at| *at < since);
        if silent * 2 <= self.alive_at.len() {
            HostVerdict::Lost
        } else if now.saturating_since(since) >= ALL_HEARD_WITHIN {
            HostVerdict::CutOff
        } else {
            HostVerdict::Undecided
        }
    }
}

/// What is remembered between two reviews.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HostWatch {
    /// When the next review is due.
    pub(crate) due: Option<Timestamp>,
    /// When we were last found to be cut off.
    pub(crate) cut_off_at: Option<Timestamp>,
    /// When people were last told of a cut.
    pub(crate) told_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_peer_is_lost_only_if_half_of_all_gave_signs_since_its_own_is_missing() {
        use HostVerdict::{CutOff, Lost, Undecided};
        // Suspected since 10 s; when each peer gave its last sign.
        for (what, signs, now, expected) in [
            ("one of two", vec![7_000, 10_400], 11_000, Lost),
            ("both of two", vec![7_000, 7_500], 11_000, Undecided),
            ("both of two, later", vec![7_000, 7_500], 12_500, CutOff),
            ("the only one", vec![7_000], 12_500, CutOff),
            ("two of four", vec![7_000, 7_100, 10_100, 11_000], 11_000, Lost),
            ("three of four", vec![7_000, 7_100, 7_200, 11_000], 11_000, Undecided),
            ("three of four, later", vec![7_000, 7_100, 7_200, 12_000], 12_500, CutOff),
            // We are cut off since 9 s: its frame was due then, and those of others are from before.
            ("frames from before the cut", vec![7_500, 8_900, 8_950, 9_000], 11_000, Undecided),
        ] {
            let signs = signs.into_iter().map(|alive| {
                let mut signs = HostSigns::default();
                signs.heard(at(alive));
                signs
            });
            assert_eq!(HostCensus::new(signs).verdict(at(10_000), at(now)), expected, "{what}");
        }
    }

    #[test]
    fn a_lost_peer_comes_back_with_its_first_frame_and_no_sooner() {
        let mut signs = HostSigns::default();
        assert!(!signs.heard(at(1)));
        signs.suspect(at(2));
        signs.suspect(at(3));
        assert_eq!(signs.suspected_since(), Some(at(2)));
        signs.lose();
        signs.accepted(at(4));
        signs.suspect(at(5));
        assert!(signs.is_lost());
        assert!(signs.heard(at(6)) && !signs.is_lost());
        signs.suspect(at(7));
        signs.accepted(at(8));
        assert!(!signs.is_suspected());
    }
}
