//! Which slices have Services, of ours and of others, and which of those with our label are believed?

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::RevisionName;

use super::Services;
use crate::index::known_slice::KnownSlice;
use crate::notice::{FOREIGN_ENDPOINTS, Notice};
use crate::resources::ObjectKey;
use crate::resources::other_slice::{OtherSlice, SliceWriter};
use crate::slices;

impl Services {
    /// Puts a slice with our label in.
    pub(in crate::index) fn put_slice(&mut self, key: ObjectKey, slice: KnownSlice) {
        self.slices.insert(key, slice);
    }

    /// Takes a slice with our label out, and returns it.
    pub(in crate::index) fn remove_slice(&mut self, key: &ObjectKey) -> Option<KnownSlice> {
        self.believed_slices.remove(key);
        self.slices.remove(key)
    }

    pub(in crate::index) fn slice(&self, key: &ObjectKey) -> Option<&KnownSlice> {
        self.slices.get(key)
    }

    /// All slices with our label.
    pub(in crate::index) fn slices(&self) -> impl Iterator<Item = (&ObjectKey, &KnownSlice)> {
        self.slices.iter()
    }

    /// A slice without a signature is believed from now on.
    pub(in crate::index) fn believe(&mut self, key: ObjectKey) {
        self.believed_slices.insert(key);
    }

    /// A slice without a signature is not believed, or a slice has one.
    pub(in crate::index) fn disbelieve(&mut self, key: &ObjectKey) {
        self.believed_slices.remove(key);
    }

    /// The slices without a signature that are believed.
    pub(in crate::index) fn believed_slices(&self) -> impl Iterator<Item = &KnownSlice> {
        self.believed_slices.iter().filter_map(|key| self.slices.get(key))
    }

    /// Whether a slice without a signature is believed.
    pub(in crate::index) fn is_believed(&self, key: &ObjectKey) -> bool {
        self.believed_slices.contains(key)
    }

    /// A slice of a Service is forged; returns whether that is news.
    pub(in crate::index) fn put_forgery(&mut self, service: &ObjectKey, slice: &str) -> bool {
        self.forged_slices.entry(service.clone()).or_default().insert(slice.to_owned())
    }

    /// A slice of a Service is not forged, or is gone; returns whether that is news.
    pub(in crate::index) fn clear_forgery(&mut self, service: &ObjectKey, slice: &str) -> bool {
        let Some(forged) = self.forged_slices.get_mut(service) else { return false };
        let is_news = forged.remove(slice);
        if forged.is_empty() {
            self.forged_slices.remove(service);
        }
        is_news
    }

    /// The names of a Service's forged slices, if there are any.
    pub(in crate::index) fn forgeries(&self, service: &ObjectKey) -> Option<&BTreeSet<String>> {
        self.forged_slices.get(service)
    }

    /// Puts a slice of another writer in.
    pub(in crate::index) fn put_other_slice(&mut self, slice: OtherSlice) {
        self.other_slices.insert(slice.key.clone(), slice);
    }

    /// Takes a slice of another writer out, and returns it.
    pub(in crate::index) fn remove_other_slice(&mut self, key: &ObjectKey) -> Option<OtherSlice> {
        self.other_slices.remove(key)
    }

    /// What an Endpoints object that we keep says; `None` if it is gone.
    pub(in crate::index) fn put_endpoints(&mut self, key: &ObjectKey, subsets: Option<Vec<EndpointSubset>>) {
        match subsets {
            Some(subsets) => self.endpoints.insert(key.clone(), subsets),
            None => self.endpoints.remove(key),
        };
    }

    pub(in crate::index) fn endpoints(&self, key: &ObjectKey) -> Option<&[EndpointSubset]> {
        self.endpoints.get(key).map(Vec::as_slice)
    }

    /// Whether a Service has slices of ours.
    pub(in crate::index) fn has_slices(&self, key: &ObjectKey) -> bool {
        self.records.get(key).is_some_and(|service| self.slices_of(key, &service.uid).next().is_some())
    }

    /// Those of ours of all Services that serve a revision.
    pub(in crate::index) fn all_slices_of(
        &self,
        revision: &RevisionName,
    ) -> impl Iterator<Item = &EndpointSlice> {
        let services = self.keys_of(revision).filter_map(|key| Some((key, self.records.get(key)?)));
        services.flat_map(|(key, service)| self.slices_of(key, &service.uid))
    }

    /// Those of ours that a Service has. One that was made anew under the same name is another one: its
    /// slices go with it.
    pub(in crate::index) fn slices_of(
        &self,
        key: &ObjectKey,
        uid: &str,
    ) -> impl Iterator<Item = &EndpointSlice> {
        self.known_slices_of(key, uid).map(|slice| &slice.object)
    }

    /// As [`Services::slices_of`], each slice with its author.
    pub(in crate::index) fn known_slices_of(
        &self,
        key: &ObjectKey,
        uid: &str,
    ) -> impl Iterator<Item = &KnownSlice> {
        let prefix = slices::name_prefix(&key.name);
        let first = ObjectKey { namespace: key.namespace.clone(), name: prefix.clone() };
        let (key, uid) = (key.clone(), uid.to_owned());
        let named = self.slices.range(first..);
        let named = named.take_while(move |(slice, _)| {
            slice.namespace == key.namespace && slice.name.starts_with(&prefix)
        });
        named.map(|(_, slice)| slice).filter(move |KnownSlice { object: slice, .. }| {
            slices::service_of(slice).is_some_and(|service| service.name == key.name)
                && slices::owner_uid(slice) == Some(uid.as_str())
        })
    }

    /// Slices that Kubernetes' own controllers wrote for a Service.
    pub(in crate::index) fn leftovers_of(&self, key: &ObjectKey) -> impl Iterator<Item = &OtherSlice> {
        self.others_of(key).filter(|slice| !matches!(slice.writer, SliceWriter::Stranger(_)))
    }

    fn others_of(&self, key: &ObjectKey) -> impl Iterator<Item = &OtherSlice> {
        let first = ObjectKey { namespace: key.namespace.clone(), name: String::new() };
        let in_namespace = self.other_slices.range(first..);
        let in_namespace = in_namespace.take_while(|(other, _)| other.namespace == key.namespace);
        in_namespace.map(|(_, slice)| slice).filter(|slice| slice.service == key.name)
    }

    /// The notice of slices of other writers on a Service of ours.
    pub(in crate::index) fn strangers_notice(&self, key: &ObjectKey) -> Option<Notice> {
        let mut others = self.others_of(key);
        others.find_map(|slice| match &slice.writer {
            SliceWriter::Stranger(writer) => Some(Notice::new(
                FOREIGN_ENDPOINTS,
                format!(
                    "EndpointSlice {} is managed by {writer} and sends clients past ebb; delete it if it is not needed",
                    slice.key.name
                ),
            )),
            SliceWriter::Controller | SliceWriter::Mirror => None,
        })
    }
}
