//! Which ports of activators are Services' ports given, and which Services have perhaps not got theirs?

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::{Bucket, RevisionName, Timestamp};

use super::known_slice::KnownSlice;
use crate::port_book::books::{PortBooks, PortHandover};
use crate::port_book::{FormerPort, LeaseNotes, PortClaim, PortEntry, PortNotes, PortSeeker, WallSeconds};
use crate::resources::ObjectKey;
use crate::resources::service::AdoptedService;
use crate::slice_key::{ClaimNumber, SliceKey};
use crate::slices;

/// The activators' ports before Services'.
#[derive(Debug)]
pub(super) struct ActivatorPorts {
    books: PortBooks,
    /// The key with which slices claim ports.
    slice_key: SliceKey,
    /// Services whose ports have perhaps not got theirs.
    unsettled: BTreeSet<ObjectKey>,
    /// When a port may be free for Services that got none.
    due: Option<Timestamp>,
}

impl ActivatorPorts {
    /// No port is given yet, of as many buckets as the autoscalers share.
    pub(super) fn new(slice_key: SliceKey, buckets: u16) -> Self {
        Self { books: PortBooks::new(buckets), slice_key, unsettled: BTreeSet::new(), due: None }
    }

    /// In which bucket a revision is.
    pub(super) fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        self.books.bucket_of(revision)
    }

    /// Whether the ports of a bucket are ours to give.
    pub(super) fn is_ours(&self, bucket: Bucket) -> bool {
        self.books.is_ours(bucket)
    }

    /// The ports of a bucket are ours to give from now on.
    pub(super) fn take_over(&mut self, bucket: Bucket, handover: PortHandover, wall: WallSeconds) {
        self.books.take_over(bucket, handover, wall);
    }

    /// The ports of a bucket are another owner's to give.
    pub(super) fn give_up(&mut self, bucket: Bucket) {
        self.books.give_up(bucket);
    }

    /// Buckets of ours whose next owner is to believe slices without a signature.
    pub(super) fn believing_unsigned(&self, wall: WallSeconds) -> Vec<Bucket> {
        self.books.believing_unsigned(wall)
    }

    /// All slices of a bucket are signed: no later owner believes one without a signature.
    pub(super) fn all_signed(&mut self, bucket: Bucket, wall: WallSeconds) {
        self.books.all_signed(bucket, wall);
    }

    /// What a slice says of a Service that is served by a revision.
    pub(super) fn learn(&mut self, claim: &PortClaim) {
        self.books.learn(claim);
    }

    /// A Service's ports are perhaps other ones than those that were given theirs.
    pub(super) fn unsettle(&mut self, service: ObjectKey) {
        self.unsettled.insert(service);
    }

    /// The same of several Services.
    pub(super) fn unsettle_all(&mut self, services: impl IntoIterator<Item = ObjectKey>) {
        self.unsettled.extend(services);
    }

    /// Takes the Services whose ports have perhaps not got theirs.
    pub(super) fn take_unsettled(&mut self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.unsettled)
    }

    /// The uids of Services that got none for a port, once one is free again.
    pub(super) fn starving(&mut self, wall: WallSeconds) -> BTreeSet<String> {
        self.books.starving(wall)
    }

    /// Gives each of a Service's ports one, if they are ours to give; returns whether something has changed.
    pub(super) fn settle(&mut self, seeker: &PortSeeker<'_>, now: Timestamp, wall: WallSeconds) -> bool {
        self.books.settle(seeker, now, wall)
    }

    /// All Services were looked at: what is due next is a port that comes free.
    pub(super) fn all_settled(&mut self, now: Timestamp, wall: WallSeconds) {
        self.due = self.books.free_again().map(|again| now + again.since(wall));
    }

    /// A Service is not ours to serve any more.
    pub(super) fn remove_service(&mut self, uid: &str) {
        self.books.remove_service(uid);
    }

    /// Lets go of former ports at which no requests come in any more; returns their revisions.
    pub(super) fn expire(&mut self, now: Timestamp) -> BTreeSet<RevisionName> {
        self.books.expire(now)
    }

    /// No activator listens at this port any more.
    pub(super) fn rest(&mut self, port: u16, wall: WallSeconds) {
        self.books.rest(port, wall);
    }

    /// When there is something to do without any event.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        [self.books.next_deadline(), self.due].into_iter().flatten().min()
    }

    /// What is to stand on Leases of ours, where that may be something else than at the last call.
    pub(super) fn news(&mut self) -> Vec<(Bucket, LeaseNotes)> {
        self.books.news().map(|(bucket, notes)| (bucket, notes.write())).collect()
    }

    /// Whether ports of a bucket wait for its Lease.
    pub(super) fn is_waiting(&self, bucket: Bucket) -> bool {
        self.books.is_waiting(bucket)
    }

    /// A bucket's Lease has these notes; returns whether ports may be used now that might not before.
    pub(super) fn recorded(&mut self, bucket: Bucket, notes: &PortNotes) -> bool {
        self.books.recorded(bucket, notes)
    }

    /// Whether a Service's ports were given theirs, and that is on the Lease.
    pub(super) fn is_settled(&self, uid: &str) -> bool {
        self.books.is_settled(uid)
    }

    /// Those of a Service that may be used.
    pub(super) fn of_service(&self, uid: &str) -> impl Iterator<Item = &PortEntry> {
        self.books.of_service(uid)
    }

    /// Those at which requests may still come in for a revision.
    pub(super) fn former_of(&self, revision: &RevisionName) -> impl Iterator<Item = (u16, &FormerPort)> {
        self.books.former_of(revision)
    }

    /// Whether a Service's ports were given any, settled or not.
    pub(super) fn has_some_of(&self, uid: &str) -> bool {
        self.books.number_of(uid).is_some()
    }

    /// The signature of a Service's ports, as it is to stand on the Service's slices; `None` while none is
    /// given.
    pub(super) fn proof(&self, service: &AdoptedService, entrances: &[Option<u16>]) -> Option<String> {
        let number: ClaimNumber = self.books.number_of(&service.uid)?;
        Some(slices::proof(service, entrances, (&self.slice_key, number)))
    }

    /// A slice with our label, with the author that its signature proves.
    pub(super) fn identify(&self, slice: EndpointSlice) -> KnownSlice {
        KnownSlice::new(slice, &self.slice_key)
    }
}
