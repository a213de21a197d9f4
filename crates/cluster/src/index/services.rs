//! Which Services are there, whose are their endpoints, and by which of them is each revision served?
//!
//! A Service that concerns us has a [`Custody`]. Under the custodies that name a revision the Service serves
//! that revision: [`Services::serve`] and [`Services::no_longer_serve`] follow each change of custody. What
//! follows from pods, ports and workloads is decided outside.

mod adoption;
mod routes;
mod slices;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::EndpointSubset;
use orchestration::RouteInForce;
use vocabulary::{RevisionName, Timestamp};

use super::known_slice::KnownSlice;
use crate::custody::Custody;
use crate::resources::ObjectKey;
use crate::resources::other_slice::OtherSlice;
use crate::resources::service::{AdoptedService, ServiceRecord};

/// How long activators still serve a Service that was given back: nodes go by our slices for seconds after
/// those have gone, and connections stand.
const LINGERS_FOR: Duration = Duration::from_secs(60);

/// Since when a Service has been ours, and whether Kubernetes served it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ServiceAdoption {
    /// Made anew under its name it is another one.
    uid: String,
    /// Whether Kubernetes was seen to serve it.
    had_other_endpoints: bool,
    /// When the first slice of ours was made, while there is one. Slices come and go with pods, and a later
    /// one must not look like another adoption.
    first_slice: Option<WallTime>,
    /// The same, while the Service is ours alone and had clients before.
    adopted: Option<WallTime>,
}

/// All Services of the cluster, for any of them may reach pods of ours, with their endpoints.
#[derive(Debug, Default)]
pub(super) struct Services {
    records: BTreeMap<ObjectKey, ServiceRecord>,
    /// Which program writes the endpoints of each Service that concerns us.
    custody: BTreeMap<ObjectKey, Custody>,
    /// Services that are ours, are about to be, or are being given back, with what our slices need of them.
    adopted: BTreeMap<ObjectKey, AdoptedService>,
    /// The Services for each workload; a workload without one has no entry.
    served: BTreeMap<RevisionName, BTreeSet<ObjectKey>>,
    adoptions: BTreeMap<ObjectKey, ServiceAdoption>,
    /// Services whose slices of ours have just gone, and since when that was noticed.
    lingering: BTreeMap<ObjectKey, (RevisionName, Option<Timestamp>)>,
    /// All slices that have our label.
    slices: BTreeMap<ObjectKey, KnownSlice>,
    /// Slices without a signature that are believed.
    believed_slices: BTreeSet<ObjectKey>,
    /// The names of forged slices, by their Services; a Service without any has no entry.
    forged_slices: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Slices of Services that others write.
    other_slices: BTreeMap<ObjectKey, OtherSlice>,
    /// What the Endpoints objects that we keep say.
    endpoints: BTreeMap<ObjectKey, Vec<EndpointSubset>>,
    /// The route of each revision, as it was ordered last or found on slices.
    routes: BTreeMap<RevisionName, RouteInForce>,
    /// Revisions whose route was ordered here, by the present owner. Slices may still say the route before
    /// that.
    ordered_routes: BTreeSet<RevisionName>,
}

impl Services {
    /// Puts a Service in; returns the record of it that was there.
    pub(super) fn put(&mut self, key: &ObjectKey, record: ServiceRecord) -> Option<ServiceRecord> {
        self.records.insert(key.clone(), record)
    }

    /// Takes a Service out, and returns it. Its custody has to be judged anew.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<ServiceRecord> {
        self.lingering.remove(key);
        self.records.remove(key)
    }

    pub(super) fn record(&self, key: &ObjectKey) -> Option<&ServiceRecord> {
        self.records.get(key)
    }

    #[cfg(test)]
    pub(super) fn record_mut(&mut self, key: &ObjectKey) -> Option<&mut ServiceRecord> {
        self.records.get_mut(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.records.keys()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&ObjectKey, &ServiceRecord)> {
        let namespace = namespace.to_owned();
        let first = ObjectKey { namespace: namespace.clone(), name: String::new() };
        self.records.range(first..).take_while(move |(key, _)| key.namespace == namespace)
    }

    /// Which program writes a Service's endpoints; `None` for one that does not concern us.
    pub(super) fn custody(&self, key: &ObjectKey) -> Option<&Custody> {
        self.custody.get(key)
    }

    /// Takes in which program writes a Service's endpoints from now on.
    pub(super) fn put_custody(&mut self, key: &ObjectKey, custody: Custody) {
        if custody == Custody::Foreign {
            self.custody.remove(key);
        } else {
            self.custody.insert(key.clone(), custody);
        }
        self.shape(key);
    }

    /// Reads a Service as we write its endpoints, if we do: its record or its custody has changed.
    pub(super) fn shape(&mut self, key: &ObjectKey) {
        let revision = self.custody.get(key).and_then(Custody::revision);
        let service = revision.and_then(|revision| self.records.get(key)?.adopted_for(key, revision));
        match service {
            Some(service) => self.adopted.insert(key.clone(), service),
            None => self.adopted.remove(key),
        };
    }

    /// The revision that a Service serves.
    pub(super) fn revision_of(&self, key: &ObjectKey) -> Option<&RevisionName> {
        self.custody.get(key).and_then(Custody::revision)
    }

    /// A Service as we write its endpoints, if we do.
    pub(super) fn adopted(&self, key: &ObjectKey) -> Option<&AdoptedService> {
        self.adopted.get(key)
    }

    /// All Services whose endpoints we write.
    pub(super) fn all_adopted(&self) -> impl Iterator<Item = (&ObjectKey, &AdoptedService)> {
        self.adopted.iter()
    }

    /// A Service serves a revision from now on; returns whether no Service did.
    pub(super) fn serve(&mut self, key: &ObjectKey, revision: &RevisionName) -> bool {
        let keys = self.served.entry(revision.clone()).or_default();
        let is_first = keys.is_empty();
        keys.insert(key.clone());
        is_first
    }

    /// A Service does not serve a revision any more; returns whether no Service does.
    pub(super) fn no_longer_serve(&mut self, key: &ObjectKey, revision: &RevisionName) -> bool {
        let Some(keys) = self.served.get_mut(revision) else { return false };
        keys.remove(key);
        let is_last = keys.is_empty();
        if is_last {
            self.served.remove(revision);
            self.drop_route(revision);
        }
        is_last
    }

    /// The revisions that Services serve.
    pub(super) fn served(&self) -> impl Iterator<Item = &RevisionName> {
        self.served.keys()
    }

    pub(super) fn is_served(&self, revision: &RevisionName) -> bool {
        self.served.contains_key(revision)
    }

    /// The Services that serve a revision.
    pub(super) fn keys_of(&self, revision: &RevisionName) -> impl Iterator<Item = &ObjectKey> {
        self.served.get(revision).into_iter().flatten()
    }

    /// The Services that serve a revision and whose endpoints we write.
    pub(super) fn of_revision(&self, revision: &RevisionName) -> impl Iterator<Item = &AdoptedService> {
        self.keys_of(revision).filter_map(|key| self.adopted.get(key))
    }

    /// The Services that serve a revision and are ours.
    pub(super) fn ours_of(&self, revision: &RevisionName) -> impl Iterator<Item = &ObjectKey> {
        self.keys_of(revision).filter(|key| matches!(self.custody.get(*key), Some(Custody::Adopted(_))))
    }

    /// The slices of ours that a Service had for a revision are gone.
    pub(super) fn linger(&mut self, key: &ObjectKey, revision: RevisionName) {
        self.lingering.insert(key.clone(), (revision, None));
    }

    /// The revision for which a Service whose slices of ours are gone lingers.
    pub(super) fn lingers_for(&self, key: &ObjectKey) -> Option<&RevisionName> {
        self.lingering.get(key).map(|(revision, _)| revision)
    }

    /// Takes out the Services that have lingered long enough. Those that begin to do so are noted.
    pub(super) fn take_lingered(&mut self, now: Timestamp) -> Vec<ObjectKey> {
        let is_over = |_: &ObjectKey, (_, since): &mut (RevisionName, Option<Timestamp>)| {
            now >= *since.get_or_insert(now) + LINGERS_FOR
        };
        self.lingering.extract_if(.., is_over).map(|(key, _)| key).collect()
    }

    /// When a Service has lingered long enough.
    pub(super) fn lingering_ends(&self) -> Option<Timestamp> {
        let since = self.lingering.values().map(|(_, since)| *since);
        // One that no look has seen yet is due at once: its time begins with that look.
        since.map(|since| since.map_or(Timestamp::ZERO, |since| since + LINGERS_FOR)).min()
    }
}
