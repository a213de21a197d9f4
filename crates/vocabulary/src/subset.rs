//! Which of several names is meant by a key? As many as are asked for, chosen by the key, so that every
//! program chooses the same (spec kpa §7.11): activators for a revision, and a bucket of an installed
//! Knative.

use std::collections::{BTreeMap, BTreeSet};

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

/// Each name at a slot of its own.
fn ring<'a>(names: &BTreeSet<&'a str>, key: &str) -> BTreeMap<u64, &'a str> {
    let mut ring = BTreeMap::new();
    for &name in names {
        let mut text = format!("{name}{key}");
        let mut full = fnv1a(text.bytes());
        // More names than slots would go round for ever; there are never that many activators.
        while ring.contains_key(&(full % UNIVERSE)) && ring.len() < 2048 {
            text = format!("{text}{full:x}");
            full = fnv1a(text.bytes());
        }
        ring.insert(full % UNIVERSE, name);
    }
    ring
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
