//! Do the activators provably answer for a revision, and since when? (Contract §4.4.)
//!
//! Knative's autoscaler sends a probe through the public Service. ebb knows more: which activators have
//! acknowledged a version that routes through them, and which addresses stand in the public slices. Knative's
//! activators acknowledge nothing; of those the slices and the controller's condition are the proof, as the
//! fast path of Knative's own autoscaler goes by them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use vocabulary::Timestamp;

/// What is known of the way through the activators.
#[derive(Clone, Debug, Default)]
pub struct PathEvidence {
    /// The addresses that the revision's public slices name.
    pub named: BTreeSet<IpAddr>,
    /// Since when the slices name activators alone; `None` while they name a pod, or nothing.
    pub activators_alone_since: Option<Timestamp>,
    /// The activators that are to serve the revision, by address.
    pub members: BTreeSet<IpAddr>,
    /// The activators of ebb's that have acknowledged, each since when.
    pub acknowledged: Vec<(IpAddr, Timestamp)>,
    /// The activators without a link, which are Knative's own.
    pub unlinked: BTreeSet<IpAddr>,
    /// Since when the controller says `ActivatorEndpointsPopulated`.
    pub populated_since: Option<Timestamp>,
}

/// Whether the last pod may go, as far as the path is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Something is not confirmed: nothing goes to zero, and the losing side is not forgotten.
    Unconfirmed,
    /// Every request meets an activator that answers for the revision, since then.
    Confirmed(Timestamp),
}

/// What follows from the evidence. The time counts from its latest part.
pub fn path_state(evidence: &PathEvidence) -> PathState {
    let (Some(alone), Some(populated)) = (evidence.activators_alone_since, evidence.populated_since) else {
        return PathState::Unconfirmed;
    };
    let mut since = alone.max(populated);
    for address in evidence.named.union(&evidence.members) {
        if evidence.unlinked.contains(address) {
            continue;
        }
        let Some((_, at)) = evidence.acknowledged.iter().find(|(known, _)| known == address) else {
            return PathState::Unconfirmed;
        };
        since = since.max(*at);
    }
    PathState::Confirmed(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    fn evidence() -> PathEvidence {
        PathEvidence {
            named: [address(1), address(2)].into(),
            activators_alone_since: Some(at(10)),
            members: [address(1), address(2)].into(),
            acknowledged: vec![(address(1), at(8)), (address(2), at(12))],
            unlinked: BTreeSet::new(),
            populated_since: Some(at(9)),
        }
    }

    #[test]
    fn the_path_is_confirmed_from_its_latest_proof_on() {
        assert_eq!(path_state(&evidence()), PathState::Confirmed(at(12)));
        let later = PathEvidence { populated_since: Some(at(20)), ..evidence() };
        assert_eq!(path_state(&later), PathState::Confirmed(at(20)));
        let slow = PathEvidence { activators_alone_since: Some(at(30)), ..evidence() };
        assert_eq!(path_state(&slow), PathState::Confirmed(at(30)));
    }

    #[test]
    fn each_missing_proof_keeps_the_last_pod() {
        let pods_named = PathEvidence { activators_alone_since: None, ..evidence() };
        let not_populated = PathEvidence { populated_since: None, ..evidence() };
        let unacknowledged = PathEvidence { acknowledged: vec![(address(1), at(8))], ..evidence() };
        // An older subset may still stand in the slices: its activators have to answer, too.
        let mut older = evidence();
        older.named.insert(address(3));
        let mut member = evidence();
        member.members.insert(address(4));
        for missing in [pods_named, not_populated, unacknowledged, older, member] {
            assert_eq!(path_state(&missing), PathState::Unconfirmed, "{missing:?}");
        }
    }

    #[test]
    fn knatives_activators_acknowledge_nothing_and_stand_by_their_addresses() {
        let beside = PathEvidence {
            acknowledged: Vec::new(),
            unlinked: [address(1), address(2)].into(),
            ..evidence()
        };
        assert_eq!(path_state(&beside), PathState::Confirmed(at(10)));
    }
}
