//! Which activators stand in the Endpoints of a revision, and which pods of it are an activator's?

use std::collections::BTreeSet;
use std::net::IpAddr;

/// The size of the ring on which names lie.
const RING: u64 = 2048;

/// The hash FNV-1a with 64 bits.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The `count` names that are chosen for a target among distinct ones; all of them if there are no more.
pub(super) fn chosen<'n>(names: &BTreeSet<&'n str>, count: usize, target: &str) -> BTreeSet<&'n str> {
    if count == 0 || count >= names.len() {
        return names.clone();
    }
    let slots = slots(names, target);
    let salted = |salt: &str| hash(format!("{target}{salt}").as_bytes()) % RING;
    let (mut angle, step) = (salted("start-angle-salt"), salted("step-angle-salt"));
    let mut taken = BTreeSet::new();
    while taken.len() < count {
        let first = slots.partition_point(|(slot, _)| *slot < angle) % slots.len();
        let free = (0..slots.len()).map(|turn| (first + turn) % slots.len()).find(|at| !taken.contains(at));
        taken.insert(free.expect("fewer names are taken than there are"));
        angle = (angle + step) % RING;
    }
    taken.into_iter().map(|at| slots[at].1).collect()
}

/// Each name with its place on the ring, in the order of places.
fn slots<'n>(names: &BTreeSet<&'n str>, target: &str) -> Vec<(u64, &'n str)> {
    let mut slots: Vec<(u64, &str)> = Vec::new();
    for name in names {
        let mut bytes = format!("{name}{target}").into_bytes();
        let mut full = hash(&bytes);
        // A name whose place is taken goes on from its own hash.
        while slots.iter().any(|(slot, _)| *slot == full % RING) {
            bytes.extend(format!("{full:x}").into_bytes());
            full = hash(&bytes);
        }
        slots.push((full % RING, name));
    }
    slots.sort_unstable();
    slots
}

/// The pods that one activator of several sends requests to, among the pods in the order of their addresses
/// as texts. `place` is the activator's number among `activators` and `None` while the Endpoints do not name
/// it.
pub(super) fn assigned(pods: &[IpAddr], place: Option<usize>, activators: usize) -> Vec<IpAddr> {
    let all = pods.len();
    let (Some(place), true, true) = (place, all > 1, activators > 1) else { return pods.to_vec() };
    if activators > all {
        return vec![pods[place % all]];
    }
    let (share, rest) = (all / activators, all % activators);
    let mut own = pods[place * share..(place + 1) * share].to_vec();
    if place < rest {
        own.push(pods[all - rest + place]);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors C24 and C25.
    #[test]
    fn the_choice_of_activators_is_knatives() {
        let names: BTreeSet<&str> =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"].into_iter().collect();
        for (target, count, expected) in [
            ("hello-00001", 2, vec!["10.0.0.4", "10.0.0.5"]),
            ("hello-00001", 3, vec!["10.0.0.2", "10.0.0.4", "10.0.0.5"]),
            ("svc-a-00001", 2, vec!["10.0.0.2", "10.0.0.4"]),
            ("svc-a-00001", 3, vec!["10.0.0.2", "10.0.0.3", "10.0.0.4"]),
        ] {
            let found: Vec<&str> = chosen(&names, count, target).into_iter().collect();
            assert_eq!(found, expected, "{target} {count}");
        }
        assert_eq!(chosen(&names, 0, "x").len(), 5, "0 means all");
    }

    /// The vectors C7 to C14.
    #[test]
    fn the_share_of_an_activator_is_knatives() {
        let pods = |count: u8| (0..count).map(|last| IpAddr::from([10, 0, 0, last])).collect::<Vec<_>>();
        let share = |count: u8, place: Option<usize>, activators: usize| -> Vec<u8> {
            let own = assigned(&pods(count), place, activators);
            let last = |address: IpAddr| match address {
                IpAddr::V4(address) => address.octets()[3],
                IpAddr::V6(address) => panic!("{address} is none of these"),
            };
            own.into_iter().map(last).collect()
        };
        assert_eq!(share(6, Some(1), 4), [1, 5]);
        assert_eq!(share(6, Some(2), 4), [2]);
        assert_eq!(share(10, Some(0), 3), [0, 1, 2, 9]);
        assert_eq!(share(2, Some(2), 3), [0]);
        assert_eq!(share(1, Some(2), 3), [0]);
        assert_eq!(share(24, Some(4), 5), [16, 17, 18, 19]);
        assert_eq!(share(3, None, 2), [0, 1, 2]);
    }
}
