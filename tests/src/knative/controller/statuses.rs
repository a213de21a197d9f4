//! What the status of a `PodAutoscaler` makes of its revision, and that of its Service: contract §2.2.

use serde_json::{Value, json};

use super::conditions::{ConditionText, condition, written};
use super::planned_write::{ControllerStep, PlannedWrite, ensured_status};
use super::revisions::present_revision;
use super::traffic::{latest_ready, traffic_of};
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind, list, number, text};

/// The reason of a revision that its autoscaler gave up, and the message.
const NEVER_ACHIEVED: (&str, &str) = ("ProgressDeadlineExceeded", "Initial scale was never achieved");

/// The status of a revision, where it is not as it is to be.
pub(super) fn of_revision(
    known: &KnownObjects,
    id: &ObjectId,
    revision: &Value,
    now: &str,
) -> Option<PlannedWrite> {
    let nothing = Value::Null;
    let autoscaler = known.get(&id.beside(PlayedKind::PodAutoscaler, &id.name)).unwrap_or(&nothing);
    let resources = resources(revision, autoscaler);
    let ready = resources.renamed("Ready");
    let active = condition(autoscaler, "Ready").renamed("Active").for_information();
    let conditions = [resources, resources.renamed("ContainerHealthy"), ready, active];
    // A count that is not known yet is hidden.
    let desired = autoscaler.pointer("/status/desiredScale").and_then(Value::as_i64);
    let status = json!({
        "observedGeneration": number(revision, "/metadata/generation"),
        "conditions": written(revision, &conditions, now),
        "desiredReplicas": desired.filter(|desired| *desired >= 0),
        "actualReplicas": autoscaler.pointer("/status/actualScale"),
    });
    ensured_status(ControllerStep::Statuses, id, revision, &status)
}

/// The condition `ResourcesAvailable`; the other two of a revision say the same here.
fn resources<'o>(revision: &'o Value, autoscaler: &'o Value) -> ConditionText<'o> {
    let name = "ResourcesAvailable";
    let has_service = !text(autoscaler, "/status/serviceName").is_empty();
    let is_initialized = condition(autoscaler, "ScaleTargetInitialized").status == "True";
    let former = condition(revision, name);
    if has_service && is_initialized {
        return ConditionText::new(name, "True");
    }
    // A revision that failed stays so until its initial scale is achieved all the same.
    if former.status == "False" {
        return former;
    }
    if has_service && condition(autoscaler, "Ready").status == "False" {
        return ConditionText::new(name, "False").because(NEVER_ACHIEVED.0, NEVER_ACHIEVED.1);
    }
    ConditionText::new(name, "Unknown").because("Deploying", "")
}

/// The status of a Service, where it is not as it is to be. Its route is ready once it leads to a revision:
/// no ingress is asked.
pub(super) fn of_service(
    known: &KnownObjects,
    id: &ObjectId,
    service: &Value,
    now: &str,
) -> Option<PlannedWrite> {
    let (created, revision) = present_revision(known, id, service)?;
    let traffic = traffic_of(known, id, service);
    let ready = condition(revision, "Ready");
    let is_routed = !list(&traffic, "").is_empty();
    let routes = ConditionText::new("RoutesReady", if is_routed { "True" } else { "Unknown" });
    let conditions = [ready.renamed("ConfigurationsReady"), routes, ready];
    let host = format!("{}.{}", id.name, id.namespace);
    let status = json!({
        "observedGeneration": number(service, "/metadata/generation"),
        "latestCreatedRevisionName": created.name,
        "latestReadyRevisionName": latest_ready(known, id),
        "traffic": traffic,
        "url": format!("http://{host}.example.com"),
        "address": {"url": format!("http://{host}.svc.cluster.local")},
        "conditions": written(service, &conditions, now),
    });
    ensured_status(ControllerStep::Statuses, id, service, &status)
}
