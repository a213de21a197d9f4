//! Everything that is known of revisions and pods, under the small ids that the multiscaler uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use scaling::{PodFact, PodPhase};
use serde::{Deserialize, Serialize};
use settings::{ClusterConfig, ScalingSpec};
use vocabulary::{
    Assignment, Departure, Epoch, Interner, PodCount, PodId, PodName, PodSettings, ReplicaId, RevisionId,
    RevisionName, Routing, SharedMap, Timestamp, Version,
};

use crate::departures::{LeaveTaking, end_first};
use crate::facts::{Entrance, PodFacts, PodFailure, PodKill, RevisionFacts};
use crate::host::HostSigns;
use crate::pod_record::PodRecord;
use crate::pod_start::{AskedPods, StartSteps};
use crate::readiness::HeardOfPod;
use crate::route_record::RouteRecord;

/// All revisions and pods, with the numbers that stand for their names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Registry {
    /// Whether the platform has said everything once.
    pub(crate) is_platform_synced: bool,
    revision_ids: Interner<RevisionName, RevisionId>,
    pod_ids: Interner<PodName, PodId>,
    pub(crate) revisions: BTreeMap<RevisionId, RevisionRecord>,
    /// The revision of each pod: a pod belongs to one.
    owners: BTreeMap<PodId, RevisionId>,
    /// When each pod was last heard.
    pub(crate) heard_at: SharedMap<PodId, Timestamp>,
}

/// A revision: its facts, its pods, and what was ordered and told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RevisionRecord {
    pub(crate) facts: Arc<RevisionFacts>,
    #[serde(with = "settings::whole_form")]
    pub(crate) spec: Arc<ScalingSpec>,
    /// Since when it is ours; `None` while it is not.
    pub(crate) epoch: Option<Epoch>,
    /// In the order of their names' ids; names decide in what people and activators see.
    pub(crate) pods: BTreeMap<PodId, PodRecord>,
    pub(crate) asked: AskedPods,
    /// Ordered by the multiscaler, or found in force; `None` until either.
    pub(crate) routing: Option<Routing>,
    pub(crate) surge_threshold: Option<u32>,
    /// What its queue-proxies were last told.
    pub(crate) settings: Option<Arc<PodSettings>>,
    /// What activators were last told, undivided.
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// The version with which an activator was last told to forget it.
    pub(crate) forgotten: Option<Version>,
    /// How many activators should serve it; all if fewer exist, and before that is known.
    pub(crate) activator_count: Option<PodCount>,
    /// Those that do, in the order of their names.
    pub(crate) members: Vec<ReplicaId>,
    /// Those of them that share the slots of its pods, in the order of their places.
    pub(crate) sharers: Vec<ReplicaId>,
    /// The version since which the activators are in the path; `None` while they are not.
    pub(crate) through_since: Option<Version>,
    /// What the multiscaler was last told of the path's acknowledgement.
    pub(crate) is_path_acknowledged: bool,
    pub(crate) route: RouteRecord,
    /// Entrances that it has no more, with the version that says so.
    pub(crate) former_entrances: BTreeMap<Entrance, Version>,
    /// How long the oldest request had waited at each activator, and when that was said.
    pub(crate) oldest_waits: BTreeMap<ReplicaId, (Duration, Timestamp)>,
    /// Why the platform does not scale it as it was told.
    pub(crate) scale_trouble: Option<String>,
    /// How a pod of it failed last.
    pub(crate) last_failure: Option<Arc<PodFailure>>,
    /// How a pod of it was killed last.
    pub(crate) last_kill: Option<Arc<PodKill>>,
}

impl Registry {
    pub(crate) fn revision_id(&self, name: &RevisionName) -> Option<RevisionId> {
        self.revision_ids.id(name)
    }

    /// A revision, under its name.
    pub(crate) fn named(&self, name: &RevisionName) -> Option<(RevisionId, &RevisionRecord)> {
        let id = self.revision_ids.id(name)?;
        Some((id, self.revisions.get(&id)?))
    }

    /// The same to be changed.
    pub(crate) fn named_mut(&mut self, name: &RevisionName) -> Option<(RevisionId, &mut RevisionRecord)> {
        let id = self.revision_ids.id(name)?;
        Some((id, self.revisions.get_mut(&id)?))
    }

    /// The revision of a number under which something was just found, is to be settled or is due. There
    /// always is one: what is noted under a number is forgotten with its revision.
    pub(crate) fn noted(&self, id: RevisionId) -> Option<&RevisionRecord> {
        let record = self.revisions.get(&id);
        debug_assert!(record.is_some(), "something is noted of revision {id:?}, which is gone");
        record
    }

    /// The same to be changed.
    pub(crate) fn noted_mut(&mut self, id: RevisionId) -> Option<&mut RevisionRecord> {
        let record = self.revisions.get_mut(&id);
        debug_assert!(record.is_some(), "something is noted of revision {id:?}, which is gone");
        record
    }

    /// A revision appeared or changed.
    pub(crate) fn put_revision(&mut self, record: RevisionRecord) -> RevisionId {
        let id = self.revision_ids.intern(&record.facts.name);
        match self.revisions.get_mut(&id) {
            Some(known) => {
                known.facts = record.facts;
                known.spec = record.spec;
            }
            None => {
                self.revisions.insert(id, record);
            }
        }
        id
    }

    /// A revision is gone, with its pods.
    pub(crate) fn remove_revision(&mut self, name: &RevisionName) -> Option<(RevisionId, RevisionRecord)> {
        let id = self.revision_ids.release(name)?;
        let revision = self.revisions.remove(&id)?;
        for (pod, record) in &revision.pods {
            self.forget_pod(*pod, &record.facts.name);
        }
        Some((id, revision))
    }

    /// All pods of a revision: takes in their facts, and returns those that are gone.
    pub(crate) fn put_pods(
        &mut self,
        id: RevisionId,
        pods: Vec<PodFacts>,
        now: Timestamp,
    ) -> Vec<(PodId, PodRecord)> {
        let Some(revision) = self.revisions.get_mut(&id) else { return Vec::new() };
        let mut before = std::mem::take(&mut revision.pods);
        for facts in pods {
            let pod_id = self.pod_ids.intern(&facts.name);
            // A pod that another revision claims already is a contradiction of the platform's; the first
            // claim stands.
            if *self.owners.entry(pod_id).or_insert(id) != id {
                continue;
            }
            let facts = Arc::new(facts);
            let mut pod = match before.remove(&pod_id) {
                Some(pod) => PodRecord { facts, ..pod },
                None => PodRecord::new(facts, StartSteps::known(revision.asked.came(), now)),
            };
            pod.note_start(now);
            revision.pods.insert(pod_id, pod);
        }
        for (pod, record) in &before {
            self.forget_pod(*pod, &record.facts.name);
        }
        before.into_iter().collect()
    }

    fn forget_pod(&mut self, id: PodId, name: &PodName) {
        self.owners.remove(&id);
        self.heard_at.remove(&id);
        self.pod_ids.release(name);
    }

    /// The number of pods of all revisions.
    pub(crate) fn pod_count(&self) -> usize {
        self.owners.len()
    }

    pub(crate) fn pod_mut(&mut self, revision: RevisionId, pod: PodId) -> Option<&mut PodRecord> {
        self.revisions.get_mut(&revision)?.pods.get_mut(&pod)
    }

    /// The same for a pod that was heard just now.
    pub(crate) fn heard_pod_mut(
        &mut self,
        revision: RevisionId,
        pod: PodId,
        now: Timestamp,
    ) -> Option<&mut PodRecord> {
        let record = self.revisions.get_mut(&revision)?.pods.get_mut(&pod)?;
        self.heard_at.insert(pod, now);
        Some(record)
    }
}

impl RevisionRecord {
    pub(crate) fn new(facts: Arc<RevisionFacts>, spec: Arc<ScalingSpec>) -> Self {
        Self {
            facts,
            spec,
            epoch: None,
            pods: BTreeMap::new(),
            asked: AskedPods::default(),
            routing: None,
            surge_threshold: None,
            settings: None,
            assignment: None,
            activator_count: None,
            members: Vec::new(),
            sharers: Vec::new(),
            forgotten: None,
            through_since: None,
            is_path_acknowledged: false,
            route: RouteRecord::default(),
            former_entrances: BTreeMap::new(),
            oldest_waits: BTreeMap::new(),
            scale_trouble: None,
            last_failure: None,
            last_kill: None,
        }
    }

    /// Why the platform does not do as it was told.
    pub(crate) fn order_trouble(&self) -> Option<&String> {
        self.scale_trouble.as_ref().or(self.route.trouble.as_ref())
    }

    /// It is not ours any more: what was ordered and told is another owner's affair from now on. The count is
    /// the one that the platform said last: an order that was given since may be refused, and that is not
    /// heard.
    pub(crate) fn give_up(&mut self) {
        let (facts, spec) = (Arc::clone(&self.facts), Arc::clone(&self.spec));
        let pods = std::mem::take(&mut self.pods);
        let pods = pods.into_iter().map(|(id, pod)| {
            // What was known of its host is known by a link.
            let heard = HeardOfPod { host: HostSigns::default(), ..pod.heard };
            (id, PodRecord { heard, link: None, leave: LeaveTaking::None, is_out: false, ..pod })
        });
        let (last_failure, last_kill) = (self.last_failure.take(), self.last_kill.take());
        *self = Self { pods: pods.collect(), last_failure, last_kill, ..Self::new(facts, spec) };
    }

    /// The routing in force: through activators until something else is known.
    pub(crate) fn routing(&self) -> Routing {
        self.routing.unwrap_or_default()
    }

    /// What its queue-proxies are to be told, without a version.
    pub(crate) fn pod_settings(&self, config: &ClusterConfig) -> PodSettings {
        PodSettings {
            version: Version::default(),
            surge_threshold: self.surge_threshold,
            routing: self.routing(),
            hop_keys: self.facts.hop_keys.clone(),
            departure: Departure::NotPlanned,
            adoption: None,
            head_size_limit: self.facts.settings.effective_head_size_limit(config),
            late: self.facts.timeouts.late,
        }
    }

    /// Its pods with what was heard of them, in the order of their names.
    pub(crate) fn pods_by_name(&self) -> Vec<(&PodFacts, &HeardOfPod)> {
        let mut pods: Vec<_> = self.pods.values().map(|pod| (&*pod.facts, &pod.heard)).collect();
        pods.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        pods
    }

    /// What the multiscaler hears of its pods.
    pub(crate) fn pod_facts(&self) -> Vec<PodFact> {
        self.pods.iter().map(|(&pod, record)| record.fact(pod)).collect()
    }

    /// Whether a pod can take requests.
    pub(crate) fn has_ready_pod(&self) -> bool {
        self.pods.values().any(PodRecord::takes_requests)
    }

    /// The pods to end first if only `count` may stay; none where the settings leave the choice to the
    /// platform.
    pub(crate) fn pods_to_end_first(&self, count: PodCount) -> Vec<PodName> {
        if !self.spec.idle_first_scale_down {
            return Vec::new();
        }
        let stays = |pod: &&PodRecord| !pod.facts.leaving && pod.facts.phase != PodPhase::Terminating;
        let staying = self.pods.values().filter(stays).count();
        end_first(self.pods_by_name().into_iter(), staying.saturating_sub(count.as_usize()))
    }

    /// The entrances that it has.
    pub(crate) fn entrances(&self) -> BTreeSet<Entrance> {
        self.facts.entrances.iter().cloned().collect()
    }
}
