//! Which slices are there, and which routes and endpoints do they name?

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::RouteInForce;
use vocabulary::{PodName, RevisionName, Routing};

use super::known_slice::KnownSlice;
use super::{Index, Topic};
use crate::resources::ObjectKey;
use crate::resources::other_slice::SliceWriter;
use crate::resources::service::AdoptedService;
use crate::slices;

impl Index {
    /// Whether those that Kubernetes writes for its selector have somebody ready. Without the workload nobody
    /// ever will be.
    pub(super) fn is_served_by_kubernetes(&self, key: &ObjectKey, revision: &RevisionName) -> bool {
        let mut own = self.leftovers_of(key).filter(|slice| slice.writer == SliceWriter::Controller);
        own.any(|slice| slice.has_ready) || self.workloads.is_missing(revision)
    }

    /// Whether a slice of ours, as far as we know, names a pod.
    pub(crate) fn is_pod_named(&self, revision: &RevisionName, pod: &PodName) -> bool {
        let Some(pod) = self.pods.get(pod) else { return false };
        let slices = self.all_slices_of(revision);
        let mut references =
            slices.flat_map(|slice| &slice.endpoints).filter_map(|endpoint| endpoint.target_ref.as_ref());
        references.any(|reference| reference.uid.as_deref() == Some(pod.record.uid.as_str()))
    }

    /// The route that is in force before anybody has ordered one: that of our slices, or, where Kubernetes
    /// writes them, its pods.
    pub(super) fn found_route(&self, revision: &RevisionName) -> Option<RouteInForce> {
        let written = self.all_slices_of(revision).find_map(slices::route_of);
        let mut keys = self.served.get(revision).into_iter().flatten();
        written.or_else(|| {
            // Before all is listed, slices of ours may yet come.
            let is_direct =
                self.workloads.is_listed() && keys.any(|key| self.leftovers_of(key).next().is_some());
            is_direct.then(|| RouteInForce { routing: Routing::Direct, activators: Vec::new() })
        })
    }

    /// Takes in the route that is in force, unless a better one is known. Who stands by follows what the
    /// owner writes, so as to go on from there.
    pub(super) fn find_route(&mut self, revision: &RevisionName) {
        if self.ordered_routes.contains(revision) {
            return;
        }
        let found = self.found_route(revision);
        if let Some(route) = found.filter(|found| self.routes.get(revision) != Some(found)) {
            self.routes.insert(revision.clone(), route);
            self.notices.tell(Topic::Route(revision.clone()));
        }
    }

    /// Whether a Service has slices of ours.
    pub(crate) fn has_slices(&self, key: &ObjectKey) -> bool {
        self.services.get(key).is_some_and(|service| self.slices_of(key, &service.uid).next().is_some())
    }

    pub(super) fn services_of(&self, revision: &RevisionName) -> impl Iterator<Item = &AdoptedService> {
        let keys = self.served.get(revision).into_iter().flatten();
        keys.filter_map(|key| self.adopted.get(key))
    }

    fn all_slices_of(&self, revision: &RevisionName) -> impl Iterator<Item = &EndpointSlice> {
        let keys = self.served.get(revision).into_iter().flatten();
        let services = keys.filter_map(|key| Some((key, self.services.get(key)?)));
        services.flat_map(|(key, service)| self.slices_of(key, &service.uid))
    }

    /// Those of ours that a Service has. One that was made anew under the same name is another one: its
    /// slices go with it.
    pub(super) fn slices_of(&self, key: &ObjectKey, uid: &str) -> impl Iterator<Item = &EndpointSlice> {
        self.known_slices_of(key, uid).map(|slice| &slice.object)
    }

    /// As [`Index::slices_of`], each slice with its author.
    pub(super) fn known_slices_of(&self, key: &ObjectKey, uid: &str) -> impl Iterator<Item = &KnownSlice> {
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
}
