//! News for one that listens. What is to be said is remembered as names, not as messages: a slow subscriber
//! gets the present state when it is ready for it, and nothing grows meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use orchestration::{
    ActivatorFacts, OrderId, OrderOutcome, PlatformFact, PodFacts, PodFailure, PodKill, Subject,
};
use settings::ClusterConfig;
use tokio::sync::mpsc;
use vocabulary::{Ownership, RevisionName};

use crate::supervisor::fleet::{Changes, Fleet};

/// What holds for the platform as a whole.
#[derive(Debug, Default)]
pub(crate) struct PlatformStatus {
    /// The ConfigMap `config-autoscaler` that is in force.
    pub(crate) cluster: Arc<ClusterConfig>,
    /// What is wrong with the files.
    pub(crate) problems: Vec<String>,
    /// Problems of Services that their files alone do not show: limits and hosts that this machine cannot
    /// keep.
    pub(crate) service_problems: Vec<String>,
    /// Problems of this process that no file mends.
    standing_problems: Vec<String>,
    /// The activators of this process, and those of the process before it that still hold requests.
    pub(crate) activators: Vec<ActivatorFacts>,
}

impl PlatformStatus {
    pub(crate) fn of(cluster: Arc<ClusterConfig>, standing_problems: Vec<String>) -> Self {
        Self { cluster, standing_problems, ..Self::default() }
    }

    /// These are the problems of this process from now on; whether they are others than before.
    pub(crate) fn set_standing_problems(&mut self, problems: Vec<String>) -> bool {
        let is_news = self.standing_problems != problems;
        self.standing_problems = problems;
        is_news
    }

    fn all_problems(&self) -> Vec<String> {
        self.standing_problems.iter().chain(&self.problems).chain(&self.service_problems).cloned().collect()
    }
}

/// A problem of a Service. It begins as problems of objects do: with the kind, the namespace and the name.
pub(super) fn service_problem(service: &RevisionName, text: &str) -> String {
    format!("{} {}/{}: {text}", service.kind(), service.namespace(), service.name())
}

/// What is said of the platform as a whole, in the order in which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlatformTopic {
    /// The buckets that the subscriber owns.
    Ownership,
    /// The ConfigMap `config-autoscaler` that is in force.
    Config,
    Activators,
    /// The problems of the files.
    Problems,
    /// Everything that was there has been said.
    Synced,
}

/// The news that a subscriber has still to hear.
#[derive(Debug)]
pub(crate) struct FactOutbox {
    /// `None` once the subscriber listens no more.
    subscriber: Option<mpsc::Sender<PlatformFact>>,
    /// Whether something is left that had no room.
    is_full: bool,
    ownership: Ownership,
    topics: BTreeSet<PlatformTopic>,
    /// The names of what is still to be sent.
    changes: Changes,
    /// The pods of each revision as they were sent last, so that the same is not sent twice.
    sent_pods: BTreeMap<RevisionName, Vec<PodFacts>>,
    sent_failures: BTreeMap<RevisionName, PodFailure>,
    sent_kills: BTreeMap<RevisionName, PodKill>,
    /// Revisions whose route the subscriber has not heard, or only as it was before others ordered another.
    routes: BTreeSet<RevisionName>,
    /// How the subscriber's orders ended: as many as it gave since it last listened.
    outcomes: VecDeque<(OrderId, OrderOutcome)>,
}

impl FactOutbox {
    /// For a subscriber that knows nothing.
    pub(crate) fn new(subscriber: mpsc::Sender<PlatformFact>, ownership: Ownership, fleet: &Fleet) -> Self {
        // Everything counts as changed: a new subscriber knows nothing, and is told in the same way as
        // all others.
        let all: BTreeSet<RevisionName> = fleet.names().cloned().collect();
        let changes = Changes {
            revisions: all.clone(),
            pods: all.clone(),
            failures: all.clone(),
            kills: all.clone(),
            removed: BTreeSet::new(),
            rolled_out: Vec::new(),
        };
        Self {
            subscriber: Some(subscriber),
            is_full: false,
            ownership,
            topics: [
                PlatformTopic::Ownership,
                PlatformTopic::Config,
                PlatformTopic::Activators,
                PlatformTopic::Problems,
                PlatformTopic::Synced,
            ]
            .into(),
            changes,
            sent_pods: BTreeMap::new(),
            sent_failures: BTreeMap::new(),
            sent_kills: BTreeMap::new(),
            routes: all,
            outcomes: VecDeque::new(),
        }
    }

    /// Whether the subscriber still receives what is sent to it.
    pub(crate) fn is_connected(&self) -> bool {
        self.subscriber.as_ref().is_some_and(|subscriber| !subscriber.is_closed())
    }

    /// What the subscriber owns from now on; whether that is another than before. Counts and routes of what
    /// it gains are another owner's work, of which it has not been told.
    pub(crate) fn set_ownership(&mut self, ownership: Ownership, fleet: &Fleet) -> bool {
        if self.ownership == ownership {
            return false;
        }
        // Of a bucket that it had, with the same epoch, it knows everything. With another epoch another owner
        // may have decided in between.
        let is_gained = |name: &&RevisionName| {
            ownership.epoch_of(name).is_some_and(|epoch| self.ownership.epoch_of(name) != Some(epoch))
        };
        let gained: Vec<RevisionName> = fleet.names().filter(is_gained).cloned().collect();
        self.changes.revisions.extend(gained.iter().cloned());
        self.routes.extend(gained);
        self.ownership = ownership;
        self.topics.insert(PlatformTopic::Ownership);
        true
    }

    /// Notes how an order of the subscriber ended.
    pub(crate) fn order_ended(&mut self, order: OrderId, outcome: OrderOutcome) {
        // A subscriber that does not listen any more has given no order that could matter to it, and the list
        // would only grow.
        if self.is_connected() {
            self.outcomes.push_back((order, outcome));
        }
    }

    /// What holds for the whole platform changed.
    pub(crate) fn note_topic(&mut self, topic: PlatformTopic) {
        self.topics.insert(topic);
    }

    /// Notes the names of revisions that changed, or of which pods did.
    pub(crate) fn note_changes(&mut self, changes: &Changes) {
        // What was changed before it was removed is not said: a slow subscriber hears of the end alone. What
        // was said of it is forgotten, so that a revision of the same name begins with nothing.
        for name in &changes.removed {
            self.changes.revisions.remove(name);
            self.changes.pods.remove(name);
            self.changes.failures.remove(name);
            self.changes.kills.remove(name);
            self.sent_pods.remove(name);
            self.sent_failures.remove(name);
            self.sent_kills.remove(name);
        }
        let add =
            |to: &mut BTreeSet<RevisionName>, more: &BTreeSet<RevisionName>| to.extend(more.iter().cloned());
        add(&mut self.changes.removed, &changes.removed);
        add(&mut self.changes.revisions, &changes.revisions);
        add(&mut self.changes.pods, &changes.pods);
        add(&mut self.changes.failures, &changes.failures);
        add(&mut self.changes.kills, &changes.kills);
    }

    /// Says as much as fits; true if something is left to be said when there is room.
    pub(crate) fn deliver(&mut self, fleet: &Fleet, status: &PlatformStatus) -> bool {
        self.is_full = self.deliver_what_fits(fleet, status);
        self.is_full
    }

    /// Whether something was left to be said when there was no more room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    fn deliver_what_fits(&mut self, fleet: &Fleet, status: &PlatformStatus) -> bool {
        // No subscriber listens, and a new one is told everything in an outbox of its own.
        let Some(subscriber) = self.subscriber.clone() else {
            self.changes = Changes::default();
            return false;
        };
        loop {
            // Room first, then the event. Names wait here and not events, so that a subscriber that is slow
            //
            //     change, change, change  -->  one name  -->  what is true when there is room
            //
            // gets the latest of each revision, and this holds no more than there are revisions, however slow
            // it is.
            match subscriber.try_reserve() {
                Err(mpsc::error::TrySendError::Full(())) => return true,
                Err(mpsc::error::TrySendError::Closed(())) => {
                    self.subscriber = None;
                    return false;
                }
                Ok(room) => match self.next(fleet, status) {
                    Some(event) => room.send(event),
                    None => return false,
                },
            }
        }
    }

    /// Returns when there is room for more, or the subscriber listens no more.
    pub(crate) async fn wait_for_room(&self) {
        if let Some(subscriber) = &self.subscriber {
            let _ = subscriber.reserve().await;
        }
    }

    /// The next event. The order matters: settings before revisions, revisions with their counts and routes
    /// before they are the subscriber's, then their pods, and all of it before `Synced`.
    fn next(&mut self, fleet: &Fleet, status: &PlatformStatus) -> Option<PlatformFact> {
        if self.topics.remove(&PlatformTopic::Config) {
            return Some(PlatformFact::ConfigChanged(status.cluster.clone()));
        }
        if let Some(name) = self.changes.removed.pop_first() {
            return Some(PlatformFact::RevisionRemoved(name));
        }
        // It may be gone again since it was noted. Then its removal is on its way, and there is nothing to
        // show.
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
        if self.topics.remove(&PlatformTopic::Ownership) {
            return Some(PlatformFact::OwnershipChanged(self.ownership.clone()));
        }
        while let Some(revision) = self.changes.pods.pop_first() {
            let pods = fleet.pods(&revision);
            // Every look at a revision notes its pods, and mostly nothing about them has changed.
            if let Some(pods) = pods.filter(|pods| self.sent_pods.get(&revision) != Some(pods)) {
                self.sent_pods.insert(revision.clone(), pods.clone());
                return Some(PlatformFact::PodsChanged { revision, pods });
            }
        }
        while let Some(revision) = self.changes.failures.pop_first() {
            let failure = fleet.last_failure(&revision);
            if let Some(failure) =
                failure.filter(|failure| self.sent_failures.get(&revision) != Some(failure))
            {
                self.sent_failures.insert(revision.clone(), failure.clone());
                return Some(PlatformFact::PodFailed { revision, failure: failure.clone() });
            }
        }
        while let Some(revision) = self.changes.kills.pop_first() {
            let kill = fleet.last_kill(&revision);
            if let Some(kill) = kill.filter(|kill| self.sent_kills.get(&revision) != Some(kill)) {
                self.sent_kills.insert(revision.clone(), kill.clone());
                return Some(PlatformFact::PodKilled { revision, kill: kill.clone() });
            }
        }
        if let Some((order, outcome)) = self.outcomes.pop_front() {
            return Some(PlatformFact::OrderEnded { order, outcome });
        }
        Some(match self.topics.pop_first()? {
            PlatformTopic::Ownership => PlatformFact::OwnershipChanged(self.ownership.clone()),
            PlatformTopic::Config => PlatformFact::ConfigChanged(status.cluster.clone()),
            PlatformTopic::Activators => PlatformFact::ActivatorsChanged(status.activators.clone()),
            PlatformTopic::Problems => PlatformFact::ProblemsChanged {
                about: Subject::Configuration,
                problems: status.all_problems(),
            },
            PlatformTopic::Synced => PlatformFact::Synced,
        })
    }
}
