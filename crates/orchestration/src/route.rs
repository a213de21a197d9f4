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
    let living = living(record, activators);
    let since = match wanted {
        Routing::ThroughActivator => record.through_since,
        Routing::Direct => Some(Version::default()),
    };
    let has = |member: &ReplicaId| {
        let version = since.unwrap_or_default();
        activators.get(*member).is_some_and(|record| record.has(id, version))
    };
    let proven: Vec<ReplicaId> = living.iter().copied().filter(has).collect();
    if proven.is_empty()
        && let Some(kept) = still_good(record, activators, wanted)
    {
        return Some(kept);
    }
    let routing = match wanted {
        Routing::ThroughActivator if proven.is_empty() && record.has_ready_pod() => Routing::Direct,
        Routing::ThroughActivator | Routing::Direct => wanted,
    };
    let serving = if proven.is_empty() { living } else { proven };
    Some(RouteInForce { routing, activators: activators.names(serving) })
}

/// The latest route, as far as it is on the side that is wanted and those in it live: after a restart nobody has acknowledged anything to us yet, and
/// what serves is left alone.
fn still_good(record: &RevisionRecord, activators: &Activators, wanted: Routing) -> Option<RouteInForce> {
    let latest = record.route.latest().filter(|latest| latest.routing == wanted)?;
    let lives = |name: &&ReplicaName| activators.id(name).is_some_and(|id| activators.lives(id));
    let living: Vec<ReplicaName> = latest.activators.iter().filter(lives).cloned().collect();
    (!living.is_empty()).then_some(RouteInForce { routing: wanted, activators: living })
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
