//! News for whoever subscribed. What is to be said is remembered as names, not as messages: a slow subscriber gets the present
//! state when it is ready for it, and nothing grows meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use orchestration::{
    ActivatorFacts, Fence, OrderId, OrderOutcome, PlatformFact, PodFacts, PodFailure, Subject,
};
use scaling::ClusterConfig;
use tokio::sync::mpsc;
use vocabulary::{Epoch, Ownership, RevisionName};

use crate::supervisor::fleet::{Changes, Fleet};

/// What holds for the platform as a whole.
#[derive(Debug, Default)]
pub(crate) struct Surface {
    /// The ConfigMap that applies.
    pub(crate) cluster: Arc<ClusterConfig>,
    /// What is wrong with the files.
    pub(crate) problems: Vec<String>,
    /// The activators that exist.
    pub(crate) activators: Vec<ActivatorFacts>,
}

/// What is said of the platform as a whole, in the order in which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Whose everything is.
    Ownership,
    /// The ConfigMap.
    Config,
    /// The activators.
    Activators,
    /// The problems of the files.
    Problems,
    /// Everything that was there has been said.
    Synced,
}

/// What is still to be said, to whom.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    subscriber: Option<mpsc::Sender<PlatformFact>>,
    /// Grows with every subscriber, whose orders carry it.
    epoch: Epoch,
    topics: BTreeSet<Topic>,
    changes: Changes,
    said_pods: BTreeMap<RevisionName, Vec<PodFacts>>,
    said_failures: BTreeMap<RevisionName, PodFailure>,
    /// Revisions whose route a new subscriber has not heard yet.
    routes: BTreeSet<RevisionName>,
    /// How the subscriber's orders ended: as many as it gave since it last listened.
    outcomes: VecDeque<(OrderId, OrderOutcome)>,
}

impl Outbox {
    /// Nothing was said yet, after another process obeyed orders of this epoch.
    pub(crate) fn after(epoch: Epoch) -> Self {
        Self { epoch, ..Self::default() }
    }

    /// Of the orders that are obeyed.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Begins anew with a subscriber who knows nothing.
    pub(crate) fn subscribe(&mut self, subscriber: mpsc::Sender<PlatformFact>, fleet: &Fleet) {
        let all: BTreeSet<RevisionName> = fleet.names().cloned().collect();
        let changes = Changes {
            revisions: all.clone(),
            pods: all.clone(),
            failures: all.clone(),
            removed: BTreeSet::new(),
            rolled_out: Vec::new(),
        };
        *self = Self {
            subscriber: Some(subscriber),
            epoch: Epoch(self.epoch.0 + 1),
            topics: [Topic::Ownership, Topic::Config, Topic::Activators, Topic::Problems, Topic::Synced]
                .into(),
            changes,
            said_pods: BTreeMap::new(),
            said_failures: BTreeMap::new(),
            routes: all,
            outcomes: VecDeque::new(),
        };
    }

    /// Whether somebody listens.
    pub(crate) fn has_subscriber(&self) -> bool {
        self.subscriber.as_ref().is_some_and(|subscriber| !subscriber.is_closed())
    }

    /// Whether an order is the present subscriber's.
    pub(crate) fn is_in_force(&self, fence: Fence) -> bool {
        fence.epoch == self.epoch
    }

    /// An order ended. Whoever gave it may be gone; then nobody else is told.
    pub(crate) fn ended(&mut self, fence: Fence, order: OrderId, outcome: OrderOutcome) {
        if self.is_in_force(fence) && self.has_subscriber() {
            self.outcomes.push_back((order, outcome));
        }
    }

    /// These orders were replaced.
    pub(crate) fn superseded(&mut self, orders: Vec<(Fence, OrderId)>) {
        for (fence, order) in orders {
            self.ended(fence, order, OrderOutcome::Superseded);
        }
    }

    /// What holds for the whole platform changed.
    pub(crate) fn note_topic(&mut self, topic: Topic) {
        self.topics.insert(topic);
    }

    /// Revisions or pods changed.
    pub(crate) fn note(&mut self, changes: Changes) {
        for name in &changes.removed {
            self.changes.revisions.remove(name);
            self.changes.pods.remove(name);
            self.changes.failures.remove(name);
            self.said_pods.remove(name);
            self.said_failures.remove(name);
        }
        self.changes.removed.extend(changes.removed);
        self.changes.revisions.extend(changes.revisions);
        self.changes.pods.extend(changes.pods);
        self.changes.failures.extend(changes.failures);
    }

    /// Says as much as fits; true if something is left to be said when there is room.
    pub(crate) fn say(&mut self, fleet: &Fleet, surface: &Surface) -> bool {
        let Some(subscriber) = self.subscriber.clone() else {
            self.changes = Changes::default();
            return false;
        };
        loop {
            match subscriber.try_reserve() {
                Err(mpsc::error::TrySendError::Full(())) => return true,
                Err(mpsc::error::TrySendError::Closed(())) => {
                    self.subscriber = None;
                    return false;
                }
                Ok(room) => match self.next(fleet, surface) {
                    Some(event) => room.send(event),
                    None => return false,
                },
            }
        }
    }

    /// Returns when there is room for more, or nobody listens any more.
    pub(crate) async fn room(&self) {
        if let Some(subscriber) = &self.subscriber {
            let _ = subscriber.reserve().await;
        }
    }

    /// The next event. The order matters: settings before revisions, revisions before their pods, and all of it before `Synced`.
    fn next(&mut self, fleet: &Fleet, surface: &Surface) -> Option<PlatformFact> {
        if self.topics.remove(&Topic::Ownership) {
            return Some(PlatformFact::OwnershipChanged(Ownership::of_everything(self.epoch)));
        }
        if self.topics.remove(&Topic::Config) {
            return Some(PlatformFact::ConfigChanged(surface.cluster.clone()));
        }
        if let Some(name) = self.changes.removed.pop_first() {
            return Some(PlatformFact::RevisionRemoved(name));
        }
        while let Some(name) = self.changes.revisions.pop_first() {
            if let Some(facts) = fleet.facts(&name) {
                return Some(PlatformFact::RevisionChanged(Arc::new(facts)));
            }
        }
        while let Some(revision) = self.routes.pop_first() {
            if let Some(route) = fleet.route(&revision) {
                return Some(PlatformFact::RouteFound { revision, route });
            }
        }
        while let Some(revision) = self.changes.pods.pop_first() {
            let pods = fleet.pods(&revision);
            if let Some(pods) = pods.filter(|pods| self.said_pods.get(&revision) != Some(pods)) {
                self.said_pods.insert(revision.clone(), pods.clone());
                return Some(PlatformFact::PodsChanged { revision, pods });
            }
        }
        while let Some(revision) = self.changes.failures.pop_first() {
            let failure = fleet.last_failure(&revision);
            if let Some(failure) =
                failure.filter(|failure| self.said_failures.get(&revision) != Some(failure))
            {
                self.said_failures.insert(revision.clone(), failure.clone());
                return Some(PlatformFact::PodFailed { revision, failure: failure.clone() });
            }
        }
        if let Some((order, outcome)) = self.outcomes.pop_front() {
            return Some(PlatformFact::OrderEnded { order, outcome });
        }
        Some(match self.topics.pop_first()? {
            Topic::Ownership => PlatformFact::OwnershipChanged(Ownership::of_everything(self.epoch)),
            Topic::Config => PlatformFact::ConfigChanged(surface.cluster.clone()),
            Topic::Activators => PlatformFact::ActivatorsChanged(surface.activators.clone()),
            Topic::Problems => PlatformFact::ProblemsChanged {
                about: Subject::Configuration,
                problems: surface.problems.clone(),
            },
            Topic::Synced => PlatformFact::Synced,
        })
    }
}
