//! News for whoever subscribed. What is to be said is remembered as names, not as messages: a slow subscriber gets the present
//! state when it is ready for it, and nothing grows meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use platform::{ActivatorFacts, PlatformEvent, PodFacts, PodFailure};
use scaling::ClusterConfig;
use tokio::sync::mpsc;
use vocabulary::RevisionName;

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
    subscriber: Option<mpsc::Sender<PlatformEvent>>,
    topics: BTreeSet<Topic>,
    changes: Changes,
    said_pods: BTreeMap<RevisionName, Vec<PodFacts>>,
    said_failures: BTreeMap<RevisionName, PodFailure>,
}

impl Outbox {
    /// Begins anew with a subscriber who knows nothing.
    pub(crate) fn subscribe(&mut self, subscriber: mpsc::Sender<PlatformEvent>, fleet: &Fleet) {
        let all: BTreeSet<RevisionName> = fleet.names().cloned().collect();
        let changes =
            Changes { revisions: all.clone(), pods: all.clone(), failures: all, removed: BTreeSet::new() };
        *self = Self {
            subscriber: Some(subscriber),
            topics: [Topic::Config, Topic::Activators, Topic::Problems, Topic::Synced].into(),
            changes,
            said_pods: BTreeMap::new(),
            said_failures: BTreeMap::new(),
        };
    }

    /// Whether somebody listens.
    pub(crate) fn has_subscriber(&self) -> bool {
        self.subscriber.as_ref().is_some_and(|subscriber| !subscriber.is_closed())
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
    fn next(&mut self, fleet: &Fleet, surface: &Surface) -> Option<PlatformEvent> {
        if self.topics.remove(&Topic::Config) {
            return Some(PlatformEvent::ConfigChanged(surface.cluster.clone()));
        }
        if let Some(name) = self.changes.removed.pop_first() {
            return Some(PlatformEvent::RevisionRemoved(name));
        }
        while let Some(name) = self.changes.revisions.pop_first() {
            if let Some(facts) = fleet.facts(&name) {
                return Some(PlatformEvent::RevisionChanged(Arc::new(facts)));
            }
        }
        while let Some(revision) = self.changes.pods.pop_first() {
            let pods = fleet.pods(&revision);
            if let Some(pods) = pods.filter(|pods| self.said_pods.get(&revision) != Some(pods)) {
                self.said_pods.insert(revision.clone(), pods.clone());
                return Some(PlatformEvent::PodsChanged { revision, pods });
            }
        }
        while let Some(revision) = self.changes.failures.pop_first() {
            let failure = fleet.last_failure(&revision);
            if let Some(failure) =
                failure.filter(|failure| self.said_failures.get(&revision) != Some(failure))
            {
                self.said_failures.insert(revision.clone(), failure.clone());
                return Some(PlatformEvent::PodFailed { revision, failure: failure.clone() });
            }
        }
        Some(match self.topics.pop_first()? {
            Topic::Config => PlatformEvent::ConfigChanged(surface.cluster.clone()),
            Topic::Activators => PlatformEvent::ActivatorsChanged(surface.activators.clone()),
            Topic::Problems => PlatformEvent::ProblemsChanged(surface.problems.clone()),
            Topic::Synced => PlatformEvent::Synced,
        })
    }
}
