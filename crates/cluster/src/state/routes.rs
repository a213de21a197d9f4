//! How does a route reach the slices? From an order, or a change of pods, to slices that name the endpoints,
//! and to the end of slices that others left there.

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Fence, OrderOutcome, RouteInForce};
use vocabulary::{PodName, RevisionName, Timestamp};

use super::ClusterState;
use crate::index::Takeover;
use crate::resources::ObjectKey;
use crate::routes::OrderKey;
use crate::slices::{self, SliceChange};
use crate::write::{ClusterWrite, Failure};

impl ClusterState {
    pub(super) fn take_route(&mut self, key: OrderKey, revision: RevisionName, route: RouteInForce) {
        if !self.index.is_revision(&revision) {
            return self.order_ended(key, OrderOutcome::Gone);
        }
        self.index.set_route(&revision, route);
        let replaced = self.routes.entry(revision).or_default().ordered_by.replace(key);
        if let Some(replaced) = replaced {
            self.order_ended(replaced, OrderOutcome::Superseded);
        }
    }

    pub(super) fn release_pod(&mut self, key: OrderKey, pod: PodName) {
        let Some(revision) = self.index.revision_of_pod(&pod) else {
            return self.order_ended(key, OrderOutcome::Gone);
        };
        let replaced = self.routes.entry(revision).or_default().release(pod, key);
        if let Some(replaced) = replaced {
            self.order_ended(replaced, OrderOutcome::Superseded);
        }
    }

    /// Begins to write all slices that are not as they should be. The giver of an order hears of its end once
    /// no slice of the revision is left to be written.
    pub(super) fn write_slices(&mut self, now: Timestamp) {
        for revision in self.index.take_unrouted() {
            self.routes.entry(revision).or_default().queue.put(());
        }
        if !self.pace.is_open(now) {
            return;
        }
        let due = self.routes.iter().filter(|(_, route)| route.queue.is_due(now));
        let mut due: Vec<RevisionName> = due.map(|(revision, _)| revision.clone()).collect();
        // Requests are on their way to revisions that have pods; a revision at rest can wait for its turn.
        due.sort_by_cached_key(|revision| self.index.is_at_rest(revision));
        for revision in due {
            if !self.pace.is_open(now) {
                break;
            }
            for (key, outcome) in self.write_slices_of(&revision, now) {
                self.order_ended(key, outcome);
            }
        }
        self.routes.retain(|_, route| !route.is_idle(now));
    }

    /// Begins to write the slices of one revision; returns the orders that have ended, with their outcomes.
    fn write_slices_of(&mut self, revision: &RevisionName, now: Timestamp) -> Vec<(OrderKey, OrderOutcome)> {
        let Some(route) = self.routes.get_mut(revision).filter(|route| route.queue.is_due(now)) else {
            return Vec::new();
        };
        route.queue.begin(now);
        let bucket = self.buckets.bucket_of(revision);
        let Some(right) = self.buckets.rights(now).get(&bucket).copied() else {
            route.queue.done();
            return route.give_up().into_iter().map(|key| (key, OrderOutcome::NotOwner)).collect();
        };
        let fence = Fence { bucket, epoch: right.epoch };
        let changes = self.index.slice_changes(revision);
        let takeover = if changes.is_empty() { self.index.takeover(revision) } else { None };
        let revision = revision.clone();
        if let Some(takeover) = takeover {
            route.adopting.insert(takeover.service.clone());
            self.pace.begin(1 + takeover.leftovers.len(), now);
            self.writes.push_back(ClusterWrite::Takeover { fence, revision, takeover });
            return Vec::new();
        }
        if changes.is_empty() {
            route.queue.done();
            route.adopting.retain(|service| !self.index.announce_adopted(service));
            let settled = route.settle(&revision, &self.index);
            return settled.into_iter().map(|key| (key, OrderOutcome::Done)).collect();
        }
        let index = &self.index;
        route.adopting.extend(created(&changes).filter(|service| !index.has_slices(service)));
        self.pace.begin(changes.len(), now);
        self.writes.push_back(ClusterWrite::Slices { fence, revision, changes });
        Vec::new()
    }

    pub(super) fn slices_written(
        &mut self,
        revision: &RevisionName,
        written: Vec<(SliceChange, Option<EndpointSlice>)>,
        how: Result<(), Failure>,
        now: Timestamp,
    ) {
        self.pace.ended();
        // Taken from the answers: the watch comes later, and until then the same would be written once more.
        // What was written before a failure counts as well.
        for (change, slice) in written {
            let (SliceChange::Create(former) | SliceChange::Replace(former) | SliceChange::Delete(former)) =
                change;
            match slice {
                Some(slice) => self.index.put_slice(slice),
                None => self.index.remove_slice(&ObjectKey::of(&former.metadata)),
            }
        }
        let Some(route) = self.routes.get_mut(revision) else { return };
        let Err(failure) = how else {
            // The next look says whether that was all, for pods may have changed meanwhile.
            route.queue.done();
            route.queue.put(());
            return;
        };
        self.route_failed(revision, &failure, now);
    }

    /// The slices that Kubernetes or others left on a Service are deleted, or could not be.
    pub(super) fn taken_over(
        &mut self,
        revision: &RevisionName,
        takeover: &Takeover,
        how: Result<Option<Vec<EndpointSubset>>, Failure>,
        now: Timestamp,
    ) {
        self.pace.ended();
        match how {
            Ok(kept) => {
                for leftover in &takeover.leftovers {
                    self.index.remove_other_slice(&leftover.key);
                }
                if let Some(subsets) = kept {
                    self.index.put_endpoints(&takeover.service, subsets);
                }
                if let Some(route) = self.routes.get_mut(revision) {
                    route.queue.done();
                    route.queue.put(());
                }
            }
            Err(failure) => self.route_failed(revision, &failure, now),
        }
    }

    fn route_failed(&mut self, revision: &RevisionName, failure: &Failure, now: Timestamp) {
        let Some(route) = self.routes.get_mut(revision) else { return };
        let after = match failure {
            Failure::Passing { after, .. } => *after,
            Failure::NotOwner
            | Failure::Gone(_)
            | Failure::Conflict
            | Failure::Refused(_)
            | Failure::Forbidden(_) => None,
        };
        route.queue.failed(after, now);
        // Every failure is tried again: slices must come to name the addresses that serve.
        if let Some(key) = route.ordered_by {
            let outcome = OrderOutcome::Retrying(failure.words().to_owned());
            self.order_ended(key, outcome);
        }
    }
}

/// The Services for which a slice of ours is created.
fn created(changes: &[SliceChange]) -> impl Iterator<Item = ObjectKey> {
    let created = changes.iter().filter_map(|change| match change {
        SliceChange::Create(slice) => Some(slice),
        SliceChange::Replace(_) | SliceChange::Delete(_) => None,
    });
    created.filter_map(slices::service_of)
}
