//! Which port of the activators belongs to which port of which Service?
//!
//! Each port of an adopted Service has one of its own on the activators, so that a client may call the
//! Service by any name. A connection that a client opened a moment too late must never end at another
//! workload, so ports are given out going round: one comes again only after all others, and not within an
//! hour of when it was let go. Where the round stands, what is given and what rests stands on the Lease, and
//! is written there before activators listen; which port is which Service's stands on the Service's slices,
//! signed ([`crate::slice_key`]), where the next owner finds it.
//!
//! ```text
//!   free ──give──► unrecorded ──Lease written──► in use ──Service port gone──► former ──not listened to──► resting ──an hour──► free
//! ```

pub(crate) mod books;
mod claims;
mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{RevisionName, Timestamp};

use crate::resources::ports::{ServicePort, TargetPort};
use crate::slice_key::ClaimNumber;
pub(crate) use claims::{PortClaim, PortEntry};
pub(crate) use notes::PortNotes;
pub use notes::{LeaseNotes, WallSeconds};

/// The ports of activators that are given to revisions.
pub(crate) const FIRST: u16 = 10_000;
pub(crate) const LAST: u16 = 29_999;
/// How long a port rests after its last owner has let go of it.
const REST: Duration = Duration::from_hours(1);
/// How long activators still take requests at the port of a Service's port that is gone: far longer than any
/// node takes to hear of that.
const FORMER_SERVES: Duration = Duration::from_mins(1);

/// A port that no Service's port has any more, while requests may still come in there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormerPort {
    pub(crate) revision: RevisionName,
    pub(crate) target: Option<TargetPort>,
    until: Timestamp,
}

/// A Service whose ports are to be given ports of activators.
pub(crate) struct PortSeeker<'a> {
    pub(crate) uid: &'a str,
    pub(crate) revision: &'a RevisionName,
    /// The ports that are to have one of activators.
    pub(crate) ports: Vec<&'a ServicePort>,
}

/// Every how manieth port is given, and from which on: buckets share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortShare {
    bucket: u16,
    buckets: u16,
}

impl PortShare {
    fn has(self, port: u16) -> bool {
        is_given(port) && port % self.buckets == self.bucket
    }
}

/// The ports that one Service was given, and the revision to which requests go from there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServicePorts {
    revision: RevisionName,
    entries: Vec<PortEntry>,
    /// Of what its slices claim.
    number: ClaimNumber,
}

impl ServicePorts {
    /// Whether its slices say the same of these: where a port leads in a pod stands there not.
    fn claims(&self, entries: &[PortEntry]) -> bool {
        let claims = |one: &PortEntry, other: &PortEntry| {
            (&one.name, one.number, one.port) == (&other.name, other.number, other.port)
        };
        self.entries.len() == entries.len()
            && self.entries.iter().zip(entries).all(|(one, other)| claims(one, other))
    }
}

/// Whether a port is one of those that are given to revisions.
fn is_given(port: u16) -> bool {
    (FIRST..=LAST).contains(&port)
}

/// The ports of one bucket, as this replica knows them.
#[derive(Debug)]
struct PortBook {
    share: PortShare,
    /// Whether they are ours to give; else slices say what is given.
    is_ours: bool,
    /// Services with ports of this bucket, by their uids.
    services: BTreeMap<String, ServicePorts>,
    former: BTreeMap<u16, FormerPort>,
    /// Ports without an owner, where activators may still listen.
    let_go: BTreeSet<u16>,
    /// The ports of `services`, `former` and `let_go` together.
    taken: BTreeSet<u16>,
    resting: BTreeMap<u16, WallSeconds>,
    /// Resting ports that the Lease called given when the bucket became ours, and no slice named.
    orphaned: BTreeSet<u16>,
    /// Where the round goes on.
    next: Option<u16>,
    /// That of the latest claim.
    number: ClaimNumber,
    /// Until when unsigned slices are believed, as it is to stand on the Lease.
    unsigned_until: Option<WallSeconds>,
    /// Whether the Lease said nothing when the bucket became ours.
    was_unnoted: bool,
    /// When a port comes free, if a Service has got none.
    free_again: Option<WallSeconds>,
    /// Ports that are given, and are not on the Lease yet.
    unrecorded: BTreeSet<u16>,
    /// Whether the notes for the Lease may be others than when they were last asked for.
    is_noteworthy: bool,
}

impl PortBook {
    fn new(share: PortShare) -> Self {
        Self {
            share,
            is_ours: false,
            services: BTreeMap::new(),
            former: BTreeMap::new(),
            let_go: BTreeSet::new(),
            taken: BTreeSet::new(),
            resting: BTreeMap::new(),
            orphaned: BTreeSet::new(),
            next: None,
            number: ClaimNumber::UNSIGNED,
            unsigned_until: None,
            was_unnoted: false,
            free_again: None,
            unrecorded: BTreeSet::new(),
            is_noteworthy: false,
        }
    }

    /// The bucket is ours from now on, with the former owner's notes and the claims that stand. A port that
    /// the notes call given and no slice names was let go at an unknown time, so it rests from now on.
    pub(crate) fn take_over(&mut self, notes: &PortNotes, claims: Vec<PortClaim>, now: WallSeconds) {
        self.is_ours = true;
        // What is remembered of an earlier time as owner is out of date; what of it is still given stands in
        // the notes.
        self.former.clear();
        self.let_go.clear();
        self.services.clear();
        self.number = self.number.max(notes.number.unwrap_or_default());
        self.number = claims.iter().map(|claim| claim.number).fold(self.number, ClaimNumber::max);
        for PortClaim { uid, revision, entries, number } in claims {
            let number = if number == ClaimNumber::UNSIGNED { self.next_number() } else { number };
            self.services.insert(uid, ServicePorts { revision, entries, number });
        }
        self.taken = self.entries().filter_map(|entry| entry.port).collect();
        self.unrecorded = self.taken.difference(&notes.given).copied().collect();
        self.next = notes.next;
        self.was_unnoted = notes.is_empty();
        self.unsigned_until = notes.unsigned_until;
        self.resting = notes.resting.clone();
        self.orphaned = notes.given.difference(&self.taken).copied().collect();
        for port in &self.orphaned {
            self.resting.entry(*port).or_insert(now.later(REST));
        }
        self.resting.retain(|port, _| !self.taken.contains(port));
        self.is_noteworthy = true;
    }

    /// Whether the next owner is to believe slices without a signature.
    fn believes_unsigned(&self, now: WallSeconds) -> bool {
        self.is_ours && self.unsigned_until.is_some_and(|until| now < until)
    }

    /// All slices of the bucket are signed: no later owner believes one without a signature.
    fn all_signed(&mut self, now: WallSeconds) {
        self.unsigned_until = Some(now);
        self.is_noteworthy = true;
    }

    /// The notes that are to be on the Lease.
    pub(crate) fn notes(&self) -> PortNotes {
        PortNotes {
            next: self.next,
            given: self.taken.clone(),
            resting: self.resting.clone(),
            number: Some(self.number),
            unsigned_until: self.unsigned_until,
        }
    }

    /// The same, if it may be something else than at the last call.
    pub(crate) fn news(&mut self) -> Option<PortNotes> {
        std::mem::take(&mut self.is_noteworthy).then(|| self.notes())
    }

    /// Whether ports wait for the Lease.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// The Lease has these notes; returns whether ports may be used now that might not before.
    pub(crate) fn recorded(&mut self, notes: &PortNotes) -> bool {
        let before = self.unrecorded.len();
        // A port that was given after these notes were taken waits for the next ones.
        self.unrecorded.retain(|port| !notes.given.contains(port));
        self.unrecorded.len() < before
    }

    /// Takes in a slice's claim for a Service.
    pub(crate) fn learn(&mut self, claim: PortClaim) {
        let known = self.services.get(&claim.uid);
        let is_news = if self.is_ours {
            // The owner of the bucket knows better than a slice, except about a Service that it did not know.
            known.is_none() && claim.number > ClaimNumber::UNSIGNED && self.was_late(&claim)
        } else {
            known.is_none_or(|known| known.number <= claim.number)
        };
        if is_news {
            self.is_noteworthy = true;
            for port in claim.ports() {
                self.taken.insert(port);
                self.orphaned.remove(&port);
                self.resting.remove(&port);
            }
            self.number = self.number.max(claim.number);
            let PortClaim { uid, revision, entries, number } = claim;
            self.services.insert(uid, ServicePorts { revision, entries, number });
        }
    }

    /// Whether a claim that comes now may be the former owner's, whose last write we heard of late. Any other
    /// port has been free since, or is another's.
    fn was_late(&self, claim: &PortClaim) -> bool {
        let was_free = |port: u16| self.taken.contains(&port) || self.resting.contains_key(&port);
        claim.ports().all(|port| self.orphaned.contains(&port) || (self.was_unnoted && !was_free(port)))
    }

    fn entries(&self) -> impl Iterator<Item = &PortEntry> {
        self.services.values().flat_map(|service| &service.entries)
    }

    fn next_number(&mut self) -> ClaimNumber {
        self.number = self.number.next();
        self.is_noteworthy = true;
        self.number
    }

    /// Whether a Service's ports were given theirs, and that is on the Lease.
    pub(crate) fn is_settled(&self, uid: &str) -> bool {
        let service = self.services.get(uid);
        service.is_some_and(|service| service.entries.iter().all(|entry| !self.is_unrecorded(entry)))
    }

    /// The number of what a Service's slices claim.
    pub(crate) fn number_of(&self, uid: &str) -> Option<ClaimNumber> {
        self.services.get(uid).map(|service| service.number)
    }

    /// The ports of a Service that may be used.
    pub(crate) fn of_service(&self, uid: &str) -> impl Iterator<Item = &PortEntry> {
        let entries = self.services.get(uid).into_iter().flat_map(|service| &service.entries);
        entries.filter(|entry| !self.is_unrecorded(entry))
    }

    /// The former ports at which requests may still come in for a revision.
    pub(crate) fn former_of(&self, revision: &RevisionName) -> impl Iterator<Item = (u16, &FormerPort)> {
        let former = self.former.iter().filter(move |(_, former)| former.revision == *revision);
        former.map(|(&port, former)| (port, former))
    }

    /// Gives each of a Service's ports one, and takes away what it needs no more. One that was renamed, or
    /// has another number, keeps its own. Returns whether anything is another than before.
    pub(crate) fn settle(
        &mut self,
        seeker: &PortSeeker<'_>,
        elsewhere: &BTreeSet<u16>,
        (now, wall): (Timestamp, WallSeconds),
    ) -> bool {
        let before = self.services.remove(seeker.uid);
        let mut known = before.as_ref().map(|before| before.entries.clone()).unwrap_or_default();
        let mut take = |is_it: &dyn Fn(&PortEntry) -> bool| {
            known.iter().position(is_it).map(|index| known.remove(index))
        };
        // All names before any number: else a port that got another's number would be taken for that one.
        let by_name: Vec<_> =
            seeker.ports.iter().map(|port| take(&|entry: &PortEntry| entry.name == port.name)).collect();
        let mut entries = Vec::new();
        for (port, found) in seeker.ports.iter().zip(by_name) {
            let found = found.or_else(|| take(&|entry: &PortEntry| entry.number == port.number));
            // A port that got none because all were given tries again.
            let given = found.and_then(|entry| entry.port).or_else(|| self.give(elsewhere, wall));
            entries.push(PortEntry {
                name: port.name.clone(),
                number: port.number,
                target: Some(port.target.clone()),
                port: given,
            });
        }
        for entry in known {
            if let Some(port) = entry.port {
                let (revision, target) = (seeker.revision.clone(), entry.target);
                self.former.insert(port, FormerPort { revision, target, until: now + FORMER_SERVES });
            }
        }
        let is_news = before.as_ref().is_none_or(|before| before.entries != entries);
        let claimed = before.filter(|before| before.claims(&entries)).map(|before| before.number);
        let number = claimed.unwrap_or_else(|| self.next_number());
        let revision = seeker.revision.clone();
        self.services.insert(seeker.uid.to_owned(), ServicePorts { revision, entries, number });
        is_news
    }

    /// A Service is not ours to serve any more.
    pub(crate) fn remove_service(&mut self, uid: &str) {
        let entries = self.services.remove(uid).into_iter().flat_map(|service| service.entries);
        self.let_go.extend(entries.filter_map(|entry| entry.port));
    }

    /// Lets go of former ports at which no requests come in any more; returns their revisions.
    pub(crate) fn expire(&mut self, now: Timestamp) -> BTreeSet<RevisionName> {
        let expired: Vec<_> = self.former.extract_if(.., |_, former| former.until <= now).collect();
        self.let_go.extend(expired.iter().map(|(port, _)| *port));
        expired.into_iter().map(|(_, former)| former.revision).collect()
    }

    /// Services that got no port of activators for one of theirs, once one is free again.
    pub(crate) fn starving(&mut self, wall: WallSeconds) -> impl Iterator<Item = &String> {
        let is_due = self.is_ours && self.free_again.take_if(|again| *again <= wall).is_some();
        let has_none = |service: &ServicePorts| service.entries.iter().any(|entry| entry.port.is_none());
        let starving = self.services.iter().filter(move |(_, service)| is_due && has_none(service));
        starving.map(|(uid, _)| uid)
    }

    /// When [`PortBook::starving`] has something to say.
    pub(crate) fn free_again(&self) -> Option<WallSeconds> {
        self.free_again.filter(|_| self.is_ours)
    }

    /// When [`PortBook::expire`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.former.values().map(|former| former.until).min()
    }

    /// No activator listens at this port any more.
    pub(crate) fn rest(&mut self, port: u16, wall: WallSeconds) {
        self.former.remove(&port);
        if self.let_go.remove(&port) {
            self.taken.remove(&port);
            self.is_noteworthy = true;
            self.resting.insert(port, wall.later(REST));
            // Services wait for the first port that comes free; the next one is looked for when that is due.
            self.free_again = self.free_again.or_else(|| self.has_starving().then(|| wall.later(REST)));
        }
    }

    /// The next port without an owner, neither here nor `elsewhere`: from a time when there was another
    /// number of buckets.
    fn give(&mut self, elsewhere: &BTreeSet<u16>, wall: WallSeconds) -> Option<u16> {
        self.resting.retain(|_, until| *until > wall);
        // The notes are text on a Lease that others may write: where they make no sense the round begins
        // anew.
        let next = self.next.filter(|next| (FIRST..=LAST).contains(next)).unwrap_or(FIRST);
        let mut round = (next..=LAST).chain(FIRST..next);
        let is_free = |port: &u16| !self.taken.contains(port) && !self.resting.contains_key(port);
        let port = round.find(|port| self.share.has(*port) && is_free(port) && !elsewhere.contains(port));
        let Some(port) = port else {
            self.free_again = self.resting.values().min().copied();
            return None;
        };
        self.next = Some(if port == LAST { FIRST } else { port + 1 });
        self.is_noteworthy = true;
        self.taken.insert(port);
        self.unrecorded.insert(port);
        Some(port)
    }

    fn has_starving(&self) -> bool {
        self.entries().any(|entry| entry.port.is_none())
    }

    fn is_unrecorded(&self, entry: &PortEntry) -> bool {
        entry.port.is_some_and(|port| self.unrecorded.contains(&port))
    }
}

#[cfg(test)]
mod tests;
