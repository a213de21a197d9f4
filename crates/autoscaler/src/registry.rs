//! Everything the autoscaler knows of revisions, pods and activators, under the small ids that the multiscaler uses.

use std::collections::BTreeMap;
use std::sync::Arc;

use link::PodOrder;
use platform::{PodFacts, PodFailure, RevisionFacts};
use scaling::{PodFact, PodPhase, ScalingSpec};
use vocabulary::{
    Assignment, Departure, Interner, PodCount, PodId, PodName, PodSettings, PodState, ReplicaId, ReplicaName,
    RevisionId, RevisionName, Routing, Timestamp, Version,
};

use crate::assigner::{Heard, pod_state};
use crate::links::{ActivatorLink, LinkId, PodLink};

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    revision_ids: Interner<RevisionName, RevisionId>,
    pod_ids: Interner<PodName, PodId>,
    activator_ids: Interner<ReplicaName, ReplicaId>,
    pub(crate) revisions: BTreeMap<RevisionId, Revision>,
    pub(crate) activators: BTreeMap<ReplicaId, ActivatorLink>,
    /// Whose each pod is.
    owners: BTreeMap<PodId, RevisionId>,
    peers: BTreeMap<LinkId, Peer>,
}

/// Who is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Pod(RevisionId, PodId),
    Activator(ReplicaId),
}

/// Whether the link that a new one replaces was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Former {
    WasUp,
    WasDown,
}

/// One revision.
#[derive(Debug)]
pub(crate) struct Revision {
    pub(crate) facts: Arc<RevisionFacts>,
    pub(crate) spec: Arc<ScalingSpec>,
    /// The replica count: what we ordered last, or what the platform said since.
    pub(crate) wanted: PodCount,
    /// In the order of their names' ids; names decide in what people and activators see.
    pub(crate) pods: BTreeMap<PodId, Pod>,
    /// Ordered by the multiscaler, or found in force; `None` until either.
    pub(crate) routing: Option<Routing>,
    pub(crate) surge_threshold: Option<u32>,
    /// What activators were last told.
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// The version since which the activators are in the path; `None` while they are not.
    pub(crate) through_since: Option<Version>,
    /// What the multiscaler was last told of the path's acknowledgement.
    pub(crate) path_acknowledged: bool,
    /// How a pod of it failed last.
    pub(crate) last_failure: Option<PodFailure>,
}

/// One pod.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) facts: PodFacts,
    pub(crate) heard: Heard,
    pub(crate) heard_at: Option<Timestamp>,
    pub(crate) link: Option<PodLink>,
    pub(crate) leaving: Leaving,
}

/// How far a pod's leave-taking has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It stays.
    #[default]
    No,
    /// The version says so; it goes when that is acknowledged, at the latest then.
    Since { version: Version, at_the_latest: Timestamp },
    /// The platform was told that it may end.
    Released,
}

impl Registry {
    pub(crate) fn revision_id(&self, name: &RevisionName) -> Option<RevisionId> {
        self.revision_ids.id(name)
    }

    pub(crate) fn revision_mut(&mut self, name: &RevisionName) -> Option<&mut Revision> {
        self.revisions.get_mut(&self.revision_ids.id(name)?)
    }

    pub(crate) fn activator_id(&self, name: &ReplicaName) -> Option<ReplicaId> {
        self.activator_ids.id(name)
    }

    /// A revision appeared or changed.
    pub(crate) fn put_revision(
        &mut self,
        facts: Arc<RevisionFacts>,
        wanted: PodCount,
        spec: Arc<ScalingSpec>,
    ) -> RevisionId {
        let id = self.revision_ids.intern(&facts.name);
        match self.revisions.get_mut(&id) {
            Some(revision) => {
                revision.wanted = wanted;
                revision.facts = facts;
                revision.spec = spec;
            }
            None => {
                self.revisions.insert(id, Revision::new(facts, wanted, spec));
            }
        }
        id
    }

    /// A revision is gone, with its pods and their links.
    pub(crate) fn remove_revision(&mut self, name: &RevisionName) -> Option<(RevisionId, Revision)> {
        let id = self.revision_ids.release(name)?;
        let revision = self.revisions.remove(&id)?;
        for (&pod, record) in &revision.pods {
            self.forget_pod(pod, record);
        }
        Some((id, revision))
    }

    /// All pods of a revision: takes in their facts, forgets those that are gone.
    pub(crate) fn put_pods(&mut self, id: RevisionId, pods: Vec<PodFacts>) {
        let Some(revision) = self.revisions.get_mut(&id) else { return };
        let mut before = std::mem::take(&mut revision.pods);
        for facts in pods {
            let pod_id = self.pod_ids.intern(&facts.name);
            // A pod that another revision claims already is a contradiction of the platform's; the first claim stands.
            if *self.owners.entry(pod_id).or_insert(id) != id {
                continue;
            }
            let pod = match before.remove(&pod_id) {
                Some(pod) => Pod { facts, ..pod },
                None => Pod::new(facts),
            };
            revision.pods.insert(pod_id, pod);
        }
        for (pod, record) in before {
            self.forget_pod(pod, &record);
        }
    }

    fn forget_pod(&mut self, id: PodId, pod: &Pod) {
        self.owners.remove(&id);
        self.pod_ids.release(&pod.facts.name);
        if let Some(link) = &pod.link {
            self.peers.remove(&link.id);
        }
    }

    /// A pod's link is opened, replaced or ended.
    pub(crate) fn set_pod_link(&mut self, revision: RevisionId, pod: PodId, link: Option<PodLink>) -> Former {
        let Some(record) = self.revisions.get_mut(&revision).and_then(|revision| revision.pods.get_mut(&pod))
        else {
            return Former::WasDown;
        };
        if let Some(former) = &record.link {
            self.peers.remove(&former.id);
        }
        if let Some(link) = &link {
            self.peers.insert(link.id, Peer::Pod(revision, pod));
        }
        record.link = link;
        if std::mem::take(&mut record.heard.is_linked) { Former::WasUp } else { Former::WasDown }
    }

    /// An activator appeared, or is linked anew.
    pub(crate) fn put_activator(&mut self, name: &ReplicaName, link: ActivatorLink) -> ReplicaId {
        let id = self.activator_ids.intern(name);
        self.peers.insert(link.id, Peer::Activator(id));
        if let Some(former) = self.activators.insert(id, link) {
            self.peers.remove(&former.id);
        }
        id
    }

    /// All activators but these are gone; returns them.
    pub(crate) fn retain_activators(&mut self, names: &[ReplicaName]) -> Vec<ReplicaId> {
        let gone: Vec<(ReplicaName, ReplicaId)> = (self.activator_ids.iter())
            .filter(|(name, _)| !names.contains(name))
            .map(|(name, id)| (name.clone(), id))
            .collect();
        for (name, id) in &gone {
            self.activator_ids.release(name);
            if let Some(link) = self.activators.remove(id) {
                self.peers.remove(&link.id);
            }
        }
        gone.into_iter().map(|(_, id)| id).collect()
    }

    /// Whose link this is; `None` if it was ended.
    pub(crate) fn peer(&self, link: LinkId) -> Option<Peer> {
        self.peers.get(&link).copied()
    }

    pub(crate) fn pod_mut(&mut self, revision: RevisionId, pod: PodId) -> Option<&mut Pod> {
        self.revisions.get_mut(&revision)?.pods.get_mut(&pod)
    }
}

impl Revision {
    fn new(facts: Arc<RevisionFacts>, wanted: PodCount, spec: Arc<ScalingSpec>) -> Self {
        Self {
            wanted,
            facts,
            spec,
            pods: BTreeMap::new(),
            routing: None,
            surge_threshold: None,
            assignment: None,
            through_since: None,
            path_acknowledged: false,
            last_failure: None,
        }
    }

    /// The routing in force: through activators until something else is known.
    pub(crate) fn routing(&self) -> Routing {
        self.routing.unwrap_or_default()
    }

    /// What its queue-proxies are told.
    pub(crate) fn settings(&self) -> PodOrder {
        PodOrder::Settings(Arc::new(PodSettings {
            version: Version::default(),
            surge_threshold: self.surge_threshold,
            routing: self.routing(),
            hop_keys: self.facts.hop_keys.clone(),
            departure: Departure::NotPlanned,
        }))
    }

    /// Its pods with what was heard of them, in the order of their names.
    pub(crate) fn pods_by_name(&self) -> Vec<(&PodFacts, &Heard)> {
        let mut pods: Vec<_> = self.pods.values().map(|pod| (&pod.facts, &pod.heard)).collect();
        pods.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        pods
    }

    /// What the multiscaler hears of its pods.
    pub(crate) fn pod_facts(&self) -> Vec<PodFact> {
        self.pods.iter().map(|(&pod, record)| record.fact(pod)).collect()
    }

    /// Pods that stay.
    pub(crate) fn staying(&self) -> PodCount {
        PodCount::of(
            self.pods
                .values()
                .filter(|pod| !pod.facts.leaving && pod.facts.phase != PodPhase::Terminating)
                .count(),
        )
    }
}

impl Pod {
    fn new(facts: PodFacts) -> Self {
        Self { facts, heard: Heard::default(), heard_at: None, link: None, leaving: Leaving::No }
    }

    /// What the multiscaler hears of it. One that is to leave counts as leaving, whatever it still does.
    pub(crate) fn fact(&self, pod: PodId) -> PodFact {
        let phase = if self.facts.leaving { PodPhase::Terminating } else { self.facts.phase };
        PodFact { pod, phase, is_ready: pod_state(&self.facts, &self.heard) == PodState::Ready }
    }
}
