//! What do slices claim, and which of their claims stand?
//!
//! A signed slice was written by an autoscaler, but perhaps long ago: another client may keep one and put it
//! back when its ports are another Service's. So of one Service the newest claim stands, and of two Services
//! that claim one port that with the newer one. Claims with the same number, which those of a version that
//! signed none all have, prove nothing against each other, and neither stands.

use std::collections::BTreeMap;

use vocabulary::RevisionName;

use crate::resources::ports::TargetPort;
use crate::slice_key::ClaimNumber;

/// A port of a Service, and the activators' port before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortEntry {
    pub(crate) name: Option<String>,
    pub(crate) number: u16,
    /// As the Service says now; unknown for what was only read from a slice.
    pub(crate) target: Option<TargetPort>,
    /// The activators' port; `None` while all of them are given.
    pub(crate) port: Option<u16>,
}

/// The ports of a Service, as slices or we ourselves say them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortClaim {
    /// The uid of the Service that the claim is about.
    pub(crate) uid: String,
    pub(crate) revision: RevisionName,
    pub(crate) entries: Vec<PortEntry>,
    pub(crate) number: ClaimNumber,
}

impl PortClaim {
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        self.entries.iter().filter_map(|entry| entry.port)
    }
}

/// Of which Service a port is, by the newest claim so far; `None` while two contest it.
struct PortTitle {
    number: ClaimNumber,
    uid: Option<String>,
}

/// The claims that stand, without the ports that other claims have by a better right.
pub(super) fn standing(claims: Vec<PortClaim>) -> Vec<PortClaim> {
    let mut newest = BTreeMap::<String, PortClaim>::new();
    for claim in claims {
        let is_older = newest.get(&claim.uid).is_some_and(|known| known.number > claim.number);
        if !is_older {
            newest.insert(claim.uid.clone(), claim);
        }
    }
    let mut titles = BTreeMap::<u16, PortTitle>::new();
    for claim in newest.values() {
        for port in claim.ports() {
            let number = claim.number;
            let title = titles.entry(port).or_insert(PortTitle { number, uid: Some(claim.uid.clone()) });
            if title.number < number {
                *title = PortTitle { number, uid: Some(claim.uid.clone()) };
            } else if title.number == number && title.uid.as_ref() != Some(&claim.uid) {
                title.uid = None;
            }
        }
    }
    let mut standing: Vec<PortClaim> = newest.into_values().collect();
    for claim in &mut standing {
        let uid = &claim.uid;
        let is_theirs = |port: u16| titles.get(&port).is_some_and(|title| title.uid.as_ref() == Some(uid));
        claim.entries.retain(|entry| entry.port.is_none_or(is_theirs));
    }
    standing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uid: &str, number: u64, ports: &[u16]) -> PortClaim {
        let entry = |(place, &port): (usize, &u16)| {
            let number = u16::try_from(place).expect("few");
            PortEntry { name: None, number, target: None, port: Some(port) }
        };
        let revision = RevisionName::new("default", "deployment", "hello").expect("a name");
        let entries = ports.iter().enumerate().map(entry).collect();
        PortClaim { uid: uid.to_owned(), revision, entries, number: ClaimNumber(number) }
    }

    #[test]
    fn the_newest_claim_to_a_port_stands_and_a_tie_gives_the_port_to_no_service() {
        let all = [
            ("one alone", vec![claim("a", 1, &[10_000])], vec![("a", vec![10_000])]),
            (
                "a kept slice beside the Service's own",
                vec![claim("a", 9, &[10_001]), claim("a", 5, &[10_000])],
                vec![("a", vec![10_001])],
            ),
            (
                "a kept slice against another's newer claim",
                vec![claim("a", 5, &[10_000, 10_001]), claim("b", 9, &[10_000])],
                vec![("a", vec![10_001]), ("b", vec![10_000])],
            ),
            (
                "an unsigned one against a signed one",
                vec![claim("a", 0, &[10_000]), claim("b", 1, &[10_000])],
                vec![("a", vec![]), ("b", vec![10_000])],
            ),
            (
                "two unsigned ones",
                vec![claim("a", 0, &[10_000]), claim("b", 0, &[10_000, 10_001])],
                vec![("a", vec![]), ("b", vec![10_001])],
            ),
            (
                "a tie below a third one",
                vec![claim("a", 0, &[10_000]), claim("b", 0, &[10_000]), claim("c", 3, &[10_000])],
                vec![("a", vec![]), ("b", vec![]), ("c", vec![10_000])],
            ),
            (
                "two slices of one Service",
                vec![claim("a", 4, &[10_000]), claim("a", 4, &[10_000])],
                vec![("a", vec![10_000])],
            ),
        ];
        for (what, claims, expected) in all {
            for claims in [claims.clone(), claims.into_iter().rev().collect()] {
                let standing = standing(claims);
                let found: Vec<(&str, Vec<u16>)> =
                    standing.iter().map(|claim| (claim.uid.as_str(), claim.ports().collect())).collect();
                assert_eq!(found, expected, "{what}");
            }
        }
    }
}
