//! Who speaks for which bucket? The link that named it with the highest epoch.
//!
//! Several autoscalers may hold a link each, and one that has lost a bucket may not know it yet. So a
//! bucket's epoch only grows: what an earlier owner still says is late, whether its link stands or not.
//! Nothing that was said loses its force when a link ends; only nobody speaks for the bucket then.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{Bucket, Epoch, Ownership, ReplicaName, RevisionName, Version};

/// One link that was accepted, in the order in which they came; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkNumber(pub(crate) u64);

/// What the owners said about who they are.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// How many buckets there are; 0 until somebody said so.
    buckets: u16,
    by_bucket: BTreeMap<Bucket, LoadClaim>,
    /// The links that stand, with their owners' names once they said them.
    links: BTreeMap<LinkNumber, Option<ReplicaName>>,
}

/// The highest claim to one bucket.
#[derive(Clone, Copy, Debug)]
struct LoadClaim {
    epoch: Epoch,
    /// Who speaks for it; `None` while that link is down.
    link: Option<LinkNumber>,
    /// Whether all of it was told once in this boot.
    is_synced: bool,
    /// Whether its owner has said that no route names this activator.
    is_released: bool,
}

impl Claims {
    /// A link stands. Until it names buckets it may be about to speak for any of them.
    pub(crate) fn opened(&mut self, link: LinkNumber) {
        self.links.insert(link, None);
    }

    /// A link is gone.
    pub(crate) fn closed(&mut self, link: LinkNumber) {
        self.links.remove(&link);
        self.give_back(link);
    }

    /// An owner names its buckets, all of them. Returns what of it is in force, which leaves out buckets that
    /// a later owner has claimed, and the former link of the same owner, which this one replaces.
    pub(crate) fn claim(
        &mut self,
        link: LinkNumber,
        owner: &ReplicaName,
        ownership: Ownership,
    ) -> (Ownership, Option<LinkNumber>) {
        // Their number changes only while no autoscaler runs; epochs of other buckets say nothing about
        // these.
        if self.buckets != ownership.buckets {
            self.buckets = ownership.buckets;
            self.by_bucket.clear();
        }
        self.give_back(link);
        let mut former =
            self.links.iter().filter(|&(&other, name)| other != link && name.as_ref() == Some(owner));
        let former = former.next().map(|(&other, _)| other);
        if let Some(former) = former {
            self.closed(former);
        }
        self.links.insert(link, Some(owner.clone()));
        let mut in_force = ownership;
        in_force.epochs.retain(|&bucket, &mut epoch| {
            let known = self.by_bucket.get(&bucket);
            let is_late = known.is_some_and(|known| epoch < known.epoch);
            if !is_late {
                let is_synced = known.is_some_and(|known| known.is_synced);
                // A later owner may have found routes that name this activator.
                let is_released = known.is_some_and(|known| known.is_released && known.epoch == epoch);
                let claim = LoadClaim { epoch, link: Some(link), is_synced, is_released };
                self.by_bucket.insert(bucket, claim);
            }
            !is_late
        });
        (in_force, former)
    }

    /// A link has told all of the buckets that it claimed. Returns those of which that is still its affair.
    pub(crate) fn told_all(&mut self, link: LinkNumber, claimed: Ownership) -> Ownership {
        let mut told = claimed;
        told.epochs.retain(|bucket, epoch| match self.by_bucket.get_mut(bucket) {
            Some(claim) if claim.link == Some(link) && claim.epoch == *epoch => {
                claim.is_synced = true;
                true
            }
            Some(_) | None => false,
        });
        told
    }

    /// Whether all of every bucket was told in this boot.
    pub(crate) fn is_everything_synced(&self) -> bool {
        let synced = self.by_bucket.values().filter(|claim| claim.is_synced).count();
        self.buckets > 0 && synced >= usize::from(self.buckets)
    }

    /// An owner says that no route of these buckets names this activator. Returns whether that holds for all
    /// buckets now.
    pub(crate) fn released(&mut self, link: LinkNumber, buckets: &BTreeSet<Bucket>) -> bool {
        for (_, claim) in self.by_bucket.iter_mut().filter(|(bucket, _)| buckets.contains(bucket)) {
            claim.is_released |= claim.link == Some(link);
        }
        let released = self.by_bucket.values().filter(|claim| claim.is_released).count();
        self.buckets > 0 && released >= usize::from(self.buckets)
    }

    /// Whether a later owner has claimed the revision's bucket than the one that said this.
    pub(crate) fn is_late(&self, revision: &RevisionName, version: Version) -> bool {
        self.by_bucket.get(&self.bucket_of(revision)).is_some_and(|claim| version.epoch < claim.epoch)
    }

    /// Whether a link hears of a revision: it speaks for its bucket, or may be about to.
    pub(crate) fn hears(&self, link: LinkNumber, revision: &RevisionName) -> bool {
        match self.links.get(&link) {
            Some(None) => true,
            Some(Some(_)) => {
                self.by_bucket.get(&self.bucket_of(revision)).is_some_and(|claim| claim.link == Some(link))
            }
            None => false,
        }
    }

    /// The links that stand, in the order in which they came, and whether each said whose it is.
    pub(crate) fn links(&self) -> impl Iterator<Item = (LinkNumber, bool)> {
        self.links.iter().map(|(&link, owner)| (link, owner.is_some()))
    }

    fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        Ownership { epochs: BTreeMap::new(), buckets: self.buckets }.bucket_of(revision)
    }

    fn give_back(&mut self, link: LinkNumber) {
        for claim in self.by_bucket.values_mut().filter(|claim| claim.link == Some(link)) {
            claim.link = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: LinkNumber = LinkNumber(1);
    const TWO: LinkNumber = LinkNumber(2);

    fn owns(epochs: &[(u16, u64)]) -> Ownership {
        let epochs = epochs.iter().map(|&(bucket, epoch)| (Bucket(bucket), Epoch(epoch)));
        Ownership { epochs: epochs.collect(), buckets: 2 }
    }

    fn of_epoch(epoch: u64) -> Version {
        Version { epoch: Epoch(epoch), counter: 1 }
    }

    /// A revision in each of two buckets.
    fn revisions() -> [RevisionName; 2] {
        let names = (0..)
            .map(|number| RevisionName::new("default", "service", &format!("r{number}")).expect("a name"));
        let names: Vec<RevisionName> = names.take(20).collect();
        [0, 1].map(|bucket| {
            let found = names.iter().find(|name| owns(&[]).bucket_of(name) == Bucket(bucket));
            found.expect("20 names fall into both").clone()
        })
    }

    fn names() -> [ReplicaName; 2] {
        ["one", "two"].map(ReplicaName::new)
    }

    fn two_links() -> Claims {
        let mut claims = Claims::default();
        claims.opened(ONE);
        claims.opened(TWO);
        claims
    }

    #[test]
    fn each_link_hears_of_its_own_buckets_and_of_all_until_it_names_them() {
        let (mut claims, [zero, one], [first, second]) = (two_links(), revisions(), names());
        assert!(claims.hears(ONE, &zero) && claims.hears(TWO, &zero) && claims.hears(ONE, &one));
        claims.claim(ONE, &first, owns(&[(0, 5)]));
        assert!(claims.hears(ONE, &zero) && !claims.hears(ONE, &one));
        assert!(claims.hears(TWO, &zero), "it has not said which are its own");
        claims.claim(TWO, &second, owns(&[(1, 3)]));
        assert!(!claims.hears(TWO, &zero) && claims.hears(TWO, &one));
        claims.closed(TWO);
        assert!(!claims.hears(TWO, &one) && !claims.hears(ONE, &one), "nobody speaks for it now");
    }

    #[test]
    fn the_highest_epoch_wins_and_stays_when_its_link_is_lost() {
        let (mut claims, [zero, one], [first, second]) = (two_links(), revisions(), names());
        claims.claim(ONE, &first, owns(&[(0, 5), (1, 5)]));
        let (in_force, former) = claims.claim(TWO, &second, owns(&[(0, 6), (1, 4)]));
        assert_eq!((in_force, former), (owns(&[(0, 6)]), None));
        assert!(claims.hears(TWO, &zero) && claims.hears(ONE, &one) && !claims.hears(ONE, &zero));
        claims.closed(TWO);
        assert!(claims.is_late(&zero, of_epoch(5)) && !claims.is_late(&zero, of_epoch(6)));
        assert!(!claims.is_late(&one, of_epoch(5)));
        let (in_force, _) = claims.claim(ONE, &first, owns(&[(0, 5), (1, 5)]));
        assert_eq!(in_force, owns(&[(1, 5)]), "a late owner gets nothing back");
    }

    #[test]
    fn a_new_link_of_the_same_owner_replaces_the_former() {
        let (mut claims, [zero, _], [first, _]) = (two_links(), revisions(), names());
        claims.claim(ONE, &first, owns(&[(0, 5)]));
        let (in_force, former) = claims.claim(TWO, &first, owns(&[(0, 5)]));
        assert_eq!((in_force, former), (owns(&[(0, 5)]), Some(ONE)));
        assert!(claims.hears(TWO, &zero) && !claims.hears(ONE, &zero));
        claims.closed(ONE);
        assert!(claims.hears(TWO, &zero), "the end of the former takes nothing from it");
    }

    #[test]
    fn everything_is_known_once_every_bucket_was_told_by_somebody() {
        let (mut claims, _, [first, second]) = (two_links(), revisions(), names());
        assert!(!claims.is_everything_synced());
        let (of_one, _) = claims.claim(ONE, &first, owns(&[(0, 5)]));
        assert_eq!(claims.told_all(ONE, of_one.clone()), of_one);
        assert!(!claims.is_everything_synced());
        let (of_two, _) = claims.claim(TWO, &second, owns(&[(1, 3)]));
        claims.claim(ONE, &first, owns(&[(0, 5), (1, 4)]));
        assert_eq!(claims.told_all(TWO, of_two), owns(&[]), "another owner has claimed it meanwhile");
        assert!(!claims.is_everything_synced());
        assert_eq!(claims.told_all(ONE, owns(&[(0, 5), (1, 4)])), owns(&[(0, 5), (1, 4)]));
        assert!(claims.is_everything_synced());
    }
}
