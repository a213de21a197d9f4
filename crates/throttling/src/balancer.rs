//! Which pod takes the next request?
//!
//! As in Knative: with up to three slots per pod the first pod that has one (so few pods are kept warm and
//! full), from four on each in turn, and without a limit the less loaded of two drawn at random. Unlike
//! Knative's, an empty list is an answer (`None`), not a panic.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// How a pod is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The first in order with a free slot.
    FirstAvailable,
    /// Each in turn, from behind the last one chosen.
    RoundRobin,
    /// Of two different ones drawn at random, the less loaded; a coin decides ties.
    BetterOfTwo,
}

impl Policy {
    /// The policy for a containerConcurrency; 0 means no limit.
    pub(crate) fn for_concurrency(container_concurrency: u32) -> Self {
        match container_concurrency {
            0 => Self::BetterOfTwo,
            1..=3 => Self::FirstAvailable,
            4.. => Self::RoundRobin,
        }
    }
}

/// A pod as the balancer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Requests of ours that run in it.
    pub(crate) in_flight: u32,
    /// How many may; 0 means no limit.
    pub(crate) slots: u32,
}

impl Candidate {
    /// Whether it may take one more.
    pub(crate) fn has_room(self) -> bool {
        self.slots == 0 || self.in_flight < self.slots
    }
}

/// Chooses among pods; remembers the pod that has the next turn.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    cursor: usize,
    random: SmallRng,
}

impl Balancer {
    /// A balancer whose chances follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { cursor: 0, random: SmallRng::seed_from_u64(seed) }
    }

    /// The index of the chosen one among `count` candidates that `candidate` describes; `None` if none has
    /// room.
    pub(crate) fn pick(
        &mut self,
        policy: Policy,
        count: usize,
        candidate: impl Fn(usize) -> Candidate,
    ) -> Option<usize> {
        let has_room = |&index: &usize| candidate(index).has_room();
        match policy {
            Policy::FirstAvailable => (0..count).find(has_room),
            Policy::RoundRobin => {
                // The list may have got shorter since the last turn; then it begins anew.
                let start = if self.cursor < count { self.cursor } else { 0 };
                let chosen = (start..count).chain(0..start).find(has_room)?;
                self.cursor = chosen + 1;
                Some(chosen)
            }
            Policy::BetterOfTwo => self.better_of_two(count, candidate),
        }
    }

    /// With limits (in direct mode there are none) a full pair is no answer while others have room, so the
    /// search goes on in order.
    fn better_of_two(&mut self, count: usize, candidate: impl Fn(usize) -> Candidate) -> Option<usize> {
        let (first, second) = self.two_of(count)?;
        // A pod that is left alone is described as holding more than any other, so it loses here too.
        let better = match (candidate(first), candidate(second)) {
            (a, b) if a.in_flight < b.in_flight => first,
            (a, b) if a.in_flight > b.in_flight => second,
            _ if self.random.random_bool(0.5) => first,
            _ => second,
        };
        (better..count).chain(0..better).find(|&index| candidate(index).has_room())
    }

    /// Two different indices, each pair equally likely; the same twice if there is only one.
    fn two_of(&mut self, count: usize) -> Option<(usize, usize)> {
        match count {
            0 => None,
            1 => Some((0, 0)),
            2.. => {
                // Drawing until two differ takes an unknown number of draws; one of the others, counted
                // without the first, is as fair.
                let first = self.random.random_range(0..count);
                let second = self.random.random_range(0..count - 1);
                Some((first, if second >= first { second + 1 } else { second }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pods by name, with the same number of slots each.
    struct Pods {
        balancer: Balancer,
        policy: Policy,
        slots: u32,
        in_flight: std::collections::BTreeMap<char, u32>,
    }

    impl Pods {
        fn with(policy: Policy, slots: u32) -> Self {
            Self { balancer: Balancer::new(7), policy, slots, in_flight: std::collections::BTreeMap::new() }
        }

        fn pick(&mut self, listed: &str) -> Option<char> {
            let names: Vec<char> = listed.chars().collect();
            let chosen = self.balancer.pick(self.policy, names.len(), |index| Candidate {
                in_flight: self.in_flight.get(&names[index]).copied().unwrap_or(0),
                slots: self.slots,
            })?;
            *self.in_flight.entry(names[chosen]).or_default() += 1;
            Some(names[chosen])
        }

        fn release(&mut self, name: char) {
            *self.in_flight.get_mut(&name).expect("it was picked") -= 1;
        }
    }

    #[test]
    fn the_policy_follows_the_concurrency() {
        let policies = [0, 1, 3, 4, 1000].map(Policy::for_concurrency);
        assert_eq!(
            policies,
            [
                Policy::BetterOfTwo,
                Policy::FirstAvailable,
                Policy::FirstAvailable,
                Policy::RoundRobin,
                Policy::RoundRobin
            ]
        );
    }

    #[test]
    fn c17_round_robin_with_one_slot_each() {
        let mut pods = Pods::with(Policy::RoundRobin, 1);
        let picks = [pods.pick("abc"), pods.pick("abc"), pods.pick("a"), pods.pick("abc"), pods.pick("abc")];
        assert_eq!(picks, [Some('a'), Some('b'), None, Some('c'), None]);
        pods.release('c');
        assert_eq!(pods.pick("abc"), Some('c'));
    }

    #[test]
    fn c18_round_robin_goes_on_after_the_list_was_short() {
        let mut pods = Pods::with(Policy::RoundRobin, 2);
        let picks =
            ["abc", "abc", "a", "abc", "abc", "abc"].map(|listed| pods.pick(listed).expect("has room"));
        assert_eq!(picks, ['a', 'b', 'a', 'b', 'c', 'c']);
    }

    #[test]
    fn c19_first_available_takes_them_in_order() {
        let mut pods = Pods::with(Policy::FirstAvailable, 1);
        assert_eq!([pods.pick("ab"), pods.pick("ab"), pods.pick("ab")], [Some('a'), Some('b'), None]);
    }

    #[test]
    fn c20_first_available_fills_the_first_pod() {
        let mut pods = Pods::with(Policy::FirstAvailable, 3);
        assert_eq!([(); 3].map(|()| pods.pick("abcde")), [Some('a'); 3]);
    }

    #[test]
    fn c21_better_of_two_prefers_the_idle_one_and_spreads_ties() {
        let mut pods = Pods::with(Policy::BetterOfTwo, 0);
        pods.in_flight.insert('a', 1);
        assert_eq!(pods.pick("ab"), Some('b'));
        let firsts = (0..100)
            .filter(|_| {
                pods.in_flight.clear();
                pods.pick("ab") == Some('a')
            })
            .count();
        assert!((20..=80).contains(&firsts), "{firsts} of 100 ties went to the first");
    }

    #[test]
    fn better_of_two_among_many_never_picks_the_busiest() {
        let mut pods = Pods::with(Policy::BetterOfTwo, 0);
        for _ in 0..200 {
            pods.in_flight = [('a', 9), ('b', 0), ('c', 0), ('d', 0)].into();
            assert_ne!(pods.pick("abcd"), Some('a'));
        }
    }

    #[test]
    fn an_empty_list_is_no_pod() {
        for policy in [Policy::FirstAvailable, Policy::RoundRobin, Policy::BetterOfTwo] {
            assert_eq!(Pods::with(policy, 1).pick(""), None);
        }
    }
}
