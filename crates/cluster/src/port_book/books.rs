//! The ports of all buckets. Bucket b of B gives those that leave b when divided by B, so that no two owners,
//! which know of each other only through slices, give the same port.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{Bucket, Ownership, RevisionName, Timestamp};

use super::claims::{self, PortClaim, PortEntry};
use super::{FormerPort, PortBook, PortNotes, PortSeeker, PortShare, ServicePorts, WallSeconds, is_given};
use crate::slice_key::ClaimNumber;

/// A book for each bucket.
#[derive(Debug)]
pub(crate) struct PortBooks {
    /// One book for each bucket, in the order of the buckets' numbers.
    books: Vec<PortBook>,
    count: u16,
}

/// The notes and claims from which the new owner of a bucket learns its ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortHandover {
    /// The notes on the bucket's own Lease.
    pub(crate) notes: PortNotes,
    /// The notes of all other Leases.
    pub(crate) elsewhere: Vec<PortNotes>,
    /// The claims of all slices, of all buckets.
    pub(crate) claims: Vec<PortClaim>,
}

impl PortHandover {
    /// Until when slices without a signature are believed; see [`PortNotes::unsigned_until`].
    pub(crate) fn unsigned_until(&self, now: WallSeconds) -> WallSeconds {
        self.notes.unsigned_until(&self.elsewhere, now)
    }
}

/// How far a claim is believed.
struct ClaimTrust {
    /// Ports of unsigned claims are of the bucket's present share. A signed claim proves that an autoscaler
    /// gave the port, and that autoscaler gave one of its share at that time: where the number of buckets has
    /// changed since, most Services keep a port of another share, and would lose connections without it. No
    /// tenant can sign another port, and an old claim that a tenant has kept loses by its number, or because
    /// no Lease calls its port given.
    share: PortShare,
    /// All that Leases call given, where any says something.
    given: Option<BTreeSet<u16>>,
    /// Whether claims of slices without a signature count.
    has_unsigned: bool,
}

impl ClaimTrust {
    fn of(&self, mut claim: PortClaim) -> Option<PortClaim> {
        let is_signed = claim.number > ClaimNumber::UNSIGNED;
        let is_believed = |port: u16| {
            is_given(port)
                && (is_signed || self.share.has(port))
                && self.given.as_ref().is_none_or(|given| given.contains(&port))
        };
        claim.entries.retain(|entry| entry.port.is_none_or(is_believed));
        (is_signed || self.has_unsigned).then_some(claim)
    }
}

impl PortBooks {
    /// For so many buckets; zero is read as one.
    pub(crate) fn new(buckets: u16) -> Self {
        let buckets = buckets.max(1);
        let books = (0..buckets).map(|bucket| PortBook::new(PortShare { bucket, buckets })).collect();
        Self { books, count: buckets }
    }

    /// In which bucket a revision is.
    pub(crate) fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        Ownership { epochs: BTreeMap::new(), buckets: self.count }.bucket_of(revision)
    }

    fn book(&self, bucket: Bucket) -> &PortBook {
        &self.books[usize::from(bucket.0)]
    }

    fn book_mut(&mut self, bucket: Bucket) -> &mut PortBook {
        &mut self.books[usize::from(bucket.0)]
    }

    /// The ports of a bucket are ours to give from now on; see [`PortBook::take_over`]. What others noted of
    /// such ports `elsewhere` is from a time when there was another number of buckets, and rests as well.
    pub(crate) fn take_over(&mut self, bucket: Bucket, handover: PortHandover, now: WallSeconds) {
        let unsigned_until = handover.unsigned_until(now);
        let PortHandover { mut notes, elsewhere, claims } = handover;
        let taken: BTreeSet<u16> = self.books.iter().flat_map(|book| &book.taken).copied().collect();
        let mut given = notes.given.clone();
        let share = self.book(bucket).share;
        for other in &elsewhere {
            given.extend(&other.given);
            // Where the number of buckets grew, the owner of another bucket lets ports rest that it finds in
            // its notes and at none of its Services, also those of Services that are in this bucket by now.
            // A port that rests is no other Service's.
            given.extend(other.resting.keys());
            notes.number = notes.number.max(other.number);
            let resting = other.resting.iter().filter(|(port, _)| share.has(**port));
            notes.resting.extend(resting.map(|(port, until)| (*port, *until)));
            notes.given.extend(other.given.difference(&taken).filter(|port| share.has(**port)));
        }
        let trust = ClaimTrust {
            share,
            // Each port that was given stood on a Lease before any slice named it: another port is one that
            // has been free since, and a slice that another client has kept.
            given: (!notes.is_empty()).then_some(given),
            has_unsigned: now < unsigned_until,
        };
        notes.unsigned_until = Some(unsigned_until);
        let claims = self.with_own(bucket, claims);
        let mut claims = claims::standing(claims.into_iter().filter_map(|claim| trust.of(claim)).collect());
        claims.retain(|claim| self.bucket_of(&claim.revision) == bucket);
        let others = (0..).map(Bucket).zip(&self.books);
        let others = others.filter(|(other, book)| *other != bucket && book.is_ours);
        let others: BTreeSet<u16> = others.flat_map(|(_, book)| &book.taken).copied().collect();
        for claim in &mut claims {
            claim.entries.retain(|entry| entry.port.is_none_or(|port| !others.contains(&port)));
        }
        self.book_mut(bucket).take_over(&notes, claims, now);
    }

    /// The claims of slices, and what we have given in a bucket ourselves: slices may not say that yet.
    fn with_own(&self, bucket: Bucket, mut claims: Vec<PortClaim>) -> Vec<PortClaim> {
        let signed = self.book(bucket).services.iter();
        let signed = signed.filter(|(_, service)| service.number > ClaimNumber::UNSIGNED);
        let own = signed.map(|(uid, service)| {
            let ServicePorts { revision, entries, number } = service.clone();
            PortClaim { uid: uid.clone(), revision, entries, number }
        });
        claims.extend(own);
        claims
    }

    /// The ports of a bucket are another owner's to give.
    pub(crate) fn give_up(&mut self, bucket: Bucket) {
        self.book_mut(bucket).is_ours = false;
    }

    /// Buckets of ours whose next owner is to believe slices without a signature.
    pub(crate) fn believing_unsigned(&self, now: WallSeconds) -> Vec<Bucket> {
        let all = (0..).map(Bucket).zip(&self.books);
        all.filter(|(_, book)| book.believes_unsigned(now)).map(|(bucket, _)| bucket).collect()
    }

    /// All slices of a bucket are signed: no later owner believes one without a signature.
    pub(crate) fn all_signed(&mut self, bucket: Bucket, now: WallSeconds) {
        self.book_mut(bucket).all_signed(now);
    }

    /// The notes that are to be on Leases of ours, where they may be others than at the last call.
    pub(crate) fn news(&mut self) -> impl Iterator<Item = (Bucket, PortNotes)> {
        let ours = (0..).map(Bucket).zip(&mut self.books).filter(|(_, book)| book.is_ours);
        ours.filter_map(|(bucket, book)| Some((bucket, book.news()?)))
    }

    /// Whether ports of a bucket wait for its Lease.
    pub(crate) fn is_waiting(&self, bucket: Bucket) -> bool {
        self.book(bucket).is_waiting()
    }

    /// A bucket's Lease has these notes; returns whether ports may be used now that might not before.
    pub(crate) fn recorded(&mut self, bucket: Bucket, notes: &PortNotes) -> bool {
        self.book_mut(bucket).recorded(notes)
    }

    /// Takes in a slice's claim for a Service that is served by a revision.
    pub(crate) fn learn(&mut self, claim: &PortClaim) {
        let bucket = self.bucket_of(&claim.revision);
        // A Service that is in another bucket by now is given up by that bucket, if that bucket is ours.
        let is_known = |book: &PortBook| book.is_ours && book.services.contains_key(&claim.uid);
        let trust = ClaimTrust { share: self.book(bucket).share, given: None, has_unsigned: true };
        if !self.books.iter().any(is_known)
            && let Some(claim) = trust.of(claim.clone())
        {
            self.leave_others(&claim.uid, bucket);
            self.book_mut(bucket).learn(claim);
        }
    }

    /// Whether the ports of a bucket are ours to give.
    pub(crate) fn is_ours(&self, bucket: Bucket) -> bool {
        self.book(bucket).is_ours
    }

    /// The number of what a Service's slices claim.
    pub(crate) fn number_of(&self, uid: &str) -> Option<ClaimNumber> {
        self.books.iter().find_map(|book| book.number_of(uid))
    }

    /// Whether a Service's ports were given theirs, and that is on the Lease.
    pub(crate) fn is_settled(&self, uid: &str) -> bool {
        self.books.iter().any(|book| book.is_settled(uid))
    }

    /// The ports of a Service that may be used.
    pub(crate) fn of_service(&self, uid: &str) -> impl Iterator<Item = &PortEntry> {
        self.books.iter().flat_map(move |book| book.of_service(uid))
    }

    /// The former ports at which requests may still come in for a revision.
    pub(crate) fn former_of(&self, revision: &RevisionName) -> impl Iterator<Item = (u16, &FormerPort)> {
        self.book(self.bucket_of(revision)).former_of(revision)
    }

    /// Gives each of a Service's ports one, if they are ours to give; see [`PortBook::settle`].
    pub(crate) fn settle(&mut self, seeker: &PortSeeker<'_>, now: Timestamp, wall: WallSeconds) -> bool {
        let bucket = self.bucket_of(seeker.revision);
        self.leave_others(seeker.uid, bucket);
        if !self.book(bucket).is_ours {
            return false;
        }
        let others = (0..).map(Bucket).zip(&self.books).filter(|(other, _)| *other != bucket);
        let elsewhere: BTreeSet<u16> = others.flat_map(|(_, book)| &book.taken).copied().collect();
        self.book_mut(bucket).settle(seeker, &elsewhere, (now, wall))
    }

    /// A Service is not ours to serve any more.
    pub(crate) fn remove_service(&mut self, uid: &str) {
        for book in &mut self.books {
            book.remove_service(uid);
        }
    }

    /// Lets go of former ports at which no requests come in any more; returns their revisions.
    pub(crate) fn expire(&mut self, now: Timestamp) -> BTreeSet<RevisionName> {
        self.books.iter_mut().flat_map(|book| book.expire(now)).collect()
    }

    /// When [`PortBooks::expire`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.books.iter().filter_map(PortBook::next_deadline).min()
    }

    /// Services that got none for a port, once one is free again.
    pub(crate) fn starving(&mut self, wall: WallSeconds) -> BTreeSet<String> {
        self.books.iter_mut().flat_map(|book| book.starving(wall).cloned().collect::<Vec<_>>()).collect()
    }

    /// When [`PortBooks::starving`] has something to say.
    pub(crate) fn free_again(&self) -> Option<WallSeconds> {
        self.books.iter().filter_map(PortBook::free_again).min()
    }

    /// No activator listens at this port any more.
    pub(crate) fn rest(&mut self, port: u16, wall: WallSeconds) {
        for book in &mut self.books {
            book.rest(port, wall);
        }
    }

    /// A Service names another workload, whose bucket gives it other ports: the other buckets let go of
    /// theirs.
    fn leave_others(&mut self, uid: &str, bucket: Bucket) {
        let others = (0..).map(Bucket).zip(&mut self.books).filter(|(other, _)| *other != bucket);
        for (_, book) in others {
            book.remove_service(uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::ports::{ServicePort, TargetPort};

    const NOW: Timestamp = Timestamp::ZERO;
    const WALL: WallSeconds = WallSeconds(1_000_000);

    /// A revision of a bucket of two.
    fn revision(bucket: u16) -> RevisionName {
        let mut names = (0..).map(|number| RevisionName::new("default", "deployment", &format!("r{number}")));
        let books = PortBooks::new(2);
        let found = names.find_map(|name| name.ok().filter(|name| books.bucket_of(name) == Bucket(bucket)));
        found.expect("half of them are")
    }

    fn settle(books: &mut PortBooks, uid: &str, revision: &RevisionName) -> bool {
        let target = TargetPort::Number(8080);
        let port = ServicePort { name: None, number: 80, target, app_protocol: None };
        books.settle(&PortSeeker { uid, revision, ports: vec![&port] }, NOW, WALL)
    }

    fn record(books: &mut PortBooks) {
        let news: Vec<_> = books.news().collect();
        for (bucket, notes) in news {
            books.recorded(bucket, &notes);
        }
    }

    fn given(books: &PortBooks, uid: &str) -> Vec<u16> {
        books.of_service(uid).filter_map(|entry| entry.port).collect()
    }

    /// As a signed slice of the first bucket's revision says.
    fn claim(uid: &str, port: u16) -> PortClaim {
        claim_of(uid, 0, port)
    }

    fn claim_of(uid: &str, bucket: u16, port: u16) -> PortClaim {
        let entry = PortEntry { name: None, number: 80, target: None, port: Some(port) };
        let number = ClaimNumber(3);
        PortClaim { uid: uid.to_owned(), revision: revision(bucket), entries: vec![entry], number }
    }

    fn owning(buckets: &[u16]) -> PortBooks {
        let mut books = PortBooks::new(2);
        for bucket in buckets {
            books.take_over(Bucket(*bucket), PortHandover::default(), WALL);
        }
        books
    }

    #[test]
    fn only_the_owner_of_a_bucket_gives_its_ports() {
        let mut books = owning(&[1]);
        for (uid, bucket) in [("a", 0), ("b", 1), ("c", 1)] {
            assert_eq!(settle(&mut books, uid, &revision(bucket)), bucket == 1, "{uid}");
        }
        record(&mut books);
        assert_eq!(
            [given(&books, "a"), given(&books, "b"), given(&books, "c")],
            [vec![], vec![10_001], vec![10_003]]
        );
        books.learn(&claim("a", 10_000));
        assert_eq!(given(&books, "a"), [10_000], "as a slice of the other owner says");
        books.take_over(Bucket(0), PortHandover::default(), WALL);
        settle(&mut books, "a", &revision(0));
        settle(&mut books, "d", &revision(0));
        record(&mut books);
        assert_eq!((given(&books, "a"), given(&books, "d")), (vec![10_000], vec![10_002]));
    }

    #[test]
    fn a_service_whose_workload_is_another_buckets_gets_a_port_of_that_one() {
        let mut books = owning(&[0, 1]);
        settle(&mut books, "a", &revision(0));
        settle(&mut books, "a", &revision(1));
        record(&mut books);
        assert_eq!(given(&books, "a"), [10_001]);
        books.rest(10_000, WALL);
        settle(&mut books, "b", &revision(0));
        record(&mut books);
        assert_eq!(given(&books, "b"), [10_002], "the former one rests");
    }

    /// Else connections that are on their way to the port would be refused: the new owner does not know that
    /// it is to be kept open for a while.
    #[test]
    fn a_service_that_moves_to_a_new_bucket_keeps_its_port_also_if_the_former_buckets_owner_was_faster() {
        let only = PortNotes {
            next: Some(10_001),
            given: [10_000].into(),
            number: Some(ClaimNumber(3)),
            ..PortNotes::default()
        };
        let mut first = PortBooks::new(2);
        first.take_over(Bucket(0), PortHandover { notes: only.clone(), ..PortHandover::default() }, WALL);
        let later: Vec<PortNotes> = first.news().map(|(_, notes)| notes).collect();
        assert!(later.iter().all(|notes| notes.given.is_empty()), "{later:?}");
        for elsewhere in [vec![only], later] {
            let moved = claim_of("moved", 1, 10_000);
            let mut second = PortBooks::new(2);
            second.learn(&moved);
            let handover = PortHandover { notes: PortNotes::default(), elsewhere, claims: vec![moved] };
            second.take_over(Bucket(1), handover, WALL);
            settle(&mut second, "moved", &revision(1));
            record(&mut second);
            assert_eq!(given(&second, "moved"), [10_000]);
        }
    }

    #[test]
    fn ports_of_a_time_with_another_number_of_buckets_are_given_to_no_service_meanwhile() {
        let mut books = PortBooks::new(2);
        books.learn(&claim("old", 10_003));
        let only = PortNotes {
            next: Some(10_004),
            given: [10_001, 10_003].into(),
            resting: [(10_000, WALL.later(std::time::Duration::from_secs(60)))].into(),
            ..PortNotes::default()
        };
        let elsewhere = vec![only.clone()];
        books.take_over(Bucket(1), PortHandover { elsewhere, ..PortHandover::default() }, WALL);
        settle(&mut books, "b", &revision(1));
        books.take_over(Bucket(0), PortHandover { notes: only, ..PortHandover::default() }, WALL);
        settle(&mut books, "a", &revision(0));
        record(&mut books);
        // 10001 is no slice's, so it rests; 10003 is another bucket's Service's; 10000 rests still.
        assert_eq!((given(&books, "b"), given(&books, "a")), (vec![10_005], vec![10_004]));
    }
}
