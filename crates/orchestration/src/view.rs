//! A revision as it stands, for people and metrics.

use std::time::Duration;

use scaling::hpa::HpaReport;
use scaling::{Decision, Multiscaler, PodPhase, RevisionStatus};
use settings::ScalingSpec;
use vocabulary::{LateBytes, Ownership, PodCount, PodState, RevisionId, Timestamp};

use crate::facts::{AppOutput, PodFacts, PodFailure, PodKill, RevisionFacts};
use crate::orders::Fence;
use crate::readiness::{pod_trouble, waiting_for};
use crate::registry::{PodRecord, RevisionRecord};
use crate::state::ControlState;

/// One revision at one point in time.
#[derive(Debug)]
pub struct RevisionView<'a> {
    record: &'a RevisionRecord,
    id: RevisionId,
    multiscaler: &'a Multiscaler,
    ownership: &'a Ownership,
    now: Timestamp,
    /// The state of its decisions at that time.
    pub status: RevisionStatus,
}

/// One pod at one point in time.
#[derive(Clone, Debug)]
pub struct PodSnapshot<'a> {
    /// As the platform knows it.
    pub facts: &'a PodFacts,
    /// The pod's state: whether it starts, takes requests or drains.
    pub state: PodState,
    /// Whether its link is up.
    pub is_linked: bool,
    /// Requests in it, averaged over its last second.
    pub in_flight: f64,
    /// Those that waited at the end of that second.
    pub queued: u32,
    /// What its app sent behind whole responses, while its connections are not used again for that.
    pub late_bytes: Option<LateBytes>,
    /// When it was last heard.
    pub heard_at: Option<Timestamp>,
    /// Why it is in trouble or not ready, for people.
    pub trouble: Option<String>,
}

/// Links to those of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// To how many there should be one.
    pub expected: usize,
    /// The names of the peers without a link.
    pub down: Vec<String>,
}

impl LinkTally {
    fn note(&mut self, name: &str, is_up: bool) {
        self.expected += 1;
        if !is_up {
            self.down.push(name.to_owned());
        }
    }
}

/// Links to activators that are not on their way out, and to pods that run and are not either.
pub(crate) fn links(state: &ControlState) -> (LinkTally, LinkTally) {
    let (mut activators, mut pods) = (LinkTally::default(), LinkTally::default());
    for (_, record) in state.activators.iter().filter(|(_, record)| !record.is_leaving()) {
        activators.note(record.facts.name.as_str(), record.is_told() && record.host.is_trusted());
    }
    let records = state.registry.revisions.values().flat_map(|revision| revision.pods.values());
    let running = |pod: &&PodRecord| {
        pod.facts.phase == PodPhase::Running && !pod.facts.leaving && pod.facts.link.is_some()
    };
    for pod in records.filter(running) {
        pods.note(pod.facts.name.as_str(), is_heard(pod));
    }
    for tally in [&mut activators, &mut pods] {
        tally.down.sort();
    }
    (activators, pods)
}

/// Whether a link carries frames, as far as the looks beside it tell.
fn is_heard(pod: &PodRecord) -> bool {
    pod.is_linked() && pod.heard.host.is_trusted()
}

impl<'a> RevisionView<'a> {
    pub(crate) fn of(
        id: RevisionId,
        record: &'a RevisionRecord,
        state: &'a ControlState,
        now: Timestamp,
    ) -> Option<Self> {
        let (multiscaler, ownership) = (&state.multiscaler, &state.ownership);
        Some(Self { record, id, multiscaler, ownership, now, status: multiscaler.status(id, now)? })
    }

    /// By what right we decide about it.
    pub fn fence(&self) -> Option<Fence> {
        let bucket = self.ownership.bucket_of(&self.record.facts.name);
        self.record.epoch.map(|epoch| Fence { bucket, epoch })
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> u16 {
        self.ownership.buckets
    }

    /// The point in time at which the revision is seen.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// As the platform knows it.
    pub fn facts(&self) -> &'a RevisionFacts {
        &self.record.facts
    }

    /// Its settings with the cluster's defaults resolved.
    pub fn spec(&self) -> &'a ScalingSpec {
        &self.record.spec
    }

    /// Its pods, in the order of their names.
    pub fn pods(&self, output: AppOutput) -> Vec<PodSnapshot<'a>> {
        let mut pods: Vec<_> = self.record.pods.values().map(|pod| pod_view(pod, output, self.now)).collect();
        pods.sort_by(|one, other| one.facts.name.cmp(&other.facts.name));
        pods
    }

    /// Links to those of its pods that are ready.
    pub fn links(&self) -> LinkTally {
        let mut tally = LinkTally::default();
        for pod in self.record.pods.values().filter(|pod| pod.takes_requests()) {
            tally.note(pod.facts.name.as_str(), is_heard(pod));
        }
        tally.down.sort();
        tally
    }

    /// How a pod of it failed last, if one has.
    pub fn last_failure(&self) -> Option<&'a PodFailure> {
        self.record.last_failure.as_ref()
    }

    /// How a pod of it was killed last, if one was.
    pub fn last_kill(&self) -> Option<&'a PodKill> {
        self.record.last_kill.as_ref()
    }

    /// Its last decisions, oldest first.
    pub fn decisions(&self) -> impl Iterator<Item = &'a Decision> {
        self.multiscaler.decisions(self.id)
    }

    /// Each of its metrics beside its target; `None` for class kpa.
    pub fn metrics_beside_targets(&self) -> Option<String> {
        self.multiscaler.metrics_beside_targets(self.id)
    }

    /// What the last sync says of itself; `None` for class kpa.
    pub fn hpa_report(&self) -> Option<HpaReport> {
        self.multiscaler.hpa_report(self.id)
    }

    /// How long the oldest request that waits has waited; `None` if none does, or no reporter said so lately.
    pub fn oldest_wait(&self) -> Option<Duration> {
        self.record.oldest_wait(self.now)
    }

    /// The pods whose starts wait until starts of others use less of the machine's cores.
    pub fn awaiting_core_pods(&self) -> PodCount {
        let pods = self.record.pods.values().filter(|pod| pod.facts.awaits_core);
        PodCount::new(u32::try_from(pods.count()).unwrap_or(u32::MAX))
    }

    /// Trouble of any pod is worth a word even while others serve; then why the platform does not do as it
    /// was told; beyond that, what the revision waits for if a pod is wanted. Starts that wait for a core
    /// are counted by themselves.
    pub fn why_not_ready(&self, output: AppOutput) -> Option<String> {
        let pods = self.record.pods_by_name();
        let trouble = pods
            .iter()
            .find_map(|(pod, heard)| Some(format!("pod {}: {}", pod.name, pod_trouble(pod, heard, output)?)));
        let waits = || {
            let text = waiting_for(self.record.wanted, output, pods.iter().copied());
            let is_said = self.record.wanted > PodCount::ZERO && self.awaiting_core_pods() == PodCount::ZERO;
            (is_said && !text.is_empty()).then(|| format!("waits for {text}"))
        };
        trouble.or_else(|| self.record.order_trouble().cloned()).or_else(waits)
    }
}

fn pod_view(pod: &PodRecord, output: AppOutput, now: Timestamp) -> PodSnapshot<'_> {
    PodSnapshot {
        facts: &pod.facts,
        state: pod.state(),
        is_linked: is_heard(pod),
        in_flight: pod.heard.load.concurrency.value(),
        queued: pod.heard.load.queued,
        late_bytes: pod.heard.late_bytes.and_then(|late| late.at(now)),
        heard_at: pod.heard_at,
        trouble: pod_trouble(&pod.facts, &pod.heard, output),
    }
}
