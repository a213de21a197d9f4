//! Which of several names is meant by a key? As many as are asked for, chosen by the key, so that every
//! program chooses the same (spec kpa §7.11): activators for a revision, and a bucket of an installed
//! Knative.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::hash::fnv1a;

/// How many slots there are on the ring.
const UNIVERSE: u64 = 2048;

/// `count` of `names`, which are distinct, for whatever `key` names; all of them if there are no more. In the
/// order of the names.
pub fn choose_subset<'a>(names: &BTreeSet<&'a str>, count: usize, key: &str) -> BTreeSet<&'a str> {
    if count >= names.len() {
        return names.clone();
    }
    let ring: Vec<(u64, &str)> = ring(names, key).into_iter().collect();
    let mut angle = hash(&[key, "start-angle-salt"]) % UNIVERSE;
    let step = hash(&[key, "step-angle-salt"]) % UNIVERSE;
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        let first = ring.partition_point(|(slot, _)| *slot < angle);
        let next = (0..ring.len()).map(|offset| ring[(first + offset) % ring.len()].1);
        // The next one that is free: steps may lead back to where one was chosen, and a step of 0 leads
        // nowhere.
        let free = next.into_iter().find(|name| !chosen.contains(name));
        chosen.insert(free.expect("fewer are chosen than there are"));
        angle = (angle + step) % UNIVERSE;
    }
    chosen
}

/// The place of the one of `names` that [`choose_subset`] chooses where one is asked for; `None` if there are
/// none. The names are distinct and in their order.
pub(crate) fn choose_one(names: &[String], key: &str) -> Option<usize> {
    let mut slots = Vec::with_capacity(names.len());
    for name in names {
        // As on the ring: more names than slots would go round for ever.
        slots.push(slot(name, key, |slot| slots.len() < 2048 && slots.contains(&slot)));
    }
    let angle = hash(&[key, "start-angle-salt"]) % UNIVERSE;
    let from_angle = |slot: u64| (slot + UNIVERSE - angle) % UNIVERSE;
    (0..names.len()).min_by_key(|&place| from_angle(slots[place]))
}

/// Each name at a slot of its own.
fn ring<'a>(names: &BTreeSet<&'a str>, key: &str) -> BTreeMap<u64, &'a str> {
    let mut ring = BTreeMap::new();
    for &name in names {
        // More names than slots would go round for ever; there are never that many activators.
        let slot = slot(name, key, |slot| ring.contains_key(&slot) && ring.len() < 2048);
        ring.insert(slot, name);
    }
    ring
}

/// The slot of a name: that of its hash, which is hashed again with what came out as long as its slot is
/// taken.
fn slot(name: &str, key: &str, is_taken: impl Fn(u64) -> bool) -> u64 {
    let mut tries = String::new();
    loop {
        let full = hash(&[name, key, &tries]);
        if !is_taken(full % UNIVERSE) {
            return full % UNIVERSE;
        }
        let _ = write!(tries, "{full:x}");
    }
}

fn hash(parts: &[&str]) -> u64 {
    fnv1a(parts.iter().flat_map(|part| part.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("activator-{number}")).collect()
    }

    #[test]
    fn every_owner_chooses_the_same_activators_and_as_many_as_asked_for() {
        let names = names(7);
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for count in 0..9 {
            for key in ["default/service/hello", "default/service/other", ""] {
                let chosen = choose_subset(&all, count, key);
                assert_eq!(chosen.len(), count.min(7), "{key}");
                assert_eq!(chosen, choose_subset(&all, count, key));
            }
        }
    }

    /// N3, N4, C24 and C25: the last parts of the addresses, how many of them in all, for which revision, and
    /// who is chosen as their number grows.
    #[test]
    fn those_that_the_reference_chooses_are_chosen() {
        let rows: [(usize, &str, &[&[&str]]); 4] = [
            (8, "hello-00001", &[&["8"], &["4", "8"], &["4", "6", "8"]]),
            (8, "checkout-00042", &[&["1"], &["1", "2"], &["1", "2", "8"]]),
            (5, "hello-00001", &[&[], &["4", "5"], &["2", "4", "5"]]),
            (5, "svc-a-00001", &[&[], &["2", "4"], &["2", "3", "4"]]),
        ];
        for (count, key, chosen) in rows {
            let names: Vec<String> = (1..=count).map(|last| format!("10.0.0.{last}")).collect();
            let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            for (wanted, expected) in (1..).zip(chosen).filter(|(_, expected)| !expected.is_empty()) {
                let found: Vec<&str> = choose_subset(&all, wanted, key)
                    .into_iter()
                    .filter_map(|name| name.strip_prefix("10.0.0."))
                    .collect();
                assert_eq!(found, *expected, "{wanted} of {count} for {key}");
            }
        }
    }

    #[test]
    fn one_is_chosen_as_a_subset_of_one_is() {
        for count in 0..=10 {
            let names = names(count);
            let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            for number in 0..200 {
                let key = format!("default/r{number}");
                let place = choose_one(&names, &key);
                let expected = choose_subset(&all, 1, &key).into_iter().next();
                assert_eq!(place.map(|place| names[place].as_str()), expected, "{count}, {key}");
            }
        }
    }

    #[test]
    fn revisions_are_spread_over_the_activators() {
        let names = names(5);
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut served: BTreeMap<&str, usize> = BTreeMap::new();
        for number in 0..500 {
            for name in choose_subset(&all, 2, &format!("default/service/r{number}")) {
                *served.entry(name).or_default() += 1;
            }
        }
        // 200 each if it were even.
        assert!(served.values().all(|&revisions| (100..300).contains(&revisions)), "{served:?}");
    }

    #[test]
    fn one_that_leaves_moves_few_revisions() {
        let names = names(6);
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut fewer = all.clone();
        fewer.remove("activator-3");
        let mut kept = 0;
        for number in 0..300 {
            let key = format!("default/service/r{number}");
            let (before, after) = (choose_subset(&all, 2, &key), choose_subset(&fewer, 2, &key));
            kept += before.intersection(&after).count();
        }
        // Two thirds of 600 places were not at the one that left.
        assert!(kept >= 400, "{kept}");
    }
}
