//! Who serves a revision now? What the multiscaler wants, as far as those who would serve are ready for it.
//!
//! A side is switched to only once it is proven: activators enter the path when they have acknowledged that
//! they are to. And whoever is in the path must live: those that acknowledged, and only if none of them does
//! any other. Whom an owner before us had put there stays until there is a reason to take it out: that it has
//! not been asked yet is none.

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
    /// What was ordered after that and given up for a later order. Each may stand, whole or in part, until
    /// the last one is written.
    passed_over: Vec<RouteInForce>,
    /// What another owner had written, as far as each order since has left it.
    inherited: Option<RouteInForce>,
    /// Why the platform does not write what was ordered last.
    pub(crate) trouble: Option<String>,
}

impl RouteRecord {
    /// Whether the written route, or one that may be written any moment, names an activator.
    pub(crate) fn may_name(&self, activator: &ReplicaName) -> bool {
        let ordered = self.ordered.as_ref().map(|(_, route)| route);
        let known = [ordered, self.written.as_ref()].into_iter().flatten();
        known.chain(&self.passed_over).any(|route| route.activators.contains(activator))
    }

    /// Whether a route is in force that another owner has written, and none was ordered since.
    fn is_inherited(&self) -> bool {
        self.ordered.is_none() && self.written.is_some()
    }

    /// A route is in force that is not of our making.
    pub(crate) fn note_found(&mut self, route: RouteInForce) {
        // Once we have ordered one, the outcome of that says what is written; what is found may be from
        // before.
        if self.ordered.is_none() {
            self.inherited = Some(route.clone());
            self.written = Some(route);
        }
    }

    /// Another order is given.
    pub(crate) fn order(&mut self, order: OrderId, route: RouteInForce) {
        // It was about a route that nobody asks for any more.
        self.trouble = None;
        self.inherited = self.inherited.take().filter(|inherited| inherited.routing == route.routing);
        if let Some(inherited) = &mut self.inherited {
            // Who comes back later may be another process of that name, which knows nothing.
            inherited.activators.retain(|name| route.activators.contains(name));
        }
        let former = self.ordered.replace((order, route)).map(|(_, route)| route);
        // A platform that cannot write now may order the same few again and again.
        self.passed_over.extend(
            former.filter(|route| self.written.as_ref() != Some(route) && !self.passed_over.contains(route)),
        );
    }

    /// An order is carried out. Whether it is the last one.
    pub(crate) fn note_written(&mut self, order: OrderId) -> bool {
        // An earlier one may be in force until the last one is, and proves nothing: it is about to be
        // replaced.
        let Some((_, route)) = self.ordered.as_ref().filter(|(latest, _)| *latest == order) else {
            return false;
        };
        self.written = Some(route.clone());
        self.passed_over.clear();
        self.trouble = None;
        true
    }

    /// An order is not carried out, as far as is known.
    pub(crate) fn note_trouble(&mut self, order: OrderId, text: String) {
        if self.ordered.as_ref().is_some_and(|(latest, _)| *latest == order) {
            self.trouble = Some(text);
        }
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
    let Some(wanted) = record.routing else { return undecided(id, record, activators) };
    let latest = named_last(record, activators, wanted);
    if let Some(proven) = proven(id, record, activators, &latest) {
        return Some(RouteInForce { routing: wanted, activators: activators.names(proven) });
    }
    // After a restart nobody has acknowledged anything to us yet, and what serves is left alone.
    if !latest.is_empty() {
        return Some(RouteInForce { routing: wanted, activators: activators.names(latest) });
    }
    // Nobody has acknowledged that they are to serve, and a ready pod can: it does so until one of them has.
    let routing = match wanted {
        Routing::ThroughActivator if record.has_ready_pod() => Routing::Direct,
        Routing::ThroughActivator | Routing::Direct => wanted,
    };
    Some(RouteInForce { routing, activators: activators.names(living(record, activators)) })
}

/// The route of a revision that nobody has decided about yet. One that is new has no route: its clients would
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
    // With the pods in the path activators only stand in while none is ready, and for that any version will
    // do.
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
    let mut proven = proven.into_iter().find(|proven| !proven.is_empty())?;
    let unasked: Vec<ReplicaId> =
        not_asked_yet(id, record, activators).filter(|unasked| !proven.contains(unasked)).collect();
    proven.extend(unasked);
    Some(proven)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_was_given_up_for_another_keeps_its_activators_until_that_one_is_written() {
        let route = |name: &str| RouteInForce {
            routing: Routing::ThroughActivator,
            activators: vec![ReplicaName::new(name)],
        };
        let mut record = RouteRecord { written: Some(route("a")), ..RouteRecord::default() };
        let [first, last] = [OrderId(1), OrderId(2)];
        record.order(first, route("b"));
        record.order(last, route("c"));
        // The first was carried out before the platform heard of the last, and says so late.
        assert!(!record.note_written(first));
        for name in ["a", "b", "c"] {
            assert!(record.may_name(&ReplicaName::new(name)), "slices may name {name}");
        }
        // Nor is its trouble that of the last one, which ends when that is written.
        record.note_trouble(first, "too slow".to_owned());
        assert_eq!(record.trouble, None);
        record.note_trouble(last, "forbidden".to_owned());
        assert_eq!(record.trouble.as_deref(), Some("forbidden"));
        assert!(record.note_written(last));
        assert_eq!(record.trouble, None);
        let named = ["a", "b", "c"].map(|name| record.may_name(&ReplicaName::new(name)));
        assert_eq!(named, [false, false, true]);
    }
}
