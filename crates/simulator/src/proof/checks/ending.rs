//! Once faults have stopped for two stable windows: everything is linked, nothing waits while a slot is free,
//! and counts are those of a world in which nothing went wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use orchestration::RouteInForce;
use vocabulary::{PodCount, PodName, ReplicaName, RevisionName};

use crate::proof::check_failure::{CheckFailure, Checked};

const LINKED: &str = "in the end everything is linked";
const KNOWN_PODS: &str = "in the end every activator knows the ready pods";
const NOTHING_WAITS: &str = "in the end nothing waits while a slot is free";
const NO_REFUSALS: &str = "in the end no request is refused";
const AS_THE_TWIN: &str = "in the end a count is that of the twin without faults";
const AS_ORDERED: &str = "in the end there are as many ready pods as were ordered";
const ROUTED: &str = "in the end a route names every activator";

/// The world as it is at its end.
#[derive(Debug, Default)]
pub(crate) struct EndScene {
    /// The links that an owner needs: to each activator, and to each pod of its buckets.
    pub(crate) links: Vec<EndLink>,
    pub(crate) services: Vec<EndService>,
    pub(crate) activators: Vec<ReplicaName>,
    /// The requests that were refused in the last minute.
    pub(crate) late_refusals: u64,
}

#[derive(Debug)]
pub(crate) struct EndLink {
    pub(crate) name: String,
    pub(crate) stands: bool,
}

#[derive(Debug)]
pub(crate) struct EndService {
    pub(crate) name: RevisionName,
    pub(crate) wanted: PodCount,
    /// The count of the twin, unless this is the twin.
    pub(crate) expected: Option<PodCount>,
    /// The pods that are ready and do not leave.
    pub(crate) ready: BTreeSet<PodName>,
    /// The pods that each activator takes for ready.
    pub(crate) known: Vec<BTreeSet<PodName>>,
    pub(crate) route: Option<RouteInForce>,
    pub(crate) waiting: Vec<WaitingAtEnd>,
}

/// Requests that wait at an activator.
#[derive(Debug)]
pub(crate) struct WaitingAtEnd {
    pub(crate) activator: ReplicaName,
    pub(crate) oldest: Duration,
    /// Whether a ready pod of the activator's own share has a slot that it does not use.
    pub(crate) has_free_slot: bool,
}

pub(super) fn judge(scene: &EndScene) -> Checked {
    if let Some(link) = scene.links.iter().find(|link| !link.stands) {
        return Err(CheckFailure::new(LINKED, link.name.clone()));
    }
    if scene.late_refusals > 0 {
        return Err(CheckFailure::new(NO_REFUSALS, format!("{} were", scene.late_refusals)));
    }
    scene.services.iter().try_for_each(|service| judge_service(service, &scene.activators))
}

fn judge_service(service: &EndService, activators: &[ReplicaName]) -> Checked {
    let name = &service.name;
    if service.expected.is_some_and(|expected| expected != service.wanted) {
        let text = format!("{name} has {}, its twin {:?}", service.wanted, service.expected);
        return Err(CheckFailure::new(AS_THE_TWIN, text));
    }
    if PodCount::of(service.ready.len()) != service.wanted {
        let text = format!("{name} has {:?}, and {} were ordered", service.ready, service.wanted);
        return Err(CheckFailure::new(AS_ORDERED, text));
    }
    if let Some(known) = service.known.iter().find(|known| **known != service.ready) {
        let text = format!("{name} has {:?}, and an activator knows {known:?}", service.ready);
        return Err(CheckFailure::new(KNOWN_PODS, text));
    }
    if let Some(waiting) = service.waiting.iter().find(|waiting| waiting.has_free_slot) {
        let text = format!("{name}: for {:?} at {}", waiting.oldest, waiting.activator);
        return Err(CheckFailure::new(NOTHING_WAITS, text));
    }
    let named = service.route.as_ref().map(|route| &route.activators[..]);
    if named != Some(activators) {
        let text = format!("{name} leads to {named:?}, and {activators:?} are there");
        return Err(CheckFailure::new(ROUTED, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use vocabulary::Routing;

    use super::*;

    fn service() -> EndService {
        let activators = vec![ReplicaName::new("a"), ReplicaName::new("b")];
        let ready = BTreeSet::from([PodName::new("p")]);
        EndService {
            name: RevisionName::parse("default/service/hello").expect("a name"),
            wanted: PodCount::new(1),
            expected: Some(PodCount::new(1)),
            ready: ready.clone(),
            known: vec![ready.clone(), ready],
            route: Some(RouteInForce { routing: Routing::Direct, activators }),
            waiting: Vec::new(),
        }
    }

    fn judged(change: impl FnOnce(&mut EndService)) -> Option<&'static str> {
        let mut service = service();
        change(&mut service);
        let activators = vec![ReplicaName::new("a"), ReplicaName::new("b")];
        let scene = EndScene { services: vec![service], activators, ..EndScene::default() };
        judge(&scene).err().map(|failure| failure.check)
    }

    #[test]
    fn each_difference_from_a_world_at_rest_is_found() {
        assert_eq!(judged(|_| {}), None);
        assert_eq!(judged(|service| service.expected = Some(PodCount::new(2))), Some(AS_THE_TWIN));
        assert_eq!(judged(|service| service.expected = None), None);
        assert_eq!(judged(|service| drop(service.ready.pop_first())), Some(AS_ORDERED));
        assert_eq!(judged(|service| service.known[1].clear()), Some(KNOWN_PODS));
        assert_eq!(judged(|service| service.route = None), Some(ROUTED));
        let waits = |has_free_slot| WaitingAtEnd {
            activator: ReplicaName::new("a"),
            oldest: Duration::from_secs(1),
            has_free_slot,
        };
        assert_eq!(judged(|service| service.waiting.push(waits(true))), Some(NOTHING_WAITS));
        assert_eq!(judged(|service| service.waiting.push(waits(false))), None);
    }

    #[test]
    fn a_link_that_does_not_stand_is_found() {
        let link = EndLink { name: "owner 0 to activator 1".to_owned(), stands: false };
        let scene = EndScene { links: vec![link], ..EndScene::default() };
        assert_eq!(judge(&scene).map_err(|failure| failure.check), Err(LINKED));
    }
}
