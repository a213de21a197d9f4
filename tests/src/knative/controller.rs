//! Knative's controller, as far as an autoscaler meets it: a Service's revisions with their Deployments and
//! `PodAutoscaler`s, the Services and Endpoints of a `ServerlessService`, and the conditions that follow from
//! what an autoscaler writes.
//!
//! Each look goes over all objects and says which writes are missing; a test can delay each step, or let it
//! stand still, through the ConfigMap `stand-in-controller`.

mod conditions;
mod endpoints;
mod pace;
mod planned_write;
mod process;
mod revisions;
mod services;
mod sidecar;
mod statuses;
mod traffic;

pub use process::run;

use planned_write::PlannedWrite;

use super::objects::{KnownObjects, PlayedKind};

/// All writes that are missing now. `now` is the wall time of conditions, in RFC 3339.
fn plan(known: &KnownObjects, system: &str, now: &str) -> Vec<PlannedWrite> {
    let mut writes = Vec::new();
    for (id, service) in known.of_kind(PlayedKind::KnativeService) {
        writes.extend(revisions::of_service(known, id, service));
        writes.extend(statuses::of_service(known, id, service, now));
    }
    for (id, revision) in known.of_kind(PlayedKind::Revision) {
        writes.extend(revisions::objects_of(known, system, id, revision));
        writes.extend(statuses::of_revision(known, id, revision, now));
    }
    for (id, serverless) in known.of_kind(PlayedKind::ServerlessService) {
        writes.extend(services::of_serverless(known, id, serverless));
        writes.extend(endpoints::of_serverless(known, system, id, serverless));
        writes.extend(endpoints::status_of(known, system, id, serverless, now));
    }
    writes
}

#[cfg(test)]
mod tests;
