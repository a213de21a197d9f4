//! How long do connections from before an adoption keep the count from falling?
//!
//! Such connections lead to apps past every queue-proxy, so requests on them are no load. Pods report how
//! many connections are left. While one is left, the count does not fall, with any load; the wait has an end
//! ([`ScalingSpec::adopted_connections_hold`]), since a client may keep its connection for ever. A pod whose
//! kernel shows no connections is taken to have some for one stable window.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use vocabulary::{AdoptedConnections, PeerList, PodId, Timestamp};

/// The connections of each pod, by its last report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct AdoptedConnectionBook(BTreeMap<PodId, PodConnections>);

/// The last report of one pod, and the time since which it has been the same.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PodConnections {
    connections: AdoptedConnections,
    since: Timestamp,
}

/// Connections that keep the count from falling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HeldConnections {
    pub(super) count: u32,
    /// Pods whose kernel shows no connections at all.
    pub(super) unreadable_pods: u32,
    /// The age of the oldest connection.
    pub(super) age: Duration,
    pub(super) peers: PeerList,
    /// The time until the next of the waits ends by itself.
    pub(super) ends_in: Duration,
}

impl AdoptedConnectionBook {
    /// Whether that is other than what the pod said before.
    pub(super) fn note(&mut self, pod: PodId, connections: AdoptedConnections, now: Timestamp) -> bool {
        let age = match connections {
            AdoptedConnections::Open(tally) if tally.count == 0 => return self.remove(pod),
            AdoptedConnections::Open(tally) => tally.age,
            AdoptedConnections::Unreadable { age } => age,
        };
        self.0.insert(pod, PodConnections { connections, since: now - age });
        true
    }

    /// Whether something was known of the pod.
    pub(super) fn remove(&mut self, pod: PodId) -> bool {
        self.0.remove(&pod).is_some()
    }

    /// The connections of the pods that stay, if they hold the count; else `None`.
    pub(super) fn held(
        &self,
        spec: &ScalingSpec,
        stays: impl Fn(PodId) -> bool,
        now: Timestamp,
    ) -> Option<HeldConnections> {
        let mut held: Option<HeldConnections> = None;
        for pod in self.0.iter().filter(|(pod, _)| stays(**pod)).filter_map(|(_, pod)| pod.held(spec, now)) {
            held = Some(held.map_or(pod, |sum| sum.and(pod)));
        }
        held
    }
}

impl PodConnections {
    fn held(&self, spec: &ScalingSpec, now: Timestamp) -> Option<HeldConnections> {
        let age = now.saturating_since(self.since);
        let found = HeldConnections::of(age);
        let (longest, found) = match self.connections {
            AdoptedConnections::Open(tally) => (
                spec.adopted_connections_hold,
                HeldConnections { count: tally.count, peers: tally.peers, ..found },
            ),
            AdoptedConnections::Unreadable { .. } => (
                spec.stable_window.min(spec.adopted_connections_hold),
                HeldConnections { unreadable_pods: 1, ..found },
            ),
        };
        (age < longest).then(|| HeldConnections { ends_in: longest.saturating_sub(age), ..found })
    }
}

impl HeldConnections {
    fn of(age: Duration) -> Self {
        Self { count: 0, unreadable_pods: 0, age, peers: PeerList::default(), ends_in: Duration::MAX }
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            unreadable_pods: self.unreadable_pods + other.unreadable_pods,
            age: self.age.max(other.age),
            peers: PeerList::of(self.peers.iter().chain(other.peers.iter())),
            ends_in: self.ends_in.min(other.ends_in),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use vocabulary::ConnectionTally;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(100_000 + seconds)
    }

    fn open(count: u32, age: u64, last_of_address: u8) -> AdoptedConnections {
        let peers = PeerList::of([IpAddr::from([10, 0, 0, last_of_address])]);
        AdoptedConnections::Open(ConnectionTally { count, age: Duration::from_secs(age), peers })
    }

    fn spec(hold: Duration) -> ScalingSpec {
        ScalingSpec { adopted_connections_hold: hold, ..ScalingSpec::default() }
    }

    #[test]
    fn connections_of_all_pods_that_stay_are_added_and_the_oldest_age_counts() {
        let mut book = AdoptedConnectionBook::default();
        assert!(book.note(PodId(1), open(3, 10, 7), at(0)) && book.note(PodId(2), open(1, 60, 8), at(5)));
        let held = book.held(&spec(HOUR), |_| true, at(20)).expect("four are open");
        assert_eq!(
            (held.count, held.age, held.peers.to_string()),
            (4, Duration::from_secs(75), "10.0.0.7, 10.0.0.8".to_owned())
        );
        assert_eq!(held.ends_in, Duration::from_secs(3600 - 75));
        let held = book.held(&spec(HOUR), |pod| pod != PodId(2), at(20)).expect("three are open");
        assert_eq!((held.count, held.age), (3, Duration::from_secs(30)));
        assert!(book.note(PodId(1), open(0, 0, 7), at(21)), "the last of a pod has ended");
        assert!(!book.note(PodId(1), open(0, 0, 7), at(22)));
        assert!(book.remove(PodId(2)));
        assert_eq!(book.held(&spec(HOUR), |_| true, at(23)), None);
    }

    #[test]
    fn a_hold_of_zero_duration_ends_at_once() {
        let mut book = AdoptedConnectionBook::default();
        book.note(PodId(1), open(3, 10, 7), at(0));
        let ends = at(3590);
        assert!(book.held(&spec(HOUR), |_| true, ends - Duration::from_nanos(1)).is_some());
        assert_eq!(book.held(&spec(HOUR), |_| true, ends), None);
        assert_eq!(book.held(&spec(Duration::ZERO), |_| true, at(0)), None);
    }

    #[test]
    fn a_pod_whose_connections_cannot_be_seen_holds_for_one_stable_window() {
        let mut book = AdoptedConnectionBook::default();
        book.note(PodId(1), AdoptedConnections::Unreadable { age: Duration::from_secs(20) }, at(0));
        let held = book.held(&spec(HOUR), |_| true, at(39)).expect("for 60 s");
        assert_eq!((held.count, held.unreadable_pods, held.ends_in), (0, 1, Duration::from_secs(1)));
        assert_eq!(book.held(&spec(HOUR), |_| true, at(40)), None);
        assert_eq!(book.held(&spec(Duration::ZERO), |_| true, at(0)), None, "a person ended the wait");
    }
}
