//! Everything that the control loop knows, as it was at one point in time, for people and metrics.
//!
//! A [`ControlSnapshot`] is a value of its own: a reader keeps it as long as it likes, and the loop goes on.
//! Two snapshots share each revision that is the same in both. So that a revision at rest stays the same,
//! the two times that go on without anything else, when a pod was heard and when a decision was confirmed,
//! lie beside the revisions. An age is kept as the instant from which it counts; it
//! becomes an age at the moment of reading (`view.rs`).

use std::sync::Arc;
use std::time::Duration;

use scaling::hpa::HpaReport;
use scaling::{
    COLD_START_WORTH, DecisionJournal, PodPhase, PublishedForecast, PublishedHistory, RevisionStatus,
};
use settings::{ResourcePrices, ScalingSpec};
use vocabulary::{
    ExcessBurstCapacity, PodCount, PodId, PodState, RevisionId, RevisionName, SharedMap, Timestamp,
};

use crate::facts::{PodFacts, PodFailure, PodKill, RevisionFacts};
use crate::orders::Fence;
use crate::pod_lives::PodLives;
use crate::pod_start::StartSteps;
use crate::readiness::{HeardOfPod, LinkCondition, pod_state};

/// How long an activator's word on its oldest request is news: as long as a pod may be silent before it
/// counts as unheard.
const WAIT_IS_NEWS: Duration = Duration::from_secs(3);

/// All revisions, links and problems at one point in time.
#[derive(Clone, Debug, Default)]
pub struct ControlSnapshot {
    pub(crate) revisions: SharedMap<RevisionName, Arc<RevisionSnapshot>>,
    /// When each pod was last heard.
    pub(crate) heard_at: SharedMap<PodId, Timestamp>,
    /// When the latest decision of a revision was made again with the same end.
    pub(crate) confirmed_at: SharedMap<RevisionId, Timestamp>,
    pub(crate) activators: LinkTally,
    pub(crate) problems: Arc<[String]>,
    /// How many buckets there are.
    pub(crate) buckets: u16,
    pub(crate) prices: ResourcePrices,
    /// The worth of an avoided cold start, in time of one pod, for revisions that say nothing of it.
    pub(crate) cold_start_worth: Duration,
}

/// One revision at the point in time of a snapshot.
#[derive(Clone, Debug)]
pub struct RevisionSnapshot {
    pub(crate) id: RevisionId,
    /// When the revision was written: the time of the first snapshot that has it so.
    pub(crate) written_at: Timestamp,
    /// The revision as the platform knows it.
    pub facts: Arc<RevisionFacts>,
    /// Its settings with the cluster's defaults resolved.
    pub spec: Arc<ScalingSpec>,
    /// What was decided about it; `None` while another owner decides.
    pub decided: Option<DecidedState>,
    /// By what right we decide about it; `None` while another owner does.
    pub fence: Option<Fence>,
    /// In the order of their names.
    pub(crate) pods: Vec<KnownPod>,
    pub(crate) lives: Arc<PodLives>,
    /// Why the platform does not do as it was told.
    pub(crate) order_trouble: Option<String>,
    pub(crate) waits: Vec<OldestWait>,
    pub(crate) last_failure: Option<Arc<PodFailure>>,
    pub(crate) last_kill: Option<Arc<PodKill>>,
}

/// What was decided about a revision of ours.
#[derive(Clone, Debug)]
pub struct DecidedState {
    /// The state of its decisions.
    pub status: RevisionStatus,
    /// The last decisions about it.
    pub journal: DecisionJournal,
    /// What was measured of it and decided about it; `None` if it was never used. One more reference to what
    /// the multiscaler has: the next second that is measured copies what it writes into, less than 2 KB.
    pub history: Option<PublishedHistory>,
    /// What is expected of it; `None` where neither prediction nor a schedule is asked for.
    pub forecast: Option<Box<PublishedForecast>>,
    /// The last sync of class hpa; `None` for class kpa.
    pub hpa: Option<Box<HpaSnapshot>>,
    /// Values that may be unknown by now, for metrics.
    pub last_known: LastKnownValues,
}

/// Values of a revision as they were when they were last known; `None` for those that never were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastKnownValues {
    /// The count that the load called for, before bounds.
    pub desired: Option<PodCount>,
    /// The average over the stable window.
    pub stable_value: Option<f64>,
    /// The average over the panic window.
    pub panic_value: Option<f64>,
    /// The room for a burst after the last decision that changed something.
    pub excess_burst_capacity: Option<ExcessBurstCapacity>,
    /// Class hpa: the largest count that a metric asked for.
    pub hpa_asked: Option<PodCount>,
    /// Class hpa: the largest number by which a measured value was divided by its target.
    pub hpa_ratio: Option<f64>,
}

impl LastKnownValues {
    /// These values, and the former ones where these are unknown.
    #[must_use]
    pub(crate) fn or(self, former: Self) -> Self {
        Self {
            desired: self.desired.or(former.desired),
            stable_value: self.stable_value.or(former.stable_value),
            panic_value: self.panic_value.or(former.panic_value),
            excess_burst_capacity: self.excess_burst_capacity.or(former.excess_burst_capacity),
            hpa_asked: self.hpa_asked.or(former.hpa_asked),
            hpa_ratio: self.hpa_ratio.or(former.hpa_ratio),
        }
    }
}

/// What the last sync of a revision of class hpa says.
#[derive(Clone, Debug)]
pub struct HpaSnapshot {
    /// What stands in the status of a `HorizontalPodAutoscaler`.
    pub report: HpaReport,
    /// Each metric beside its target, in a few letters.
    pub beside_targets: String,
}

/// A pod, and what its link has told of it.
#[derive(Clone, Debug)]
pub(crate) struct KnownPod {
    pub(crate) id: PodId,
    pub(crate) facts: Arc<PodFacts>,
    pub(crate) heard: HeardOfPod,
    pub(crate) start: StartSteps,
}

/// How long the oldest request at one activator had waited when the activator said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldestWait {
    pub(crate) waited: Duration,
    pub(crate) said_at: Timestamp,
}

impl OldestWait {
    /// How long that request has waited by now; `None` if the word is old, or that no request waited.
    pub(crate) fn at(self, now: Timestamp) -> Option<Duration> {
        let age = now.saturating_since(self.said_at);
        (age < WAIT_IS_NEWS && self.waited > Duration::ZERO).then(|| self.waited + age)
    }
}

/// Links to those of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// To how many there should be one.
    pub expected: usize,
    /// The names of the peers without a link.
    pub down: Vec<String>,
}

impl RevisionSnapshot {
    /// A revision without pods, of which nothing was ordered.
    pub fn new(facts: Arc<RevisionFacts>, spec: Arc<ScalingSpec>, decided: Option<DecidedState>) -> Self {
        Self {
            id: RevisionId::default(),
            written_at: Timestamp::ZERO,
            facts,
            spec,
            decided,
            fence: None,
            pods: Vec::new(),
            lives: Arc::default(),
            order_trouble: None,
            waits: Vec::new(),
            last_failure: None,
            last_kill: None,
        }
    }
}

impl FromIterator<RevisionSnapshot> for ControlSnapshot {
    fn from_iter<Revisions: IntoIterator<Item = RevisionSnapshot>>(all: Revisions) -> Self {
        let mut revisions = SharedMap::default();
        for revision in all {
            revisions.insert(revision.facts.name.clone(), Arc::new(revision));
        }
        Self { revisions, cold_start_worth: COLD_START_WORTH, ..Self::default() }
    }
}

impl LinkTally {
    /// Each peer by its name, with whether its link is up.
    pub(crate) fn of<'a>(peers: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut tally = Self::default();
        for (name, is_up) in peers {
            tally.expected += 1;
            if !is_up {
                tally.down.push(name.to_owned());
            }
        }
        tally.down.sort();
        tally
    }
}

impl ControlSnapshot {
    /// All revisions that the platform knows, those of other owners too.
    pub fn revisions(&self) -> &SharedMap<RevisionName, Arc<RevisionSnapshot>> {
        &self.revisions
    }

    /// Links to activators that are not on their way out.
    pub fn links_to_activators(&self) -> &LinkTally {
        &self.activators
    }

    /// Links to pods that run and are not on their way out.
    pub fn links_to_pods(&self) -> LinkTally {
        let pods = self.revisions.values().flat_map(|revision| &revision.pods);
        let running = pods.filter(|pod| {
            pod.facts.phase == PodPhase::Running && !pod.facts.leaving && pod.facts.link.is_some()
        });
        LinkTally::of(running.map(|pod| (pod.facts.name.as_str(), pod.is_linked())))
    }

    /// The prices of what pods request.
    pub fn prices(&self) -> &ResourcePrices {
        &self.prices
    }

    /// The worth of an avoided cold start, in time of one pod, where a revision says nothing of it.
    pub fn cold_start_worth(&self) -> Duration {
        self.cold_start_worth
    }

    /// What is wrong with things as they were written.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl KnownPod {
    /// Whether its link carries frames, as far as the looks beside it tell.
    pub(crate) fn is_linked(&self) -> bool {
        self.heard.connection == LinkCondition::Up && self.heard.host.is_trusted()
    }

    pub(crate) fn state(&self) -> PodState {
        pod_state(&self.facts, &self.heard)
    }
}
