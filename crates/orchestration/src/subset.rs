//! Which activators serve a revision? As many as it needs, chosen by its name, so that every owner chooses the same (spec kpa §7.11).

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::fnv1a;

/// How many slots there are on the ring.
const UNIVERSE: u64 = 2048;

/// `count` of `names`, which are distinct, for whatever `key` names; all of them if there are no more. In the order of the names.
pub(crate) fn choose<'a>(names: &BTreeSet<&'a str>, count: usize, key: &str) -> BTreeSet<&'a str> {
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
    fn the_same_are_chosen_by_everybody_and_as_many_as_asked_for() {
        let names = names(7);
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for count in 0..9 {
            for key in ["default/service/hello", "default/service/other", ""] {
                let chosen = choose(&all, count, key);
                assert_eq!(chosen.len(), count.min(7), "{key}");
                assert_eq!(chosen, choose(&all, count, key));
            }
        }
    }

    #[test]
    fn revisions_are_spread_over_the_activators() {
        let names = names(5);
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut served: BTreeMap<&str, usize> = BTreeMap::new();
        for number in 0..500 {
            for name in choose(&all, 2, &format!("default/service/r{number}")) {
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
            let (before, after) = (choose(&all, 2, &key), choose(&fewer, 2, &key));
            kept += before.intersection(&after).count();
        }
        // Two thirds of 600 places were not at the one that left.
        assert!(kept >= 400, "{kept}");
    }
}
