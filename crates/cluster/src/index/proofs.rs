//! Which slices did autoscalers write, and which are forgeries?
//!
//! A slice with a valid signature is ours. A slice with another signature is a forgery. A slice without one
//! may be of a version that signed none. Where the Lease shows that such a version gave the bucket's ports,
//! the first owner that signs believes those that are there then, if the Service of the slice exists; later
//! ones are forgeries, too. An owner that follows does the same until all slices of the bucket are signed,
//! and for an hour at most. A replica that does not own the bucket leaves that judgement to its owner.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::Bucket;

use super::Index;
use super::known_slice::KnownSlice;
use super::problems::service_subject;
use crate::notice::{FORGED_SLICE, Notice};
use crate::port_book::{PortClaim, WallSeconds};
use crate::resources::ObjectKey;
use crate::slice_key::ClaimNumber;
use crate::slices::{self, SliceAuthor};

/// What becomes of slices that are not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsignedSlices {
    Believed,
    Refused,
}

impl Index {
    /// Whether a slice with our label is ours.
    pub(super) fn is_genuine(&self, slice: &KnownSlice) -> bool {
        match slice.author {
            SliceAuthor::Autoscaler(_) => true,
            SliceAuthor::Forger => false,
            SliceAuthor::Unsigned => {
                let bucket = self.bucket_of_slice(&slice.object);
                let is_decided = bucket.is_none_or(|bucket| self.ports.is_ours(bucket));
                !is_decided || self.services.is_believed(&ObjectKey::of(&slice.object.metadata))
            }
        }
    }

    /// Of the revision that it names.
    fn bucket_of_slice(&self, slice: &EndpointSlice) -> Option<Bucket> {
        let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
        slices::revision_of(slice, namespace).map(|revision| self.ports.bucket_of(&revision))
    }

    /// What a slice says of its Service's ports, whether that holds or not; nothing if it is a forgery.
    fn claim_of(&self, slice: &KnownSlice) -> Option<PortClaim> {
        let KnownSlice { object: slice, author } = slice;
        let number = match author {
            SliceAuthor::Autoscaler(number) => *number,
            SliceAuthor::Unsigned if self.is_of_service(slice) => ClaimNumber::UNSIGNED,
            SliceAuthor::Unsigned | SliceAuthor::Forger => return None,
        };
        let uid = slices::owner_uid(slice)?.to_owned();
        let revision = slices::revision_of(slice, slice.metadata.namespace.as_deref()?)?;
        Some(PortClaim { uid, revision, entries: slices::entrances_of(slice)?, number })
    }

    /// Whether the Service with which it goes is in its own namespace.
    fn is_of_service(&self, slice: &EndpointSlice) -> bool {
        let service = slices::service_of(slice).and_then(|key| self.services.record(&key));
        service.is_some_and(|service| slices::owner_uid(slice) == Some(service.uid.as_str()))
    }

    /// The claims of all slices of Services that exist.
    pub(super) fn claims_of_slices(&self) -> Vec<PortClaim> {
        let slices = self.services.slices().map(|(_, slice)| slice);
        let slices = slices.filter(|slice| self.is_of_service(&slice.object));
        slices.filter_map(|slice| self.claim_of(slice)).collect()
    }

    pub(super) fn learn_ports(&mut self, slice: &KnownSlice) {
        if let Some(claim) = self.claim_of(slice) {
            self.ports.learn(&claim);
        }
    }

    /// Decides about the unsigned slices of a bucket that is ours from now on.
    pub(super) fn judge_unsigned(&mut self, bucket: Bucket, unsigned: UnsignedSlices) {
        let unsigned_slices =
            self.services.slices().filter(|(_, slice)| slice.author == SliceAuthor::Unsigned);
        let judged = unsigned_slices
            .filter(|(_, slice)| self.bucket_of_slice(&slice.object).is_none_or(|of| of == bucket));
        let judged: Vec<_> =
            judged.map(|(key, slice)| (key.clone(), self.is_of_service(&slice.object))).collect();
        for (key, is_of_service) in judged {
            if unsigned == UnsignedSlices::Believed && is_of_service {
                self.services.believe(key.clone());
            } else {
                self.services.disbelieve(&key);
            }
            self.note_author(&key);
        }
    }

    /// Notes at each bucket of ours that none of its slices is without a signature any more.
    pub(super) fn note_signed_buckets(&mut self, wall: WallSeconds) {
        for bucket in self.ports.believing_unsigned(wall) {
            let is_of_bucket =
                |slice: &KnownSlice| self.bucket_of_slice(&slice.object).is_none_or(|of| of == bucket);
            let is_one_left = self.services.believed_slices().any(is_of_bucket);
            if !is_one_left {
                self.ports.all_signed(bucket, wall);
            }
        }
    }

    /// A slice is new or has changed: people are told of a forgery, and custody of the Service does not
    /// follow from one.
    pub(super) fn note_author(&mut self, key: &ObjectKey) {
        let Some(author) = self.services.slice(key).map(|slice| slice.author) else { return };
        if author != SliceAuthor::Unsigned {
            self.services.disbelieve(key);
        }
        let Some(slice) = self.services.slice(key) else { return };
        let Some(service) = slices::service_of(&slice.object) else { return };
        let is_news = if self.is_genuine(slice) {
            self.services.clear_forgery(&service, &key.name)
        } else {
            self.services.put_forgery(&service, &key.name)
        };
        if is_news {
            self.review(&service);
            self.notice_forgeries(&service);
        }
    }

    /// A slice is gone, or is to be another.
    pub(super) fn forget_author(&mut self, key: &ObjectKey) {
        let service = self.services.slice(key).and_then(|slice| slices::service_of(&slice.object));
        if let Some(service) = service
            && self.services.clear_forgery(&service, &key.name)
        {
            self.notice_forgeries(&service);
        }
    }

    /// Puts the notice of forged slices at their Service; a Service that is not there has no notices.
    pub(super) fn notice_forgeries(&mut self, service: &ObjectKey) {
        if self.services.record(service).is_some() {
            self.notice_service(service);
        } else if let Some(subject) = service_subject(service) {
            self.notices.put(subject, Vec::new());
        }
    }

    /// Slices of a Service that look like ours.
    pub(super) fn forgery_notice(&self, service: &ObjectKey) -> Option<Notice> {
        let forged = self.services.forgeries(service)?;
        let names = forged.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        let text = format!(
            "EndpointSlices {names} have ebb's label and not its signature ({} in all): what they say of activators' ports is not believed. ebb writes those of a Service of its own anew; delete others, and see who may write EndpointSlices in {}",
            forged.len(),
            service.namespace
        );
        Some(Notice::new(FORGED_SLICE, text))
    }
}
