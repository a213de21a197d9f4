//! How does what the watches say reach the index?

use scaling::RevisionOrigin;
use vocabulary::{PodName, ReplicaName, Timestamp};

use super::{ClusterState, Kind, KindWatch};
use crate::lease::LeaseRecord;
use crate::news::{Change, News, ShownPod};
use crate::resources::ObjectKey;
use crate::resources::kind::WorkloadKind;
use crate::resources::workload::objects::WorkloadReading;

impl ClusterState {
    pub(super) fn take_news(&mut self, news: News, now: Timestamp) {
        match news {
            News::Config(change) => {
                self.take(Kind::Config, change, |state, _, data| {
                    state.index.put_config(&data.unwrap_or_default());
                });
            }
            News::Observability(change) => {
                self.take(Kind::Observability, change, |state, _, findings| {
                    state.index.put_observability(findings.unwrap_or_default());
                });
            }
            News::Service(change) => self.take(Kind::Service, change, |state, key, service| match service {
                Some(service) => state.index.put_service(&key, service),
                None => state.index.remove_service(&key),
            }),
            News::Workload(kind, change) => self.take_workloads(&kind, change, now),
            News::KindRefused(kind, why) => self.index.refuse_kind(&kind, why),
            News::KindLeft(kind) => self.forget_kind(&kind),
            News::Pod(change) => self.take(Kind::Pod, change, |state, key, pod| match pod {
                Some(ShownPod { pod, version: _ }) => state.index.put_pod(pod, now),
                None => state.index.remove_pod(&PodName::new(&format!("{}/{}", key.namespace, key.name))),
            }),
            News::Activator(change) => self.take(Kind::Activator, change, |state, key, pod| {
                if let Some(pod) = pod {
                    state.index.put_activator(&pod, now);
                } else {
                    state.index.remove_activator(&ReplicaName::new(&key.name), now);
                    state.index.forget_failed_part(&PodName::new(&format!("{}/{}", key.namespace, key.name)));
                }
            }),
            News::Autoscaler(change) => self.take(Kind::Autoscaler, change, |state, key, record| {
                state.index.put_autoscaler(key, record);
            }),
            News::Zone(change) => {
                self.take(Kind::Node, change, |state, key, zone| {
                    state.index.put_node_zone(&key.name, zone.flatten().as_deref());
                });
            }
            News::Slice(change) => self.take(Kind::Slice, change, |state, key, slice| match slice {
                Some(slice) => state.index.put_slice(*slice),
                None => state.index.remove_slice(&key),
            }),
            News::OtherSlice(change) => {
                self.take(Kind::OtherSlice, change, |state, key, slice| match slice.flatten() {
                    Some(slice) => state.index.put_other_slice(slice),
                    None => state.index.remove_other_slice(&key),
                });
            }
            News::Endpoints(change) => {
                self.take(Kind::Endpoints, change, |state, key, subsets| match subsets {
                    Some(subsets) => state.index.put_endpoints(&key, subsets),
                    None => state.index.remove_endpoints(&key),
                });
            }
            News::Lease(change) => self.take_leases(change, now),
            News::Knative(news) => self.take_knative_news(news, now),
        }
    }

    fn take_leases(&mut self, change: Change<LeaseRecord>, now: Timestamp) {
        let is_list = matches!(&change, Change::Listed(_));
        self.take(Kind::Lease, change, |state, key, lease| {
            if let Some(which) = state.buckets.names().lease_of(&key.name) {
                state.buckets.observe(which, lease, now);
            }
        });
        // After the Leases themselves: until then a Lease that is there would look as if it had never been
        // made.
        if is_list {
            self.buckets.listed(now);
        }
    }

    fn take_workloads(&mut self, kind: &WorkloadKind, change: Change<WorkloadReading>, now: Timestamp) {
        // Workloads of the first list were there before this watch began.
        let is_first = !self.index.is_kind_listed(kind);
        let origin = if is_first { RevisionOrigin::Found } else { RevisionOrigin::New };
        if matches!(change, Change::Listed(_)) {
            self.index.kind_listed(kind);
        }
        self.take(Kind::Workload(kind.clone()), change, |state, key, reading| {
            let Some(revision) = kind.revision(&key.namespace, &key.name) else { return };
            if let Some(reading) = reading {
                if let Some(foreign) = state.index.read_workload(&revision, reading, origin) {
                    state.note_foreign_count(&revision, foreign, now);
                }
            } else {
                state.index.remove_workload(&revision);
            }
        });
    }

    /// A kind is not watched any more. One that a Service has named since then keeps its workloads: the next
    /// list says which of them are gone.
    fn forget_kind(&mut self, kind: &WorkloadKind) {
        if self.index.is_kind_wanted(kind) {
            return;
        }
        for key in self.known.remove(&Kind::Workload(kind.clone())).unwrap_or_default() {
            if let Some(revision) = kind.revision(&key.namespace, &key.name) {
                self.index.remove_workload(&revision);
            }
        }
        self.index.forget_kind(kind);
    }

    /// Puts each record in, and takes out (`None`) what is gone.
    pub(super) fn take<Record>(
        &mut self,
        kind: Kind,
        change: Change<Record>,
        mut put: impl FnMut(&mut Self, ObjectKey, Option<Record>),
    ) {
        match change {
            Change::Put(key, record) => {
                self.known.entry(kind).or_default().insert(key.clone());
                put(self, key, Some(record));
            }
            Change::Gone(key) => {
                self.known.entry(kind).or_default().remove(&key);
                put(self, key, None);
            }
            Change::Listed(keys) => {
                let former = self.known.insert(kind.clone(), keys.clone()).unwrap_or_default();
                // A watch that was interrupted tells nothing of what went meanwhile; only the list that it
                // begins anew with does, by what is not in it.
                for gone in former.difference(&keys) {
                    put(self, gone.clone(), None);
                }
                if self.unlisted.remove(&kind) && self.unlisted.is_empty() {
                    self.everything_listed();
                }
            }
        }
    }

    /// Services may name kinds that are not watched yet: those of Kubernetes' own are waited for, too.
    /// Another one may not be there at all.
    fn everything_listed(&mut self) {
        for kind in self.index.take_kinds_to_watch() {
            if kind.resource().is_some() {
                self.unlisted.insert(Kind::Workload(kind.clone()));
            }
            self.kind_watches.push(KindWatch::Begin(kind));
        }
        if self.unlisted.is_empty() {
            self.index.listed();
        }
    }
}
