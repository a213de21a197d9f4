//! Which addresses serve a revision now? What the multiscaler wants, as far as those that would serve are
//! ready.
//!
//! A side is switched to only once it is proven: activators enter the path when they have acknowledged that
//! they are to. And each activator in the path must live: those that acknowledged, and only if none of them
//! does any other. An activator that an owner before us had put there stays until there is a reason to take
//! it out: that it has not been asked yet is none.

use vocabulary::{Epoch, ReplicaId, RevisionId, Routing, Version};

use crate::activators::Activators;
use crate::facts::RouteInForce;
use crate::registry::RevisionRecord;

/// The route that a revision should have; `None` while it is not ours to say.
pub(crate) fn route(
    id: RevisionId,
    record: &RevisionRecord,
    activators: &Activators,
) -> Option<RouteInForce> {
    let Some(wanted) = record.routing else { return undecided(id, record, activators) };
    let latest = named_last(record, activators, wanted);
    if let Some(proven) = proven(id, record, activators, &latest) {
        return Some(RouteInForce { routing: wanted, activators: activators.names(proven) });
    }
    // After a restart no activator has acknowledged a version to us yet: the present route is left alone.
    if !latest.is_empty() {
        return Some(RouteInForce { routing: wanted, activators: activators.names(latest) });
    }
    // No activator has acknowledged that it is to serve, and a ready pod can: the pod serves until one has.
    let routing = match wanted {
        Routing::ThroughActivator if record.has_ready_pod() => Routing::Direct,
        Routing::ThroughActivator | Routing::Direct => wanted,
    };
    Some(RouteInForce { routing, activators: activators.names(living(record, activators)) })
}

/// The route of a revision without a decision. One that is new has no route: its clients would
/// be refused until its first pod is ready. So activators stand in as soon as one of them listens. What an
/// owner before us wrote stays.
fn undecided(id: RevisionId, record: &RevisionRecord, activators: &Activators) -> Option<RouteInForce> {
    if record.route.is_inherited() {
        return None;
    }
    let latest = named_last(record, activators, Routing::Direct);
    let proven = proven(id, record, activators, &latest)?;
    Some(RouteInForce { routing: Routing::Direct, activators: activators.names(proven) })
}

/// Those that live and have acknowledged the side that is wanted: the members, else those that served last,
/// else any other.
fn proven(
    id: RevisionId,
    record: &RevisionRecord,
    activators: &Activators,
    latest: &[ReplicaId],
) -> Option<Vec<ReplicaId>> {
    // With the pods in the path activators only stand in while none is ready, and for that any version of
    // ours will do. One of an owner before us proves nothing: another owner may have had the activator forget
    // the revision since.
    let since = match record.routing() {
        Routing::ThroughActivator => record.through_since?,
        Routing::Direct => first_version(record.epoch?),
    };
    let is_proven = |id_of: &ReplicaId| {
        activators.lives(*id_of) && activators.get(*id_of).is_some_and(|known| known.has(id, since))
    };
    let all = activators.ids();
    let preferred = [record.members.as_slice(), latest, &all];
    let proven_of = |ids: &[ReplicaId]| -> Vec<ReplicaId> { ids.iter().copied().filter(is_proven).collect() };
    let mut proven = preferred.into_iter().map(proven_of).find(|proven| !proven.is_empty())?;
    let unasked: Vec<ReplicaId> =
        not_asked_yet(id, record, activators).filter(|unasked| !proven.contains(unasked)).collect();
    proven.extend(unasked);
    Some(proven)
}

/// The oldest version that an epoch can have.
fn first_version(epoch: Epoch) -> Version {
    Version { epoch, counter: 0 }
}

/// Members that serve since before we were here, and have not acknowledged anything of ours.
fn not_asked_yet(
    id: RevisionId,
    record: &RevisionRecord,
    activators: &Activators,
) -> impl Iterator<Item = ReplicaId> {
    let inherited = record.route.inherited.iter().filter(|route| Some(route.routing) == record.routing);
    let named = inherited.flat_map(|route| &route.activators).filter_map(|name| activators.id(name));
    named.filter(move |of| {
        let known = activators.get(*of).zip(record.epoch);
        let is_as_before = known.is_some_and(|(known, ours)| known.serves_as_before(id, ours));
        record.members.contains(of) && activators.lives(*of) && is_as_before
    })
}

/// Those that the latest route names and that live, as far as it is on the side that is wanted.
fn named_last(record: &RevisionRecord, activators: &Activators, wanted: Routing) -> Vec<ReplicaId> {
    let latest = record.route.latest().filter(|latest| latest.routing == wanted);
    let named = latest.into_iter().flat_map(|latest| &latest.activators);
    named.filter_map(|name| activators.id(name)).filter(|id| activators.lives(*id)).collect()
}

/// The members that live; if none lives, the other activators that do; if no activator lives, the members.
fn living(record: &RevisionRecord, activators: &Activators) -> Vec<ReplicaId> {
    let lives = |id: &ReplicaId| activators.lives(*id);
    let members: Vec<ReplicaId> = record.members.iter().copied().filter(lives).collect();
    if !members.is_empty() {
        return members;
    }
    let others: Vec<ReplicaId> = activators.ids().into_iter().filter(lives).collect();
    if others.is_empty() { record.members.clone() } else { others }
}
