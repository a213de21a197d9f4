//! Which link speaks for which bucket? The link that named the bucket with the highest epoch.
//!
//! Several autoscalers may hold a link each, and one that has lost a bucket may not know it yet. So a
//! bucket's epoch only grows: what an earlier owner still says is late, whether its link stands or not. No
//! assignment loses its force when a link ends; only no link speaks for the bucket then.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{Bucket, Epoch, Ownership, ReplicaName, RevisionName, Version};

/// One link that was accepted, in the order in which they came; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkNumber(pub u64);

/// Which link speaks for which bucket, as the owners have said on their links.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// How many buckets there are in all; 0 before the first owner has named its own.
    buckets: u16,
    by_bucket: BTreeMap<Bucket, BucketClaim>,
    /// The open links, with the names of their owners once those are known.
    links: BTreeMap<LinkNumber, Option<ReplicaName>>,
}

/// The highest claim to one bucket.
#[derive(Clone, Copy, Debug)]
struct BucketClaim {
    epoch: Epoch,
    /// The link of the bucket's owner; `None` while that link is down.
    link: Option<LinkNumber>,
    /// Whether a sync has named all revisions of the bucket since the activator started.
    is_synced: bool,
    /// Whether the bucket's owner has said that no route names this activator.
    is_released: bool,
}

impl Claims {
    /// A link was opened. Until its owner names buckets it may be about to speak for any of them.
    pub fn opened(&mut self, link: LinkNumber) {
        self.links.insert(link, None);
    }

    /// A link was closed: no link speaks for its buckets until another one claims them.
    pub fn closed(&mut self, link: LinkNumber) {
        self.links.remove(&link);
        self.release_claims_of(link);
    }

    /// An owner names its buckets, all of them. Returns what of it is in force, which leaves out buckets that
    /// a later owner has claimed, and the former link of the same owner, which this one replaces.
    pub fn claim(
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
        self.release_claims_of(link);
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
                let claim = BucketClaim { epoch, link: Some(link), is_synced, is_released };
                self.by_bucket.insert(bucket, claim);
            }
            !is_late
        });
        (in_force, former)
    }

    /// A link has named all revisions of the buckets that it claimed. Returns the buckets for which it still
    /// speaks.
    pub fn complete_sync(&mut self, link: LinkNumber, claimed: Ownership) -> Ownership {
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

    /// Whether syncs have named all revisions of every bucket since the activator started.
    pub fn is_everything_synced(&self) -> bool {
        let synced = self.by_bucket.values().filter(|claim| claim.is_synced).count();
        self.buckets > 0 && synced >= usize::from(self.buckets)
    }

    /// An owner says that no route of these buckets names this activator. Returns whether that holds for all
    /// buckets now.
    pub fn released(&mut self, link: LinkNumber, buckets: &BTreeSet<Bucket>) -> bool {
        for (_, claim) in self.by_bucket.iter_mut().filter(|(bucket, _)| buckets.contains(bucket)) {
            claim.is_released |= claim.link == Some(link);
        }
        let released = self.by_bucket.values().filter(|claim| claim.is_released).count();
        self.buckets > 0 && released >= usize::from(self.buckets)
    }

    /// Whether the revision's bucket was claimed with a higher epoch than that of `version`.
    pub fn is_late(&self, revision: &RevisionName, version: Version) -> bool {
        self.by_bucket.get(&self.bucket_of(revision)).is_some_and(|claim| version.epoch < claim.epoch)
    }

    /// Whether a link receives words of a revision: it speaks for the revision's bucket, or may be about to.
    pub fn receives(&self, link: LinkNumber, revision: &RevisionName) -> bool {
        match self.links.get(&link) {
            Some(None) => true,
            Some(Some(_)) => self.speaker_of(revision) == Some(link),
            None => false,
        }
    }

    /// All links that receive words of a revision, oldest first.
    pub fn receivers(&self, revision: &RevisionName) -> impl Iterator<Item = LinkNumber> {
        let speaker = self.speaker_of(revision);
        let links = self.links.iter();
        links.filter_map(move |(&link, owner)| (owner.is_none() || speaker == Some(link)).then_some(link))
    }

    /// The open links, oldest first, and whether each has named its owner.
    pub fn links(&self) -> impl Iterator<Item = (LinkNumber, bool)> {
        self.links.iter().map(|(&link, owner)| (link, owner.is_some()))
    }

    /// The link that speaks for a revision; `None` while that of its owner is down.
    fn speaker_of(&self, revision: &RevisionName) -> Option<LinkNumber> {
        self.by_bucket.get(&self.bucket_of(revision))?.link
    }

    fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        Ownership { epochs: BTreeMap::new(), buckets: self.buckets }.bucket_of(revision)
    }

    fn release_claims_of(&mut self, link: LinkNumber) {
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
        assert!(claims.receives(ONE, &zero) && claims.receives(TWO, &zero) && claims.receives(ONE, &one));
        assert!(claims.receivers(&zero).eq([ONE, TWO]));
        claims.claim(ONE, &first, owns(&[(0, 5)]));
        assert!(claims.receives(ONE, &zero) && !claims.receives(ONE, &one));
        assert!(claims.receives(TWO, &zero), "it has not said which are its own");
        claims.claim(TWO, &second, owns(&[(1, 3)]));
        assert!(!claims.receives(TWO, &zero) && claims.receives(TWO, &one));
        assert!(claims.receivers(&zero).eq([ONE]) && claims.receivers(&one).eq([TWO]));
        claims.closed(TWO);
        assert!(
            !claims.receives(TWO, &one) && !claims.receives(ONE, &one),
            "no link speaks for the bucket now"
        );
    }

    #[test]
    fn the_highest_epoch_wins_and_stays_when_its_link_is_lost() {
        let (mut claims, [zero, one], [first, second]) = (two_links(), revisions(), names());
        claims.claim(ONE, &first, owns(&[(0, 5), (1, 5)]));
        let (in_force, former) = claims.claim(TWO, &second, owns(&[(0, 6), (1, 4)]));
        assert_eq!((in_force, former), (owns(&[(0, 6)]), None));
        assert!(claims.receives(TWO, &zero) && claims.receives(ONE, &one) && !claims.receives(ONE, &zero));
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
        assert!(claims.receives(TWO, &zero) && !claims.receives(ONE, &zero));
        claims.closed(ONE);
        assert!(claims.receives(TWO, &zero), "the end of the former takes nothing from it");
    }

    #[test]
    fn everything_is_known_once_every_bucket_was_told_by_somebody() {
        let (mut claims, _, [first, second]) = (two_links(), revisions(), names());
        assert!(!claims.is_everything_synced());
        let (of_one, _) = claims.claim(ONE, &first, owns(&[(0, 5)]));
        assert_eq!(claims.complete_sync(ONE, of_one.clone()), of_one);
        assert!(!claims.is_everything_synced());
        let (of_two, _) = claims.claim(TWO, &second, owns(&[(1, 3)]));
        claims.claim(ONE, &first, owns(&[(0, 5), (1, 4)]));
        assert_eq!(claims.complete_sync(TWO, of_two), owns(&[]), "another owner has claimed it meanwhile");
        assert!(!claims.is_everything_synced());
        assert_eq!(claims.complete_sync(ONE, owns(&[(0, 5), (1, 4)])), owns(&[(0, 5), (1, 4)]));
        assert!(claims.is_everything_synced());
    }
}
