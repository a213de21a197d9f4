//! What would an owner that takes over now be told?
//!
//! A record is read from a keyframe on, so a keyframe holds what a platform would tell a new subscriber and
//! what each peer would say on a new connection. It is gathered from the entries of a record alone, beside
//! the event loop: a keyframe costs the loop nothing. Not part of it: windows that were filled before the
//! last minute, memories of class hpa, and histories: those of revisions that predict are beside it
//! (`keyframe_histories`), and from others nothing is decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{
    ActivatorFacts, ControlCommand, ControlEvent, LinkId, LinkNews, Order, OrderId, OrderOutcome,
    PlatformFact, PodFacts, RevisionFacts, RouteInForce,
};
use scaling::RevisionOrigin;
use settings::ClusterConfig;
use vocabulary::{Ownership, PodCount, RevisionName, Routing, Timestamp};

use crate::entry::{RecordEntry, RecordInput};
use crate::last_words::LastWords;
use crate::outcome::errand_hash;
use crate::peers::PeerName;
use crate::record_time::WallClockReading;

/// Facts, links, orders under way and last words.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWorld {
    pub(crate) wall_clock: Option<WallClockReading>,
    pub(crate) links: BTreeMap<LinkId, PeerName>,
    pub(crate) last_words: LastWords,
    config: Option<Arc<ClusterConfig>>,
    ownership: Option<Ownership>,
    revisions: BTreeMap<RevisionName, Arc<RevisionFacts>>,
    pods: BTreeMap<RevisionName, Vec<PodFacts>>,
    routes: BTreeMap<RevisionName, RouteInForce>,
    activators: Option<Vec<ActivatorFacts>>,
    is_synced: bool,
    orders: BTreeMap<OrderId, OrderUnderWay>,
}

/// An order whose end was not told yet.
#[derive(Clone, Debug)]
struct OrderUnderWay {
    errand: u64,
    effect: OrderEffect,
}

/// What is written once an order is done.
#[derive(Clone, Debug)]
enum OrderEffect {
    Count(RevisionName, PodCount),
    Route(RevisionName, RouteInForce),
    /// Nothing that an owner would be told.
    None,
}

impl KnownWorld {
    /// Takes in a call with its commands.
    pub(crate) fn note(&mut self, entry: &RecordEntry) {
        match &entry.input {
            RecordInput::Event(event) => self.note_event(event, entry.at),
            RecordInput::Advance | RecordInput::State(_) => {}
        }
        for command in &entry.commands {
            self.note_command(command);
        }
    }

    /// The facts that a new subscriber would be told, in their order.
    pub(crate) fn facts(&self) -> Vec<PlatformFact> {
        let config = self.config.clone().map(PlatformFact::ConfigChanged);
        let ownership = self.ownership.clone().map(PlatformFact::OwnershipChanged);
        // Whatever it was at first: an owner that takes over finds a revision as it is.
        let revisions = self.revisions.values().map(|facts| {
            let found = RevisionFacts { origin: RevisionOrigin::Found, ..RevisionFacts::clone(facts) };
            PlatformFact::RevisionChanged(Arc::new(found))
        });
        let pods = self.pods.iter().map(|(revision, pods)| PlatformFact::PodsChanged {
            revision: revision.clone(),
            pods: pods.clone(),
        });
        let routes = self.routes.iter().map(|(revision, route)| PlatformFact::RouteFound {
            revision: revision.clone(),
            route: route.clone(),
        });
        let activators = self.activators.clone().map(PlatformFact::ActivatorsChanged);
        let synced = self.is_synced.then_some(PlatformFact::Synced);
        let first = config.into_iter().chain(ownership);
        first.chain(revisions).chain(pods).chain(routes).chain(activators).chain(synced).collect()
    }

    /// Each order whose end was not told yet, with the hash of its errand.
    pub(crate) fn orders(&self) -> impl Iterator<Item = (OrderId, u64)> {
        self.orders.iter().map(|(&id, order)| (id, order.errand))
    }

    fn note_event(&mut self, event: &ControlEvent, now: Timestamp) {
        match event {
            ControlEvent::Platform(fact) => self.note_fact(fact),
            ControlEvent::PodSpoke { link, word } => {
                if let Some(PeerName::Pod(name)) = self.links.get(link) {
                    self.last_words.pod_spoke(name, word);
                }
            }
            ControlEvent::ActivatorSpoke { link, word } => {
                if let Some(PeerName::Activator(name)) = self.links.get(link) {
                    self.last_words.activator_spoke(name, word);
                }
            }
            ControlEvent::LinkChanged { link, news } => self.note_link(*link, news),
            ControlEvent::WallClockRead { since_epoch } => {
                self.wall_clock = Some(WallClockReading::new(now, *since_epoch));
            }
            // Zones are read again with the next reading of the wall clock.
            ControlEvent::MetricsAnswered { .. }
            | ControlEvent::ZoneRead { .. }
            | ControlEvent::HistoryRestored { .. }
            | ControlEvent::DemandImported { .. } => {}
        }
    }

    fn note_link(&mut self, link: LinkId, news: &LinkNews) {
        match news {
            LinkNews::Lost | LinkNews::Refused => {
                if let Some(peer) = self.links.get(&link) {
                    self.last_words.forget(peer);
                }
            }
            LinkNews::Blocked(_) | LinkNews::Unreachable { .. } | LinkNews::Accepting => {}
        }
    }

    fn note_fact(&mut self, fact: &PlatformFact) {
        match fact {
            PlatformFact::ConfigChanged(config) => self.config = Some(Arc::clone(config)),
            PlatformFact::OwnershipChanged(ownership) => self.ownership = Some(ownership.clone()),
            PlatformFact::RevisionChanged(facts) => {
                self.revisions.insert(facts.name.clone(), Arc::clone(facts));
            }
            PlatformFact::RevisionRemoved(name) | PlatformFact::RevisionGivenBack(name) => {
                self.revisions.remove(name);
                self.pods.remove(name);
                self.routes.remove(name);
            }
            PlatformFact::PodsChanged { revision, pods } => {
                self.pods.insert(revision.clone(), pods.clone());
            }
            PlatformFact::ActivatorsChanged(activators) => self.activators = Some(activators.clone()),
            PlatformFact::RouteFound { revision, route } => {
                self.routes.insert(revision.clone(), route.clone());
            }
            PlatformFact::OrderEnded { order, outcome } => self.note_order_end(*order, outcome),
            PlatformFact::Synced => self.is_synced = true,
            // These are shown to people, and nothing is decided from them.
            PlatformFact::ProblemsChanged { .. }
            | PlatformFact::PodFailed { .. }
            | PlatformFact::PodKilled { .. } => {}
        }
    }

    fn note_order_end(&mut self, order: OrderId, outcome: &OrderOutcome) {
        match outcome {
            OrderOutcome::Retrying(_) => {}
            OrderOutcome::Done => match self.orders.remove(&order).map(|order| order.effect) {
                Some(OrderEffect::Count(revision, count)) => self.note_count(&revision, count),
                Some(OrderEffect::Route(revision, route)) => {
                    self.routes.insert(revision, route);
                }
                Some(OrderEffect::None) | None => {}
            },
            OrderOutcome::Superseded
            | OrderOutcome::Conflict { .. }
            | OrderOutcome::Gone
            | OrderOutcome::NotOwner
            | OrderOutcome::Refused(_)
            | OrderOutcome::Forbidden(_) => drop(self.orders.remove(&order)),
        }
    }

    /// A platform that is asked says the count that was written last.
    fn note_count(&mut self, revision: &RevisionName, count: PodCount) {
        if let Some(facts) = self.revisions.get_mut(revision).filter(|facts| facts.wanted != count) {
            *facts = Arc::new(RevisionFacts { wanted: count, ..RevisionFacts::clone(facts) });
        }
    }

    fn note_command(&mut self, command: &ControlCommand) {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => {
                self.links.insert(*link, peer.into());
            }
            ControlCommand::CloseLink { link } => {
                if let Some(peer) = self.links.remove(link) {
                    self.last_words.forget(&peer);
                }
            }
            ControlCommand::Sync { activator, assignments, .. } => {
                for assignment in assignments {
                    self.note_assignment(*activator, &assignment.revision, assignment.routing);
                }
            }
            ControlCommand::Assign { activator, assignment, .. } => {
                self.note_assignment(*activator, &assignment.revision, assignment.routing);
            }
            ControlCommand::Unassign { activator, revision, .. } => {
                if let Some(PeerName::Activator(name)) = self.links.get(activator) {
                    self.last_words.unassigned(name, revision);
                }
            }
            ControlCommand::Order(order) => {
                let (errand, effect) = (errand_hash(&order.what.errand()), effect_of(&order.what));
                self.orders.insert(order.id, OrderUnderWay { errand, effect });
            }
            ControlCommand::TellPod { .. }
            | ControlCommand::ReleaseActivator { .. }
            | ControlCommand::AskMetrics { .. }
            | ControlCommand::Publish { .. } => {}
        }
    }

    fn note_assignment(&mut self, link: LinkId, revision: &RevisionName, routing: Routing) {
        if let Some(PeerName::Activator(name)) = self.links.get(&link) {
            self.last_words.assigned(name, revision, routing);
        }
    }
}

fn effect_of(order: &Order) -> OrderEffect {
    match order {
        Order::ScaleTo { revision, to, .. } => OrderEffect::Count(revision.clone(), *to),
        Order::Route { revision, routing, activators } => {
            let route = RouteInForce { routing: *routing, activators: activators.clone() };
            OrderEffect::Route(revision.clone(), route)
        }
        Order::ReleasePod { .. }
        | Order::NoteDrained { .. }
        | Order::ReleaseEntrance { .. }
        | Order::NotePodState { .. }
        | Order::NotePodReach { .. }
        | Order::Tell { .. } => OrderEffect::None,
    }
}
