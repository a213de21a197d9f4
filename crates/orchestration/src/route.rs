//! Who serves a revision now? What the multiscaler wants, as far as those who would serve are ready for it.
//!
//! A side is switched to only once it is proven: activators enter the path when they have acknowledged that they are to. And whoever is in the path
//! must live: those that acknowledged, and only if none of them does any other.

use vocabulary::{ReplicaId, ReplicaName, RevisionId, Routing, Version};

use crate::activators::Activators;
use crate::facts::RouteInForce;
use crate::orders::OrderId;
use crate::registry::RevisionRecord;

/// What is known of the written route.
#[derive(Debug, Default)]
pub(crate) struct RouteRecord {
    /// What was ordered last, if anything, and by which order.
    pub(crate) ordered: Option<(OrderId, RouteInForce)>,
    /// What is written, if that is known.
    pub(crate) written: Option<RouteInForce>,
}

impl RouteRecord {
    /// Whether the written route, or one that may be written any moment, names an activator.
    pub(crate) fn may_name(&self, activator: &ReplicaName) -> bool {
        let ordered = self.ordered.as_ref().map(|(_, route)| route);
        [ordered, self.written.as_ref()]
            .into_iter()
            .flatten()
            .any(|route| route.activators.contains(activator))
    }

    /// What is to be written in the end, as far as was ordered.
    pub(crate) fn latest(&self) -> Option<&RouteInForce> {
        self.ordered.as_ref().map(|(_, route)| route).or(self.written.as_ref())
    }
}

/// The route that a revision should have; `None` while it is not ours to say.
pub(crate) fn route(
    id: RevisionId,
    record: &RevisionRecord,
    activators: &Activators,
) -> Option<RouteInForce> {
    let wanted = record.routing?;
    let latest = named_last(record, activators, wanted);
    if let Some(proven) = proven(id, record, activators, &latest) {
        return Some(RouteInForce { routing: wanted, activators: activators.names(proven) });
    }
    // After a restart nobody has acknowledged anything to us yet, and what serves is left alone.
    if !latest.is_empty() {
        return Some(RouteInForce { routing: wanted, activators: activators.names(latest) });
    }
    let routing = match wanted {
        Routing::ThroughActivator if record.has_ready_pod() => Routing::Direct,
        Routing::ThroughActivator | Routing::Direct => wanted,
    };
    Some(RouteInForce { routing, activators: activators.names(living(record, activators)) })
}

/// Those that live and have acknowledged the side that is wanted: the members, else those that served last, else any other.
fn proven(
    id: RevisionId,
    record: &RevisionRecord,
    activators: &Activators,
    latest: &[ReplicaId],
) -> Option<Vec<ReplicaId>> {
    let since = match record.routing() {
        Routing::ThroughActivator => record.through_since?,
        Routing::Direct => Version::default(),
    };
    let is_proven = |id_of: &ReplicaId| {
        activators.lives(*id_of) && activators.get(*id_of).is_some_and(|known| known.has(id, since))
    };
    let all = activators.ids();
    let preferred = [record.members.as_slice(), latest, &all];
    let proven = preferred.map(|ids| ids.iter().copied().filter(is_proven).collect::<Vec<_>>());
    proven.into_iter().find(|proven| !proven.is_empty())
}

/// Those that the latest route names and that live, as far as it is on the side that is wanted.
fn named_last(record: &RevisionRecord, activators: &Activators, wanted: Routing) -> Vec<ReplicaId> {
    let latest = record.route.latest().filter(|latest| latest.routing == wanted);
    let named = latest.into_iter().flat_map(|latest| &latest.activators);
    named.filter_map(|name| activators.id(name)).filter(|id| activators.lives(*id)).collect()
}

/// The members that live; if none does, whoever else does; if nobody does, the members.
fn living(record: &RevisionRecord, activators: &Activators) -> Vec<ReplicaId> {
    let lives = |id: &ReplicaId| activators.lives(*id);
    let members: Vec<ReplicaId> = record.members.iter().copied().filter(lives).collect();
    if !members.is_empty() {
        return members;
    }
    let others: Vec<ReplicaId> = activators.ids().into_iter().filter(lives).collect();
    if others.is_empty() { record.members.clone() } else { others }
}
