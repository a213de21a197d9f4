//! How do the objects of an installed Knative reach the index, and how does what was decided reach them?

use orchestration::{Fence, OrderOutcome, RouteInForce};
use scaling::RevisionOrigin;
use settings::PROGRESS_DEADLINE_DEFAULT;
use vocabulary::{RevisionName, Timestamp};

use super::{ClusterState, Kind};
use crate::knative::{WriteEnd, WrittenObject};
use crate::moment::Moment;
use crate::news::KnativeNews;
use crate::routes::OrderKey;
use crate::write::{ClusterWrite, Failure};

impl ClusterState {
    /// News of the kinds that are watched in an installed Knative alone.
    pub(super) fn take_knative_news(&mut self, news: KnativeNews, now: Timestamp) {
        match news {
            KnativeNews::PodAutoscaler(change) => {
                self.take(Kind::PodAutoscaler, change, |state, key, record| match record {
                    Some(record) => state.index.put_pod_autoscaler(*record),
                    None => state.index.remove_pod_autoscaler(&key),
                });
            }
            KnativeNews::ServerlessService(change) => {
                self.take(Kind::ServerlessService, change, |state, key, record| match record {
                    Some(record) => state.index.put_serverless_service(*record),
                    None => state.index.remove_serverless_service(&key),
                });
            }
            KnativeNews::Deployment(change) => {
                // Those of the first list were there before this watch began.
                let is_first = self.unlisted.contains(&Kind::RevisionDeployment);
                let origin = if is_first { RevisionOrigin::Found } else { RevisionOrigin::New };
                self.take(Kind::RevisionDeployment, change, |state, key, deployment| {
                    let deployment = deployment.flatten().map(|deployment| *deployment);
                    state.index.put_revision_deployment(&key, deployment, origin);
                });
            }
            KnativeNews::PublicSlice(change) => {
                self.take(Kind::PublicSlice, change, |state, key, slice| {
                    state.index.put_public_slice(&key, slice.flatten(), now);
                });
            }
            KnativeNews::AutoscalerPod(change) => {
                self.take(Kind::AutoscalerPod, change, |state, key, pod| {
                    state.index.put_autoscaler_pod(key, pod.as_deref());
                });
            }
            KnativeNews::ProgressDeadline(change) => {
                self.take(Kind::DeploymentConfig, change, |state, _, deadline| {
                    state.index.put_progress_deadline(deadline.unwrap_or(PROGRESS_DEADLINE_DEFAULT));
                });
            }
        }
    }

    /// A route of a revision of Knative's is ordered. The order ends once the route is in force.
    pub(super) fn take_revision_route(&mut self, key: OrderKey, revision: RevisionName, route: RouteInForce) {
        // Its own controller writes the `ServerlessService`: the route is as that says.
        if self.index.is_served_only(&revision) {
            return self.order_ended(key, OrderOutcome::Done);
        }
        if !self.index.has_revision(&revision) {
            return self.order_ended(key, OrderOutcome::Gone);
        }
        self.index.set_route(&revision, route);
        if let Some(replaced) = self.revision_routes.insert(revision, key) {
            self.order_ended(replaced, OrderOutcome::Superseded);
        }
    }

    /// Begins to write the objects of revisions that are not as they should be, and ends the orders of routes
    /// that are in force.
    pub(super) fn write_revisions(&mut self, moment: Moment) {
        let rights = self.buckets.rights(moment.axis);
        while self.pace.is_open(moment.axis) {
            let buckets = &self.buckets;
            let is_owned = |revision: &RevisionName| rights.contains_key(&buckets.bucket_of(revision));
            let Some((revision, write)) = self.index.next_revision_write(moment, is_owned) else { break };
            let bucket = self.buckets.bucket_of(&revision);
            let Some(right) = rights.get(&bucket) else { continue };
            self.pace.begin(1, moment.axis);
            let fence = Fence { bucket, epoch: right.epoch };
            self.writes.push_back(ClusterWrite::Revision { fence, revision, write });
        }
        for (revision, key) in std::mem::take(&mut self.revision_routes) {
            let outcome = if !self.index.has_revision(&revision) {
                OrderOutcome::Gone
            } else if !rights.contains_key(&self.buckets.bucket_of(&revision)) {
                OrderOutcome::NotOwner
            } else if self.index.is_revision_route_in_force(&revision) {
                OrderOutcome::Done
            } else {
                self.revision_routes.insert(revision, key);
                continue;
            };
            self.order_ended(key, outcome);
        }
    }

    /// A write of one of a revision's objects has ended.
    pub(super) fn revision_written(
        &mut self,
        revision: &RevisionName,
        object: WrittenObject,
        how: &Result<(), Failure>,
        now: Timestamp,
    ) {
        self.pace.ended();
        let end = match how {
            Ok(()) => WriteEnd::Done,
            Err(Failure::Conflict) => WriteEnd::Conflict,
            Err(failure) => WriteEnd::Failed(Some(failure.wait())),
        };
        self.index.revision_write_ended(revision, object, end, now);
        // While the `ServerlessService` cannot be written, as when Knative's webhook is away, its route is
        // not in force. That the status cannot be written keeps no order up.
        if let (Err(failure), WriteEnd::Failed(_), WrittenObject::Service) = (how, end, object)
            && let Some(key) = self.revision_routes.get(revision).copied()
        {
            self.order_ended(key, OrderOutcome::Retrying(failure.words().to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
