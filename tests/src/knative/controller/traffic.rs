//! Which revisions get the requests of a Service? Those that its `traffic` names, or the newest one that is
//! ready; no Route object is played.

use serde_json::{Value, json};

use super::conditions::condition;
use crate::knative::keys;
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind, label, list, number, text};

/// The revisions of a Service, the oldest first.
pub(super) fn revisions_of<'k>(
    known: &'k KnownObjects,
    service: &'k ObjectId,
) -> impl Iterator<Item = (&'k ObjectId, &'k Value)> {
    known.of_kind(PlayedKind::Revision).filter(move |(id, revision)| {
        id.namespace == service.namespace && label(revision, keys::SERVICE) == service.name
    })
}

/// The newest revision of a Service that is ready.
pub(super) fn latest_ready<'k>(known: &'k KnownObjects, service: &'k ObjectId) -> Option<&'k str> {
    let ready = revisions_of(known, service).filter(|(_, one)| is_ready(one));
    ready.last().map(|(id, _)| id.name.as_str())
}

/// The targets of a Service's route as its status has them. While one that is wanted is not ready, those that
/// stand there stay.
pub(super) fn traffic_of(known: &KnownObjects, id: &ObjectId, service: &Value) -> Value {
    wanted_traffic(known, id, service).unwrap_or_else(|| list(service, "/status/traffic").into())
}

/// `None` while a revision that is wanted is not ready.
fn wanted_traffic(known: &KnownObjects, id: &ObjectId, service: &Value) -> Option<Value> {
    let targets = list(service, "/spec/traffic");
    if targets.is_empty() {
        return Some(json!([target(latest_ready(known, id)?, 100, true)]));
    }
    let wanted = targets.iter().map(|written| {
        let percent = number(written, "/percent");
        let name = text(written, "/revisionName");
        if name.is_empty() {
            return Some(target(latest_ready(known, id)?, percent, true));
        }
        let revision = known.get(&id.beside(PlayedKind::Revision, name)).filter(|one| is_ready(one));
        revision.map(|_| target(name, percent, false))
    });
    wanted.collect()
}

fn is_ready(revision: &Value) -> bool {
    condition(revision, "Ready").status == "True"
}

fn target(revision: &str, percent: i64, is_latest: bool) -> Value {
    json!({"revisionName": revision, "percent": percent, "latestRevision": is_latest})
}

/// Whether a route with these targets leads to a revision.
pub(super) fn leads_to(traffic: &Value, revision: &str) -> bool {
    list(traffic, "").iter().any(|target| text(target, "/revisionName") == revision)
}
