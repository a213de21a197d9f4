//! Class hpa of one revision: when are its metrics asked, and what is known of its pods when they have
//! answered?
//!
//! Every sync period each metric gives its values: what pods use comes with their load every second and is at
//! hand, the deciders of our own metrics have looked a moment ago, and everything else is asked for first
//! ([`super::Command::AskMetrics`]); the sync waits for those answers, but not for long. What is decided
//! stands until the next sync, except that requests may raise it in between, and end a way to zero that is
//! under way.

mod pods;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use settings::hpa::{HpaScaling, MetricSpec, ResourceName, UsageSource};
use vocabulary::{MilliValue, PodCount, PodId, ResourceUsage, Timestamp};

pub(super) use self::pods::HpaPodBook;
use super::beginning::RevisionBeginning;
use super::{PodFact, RevisionOrigin, ScaleEnding};
use crate::decider::Observation;
use crate::decision::{Reason, Stage, StandingText};
use crate::hpa::{
    ConditionReason, CountChange, HpaReport, HpaWarning, MetricAnswers, MetricFailure, MetricSamples,
    MixedDecider, MixedObservation, NoProposal, RescaleMemory, Scale, Selection, TargetPods, cpu_in_use,
    leave_out_early_pods, metrics_beside_targets,
};

/// How long answers are waited for: less than the usual sync period, so that a source that is slow to fail
/// delays no sync but its own.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Class hpa of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HpaScaler {
    settings: Arc<HpaScaling>,
    deciders: MixedDecider,
    pods: HpaPodBook,
    /// For each metric of the document, what was last answered.
    answers: Vec<MetricSamples>,
    /// The pods that were answered with them.
    target: Option<TargetPods>,
    /// What all pods together used of the processors at the last sync, where the document asks for that.
    cpu: Option<MilliValue>,
    /// The warnings of the last sync.
    warnings: Vec<HpaWarning>,
    /// The last change that was ordered, while it may still fail.
    last_order: Option<LastOrder>,
    desired: Option<PodCount>,
    reasons: Vec<Reason>,
    sync: Sync,
    rounds: u64,
}

/// A change of the count that was ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LastOrder {
    change: CountChange,
    /// The state before the change, which is restored if the order fails.
    before: RescaleMemory,
    has_failed: bool,
}

/// Between two syncs, or in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sync {
    /// The next one begins then.
    At(Timestamp),
    /// This round of questions is under way.
    Asking { until: Timestamp, next: Timestamp },
}

/// How a sync goes on that has just begun.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SyncStep {
    /// All values are at hand, or the wait for them is over: decide now.
    Decide,
    /// The metrics at these places have to be asked for first.
    Ask { round: u64, settings: Arc<HpaScaling>, metrics: Vec<usize> },
}

impl HpaScaler {
    pub(super) fn new(spec: &ScalingSpec, beginning: RevisionBeginning) -> Self {
        let settings = spec.hpa.clone().expect("the caller saw that it is class hpa");
        let now = beginning.now;
        let mut deciders = MixedDecider::new(&settings.spec, spec, beginning.held_count(), now);
        if beginning.origin == RevisionOrigin::Found && beginning.wanted == PodCount::ZERO {
            deciders.note_found_at_zero(&settings.spec, now);
        }
        Self {
            answers: vec![MetricSamples::NotAsked; settings.spec.metrics.len()],
            target: None,
            cpu: None,
            warnings: Vec::new(),
            last_order: None,
            sync: Sync::At(now + settings.sync_period),
            deciders,
            settings,
            pods: HpaPodBook::default(),
            desired: None,
            reasons: Vec::new(),
            rounds: 0,
        }
    }

    /// Follows changed settings; the next sync is a whole period away, as in Kubernetes.
    pub(super) fn update(
        &mut self,
        spec: &ScalingSpec,
        settings: &Arc<HpaScaling>,
        wanted: PodCount,
        now: Timestamp,
    ) {
        if self.settings != *settings {
            if self.settings.spec.metrics != settings.spec.metrics && self.desired.is_some() {
                // The former metrics explain nothing any more.
                let text = StandingText::MetricsChanged { sync_period: settings.sync_period }.into();
                let stays = self.desired;
                self.reasons = vec![Reason { stage: Stage::Metric, before: stays, after: stays, text }];
            }
            // Answers are kept by their metric's place in the document, which is another one now. A round
            // under way ends here: what it brings will be late.
            self.answers = vec![MetricSamples::NotAsked; settings.spec.metrics.len()];
            self.sync = Sync::At(now + settings.sync_period);
            self.settings = Arc::clone(settings);
        }
        self.deciders.update(&settings.spec, spec, wanted, now);
    }

    pub(super) fn deciders(&self) -> &MixedDecider {
        &self.deciders
    }

    pub(super) fn desired(&self) -> Option<PodCount> {
        self.desired
    }

    pub(super) fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// What all pods together used of the processors at the last sync, as far as it says something about
    /// load; `None` where the document does not ask for it, or no pod said it.
    pub(super) fn cpu_in_use(&self) -> Option<MilliValue> {
        self.cpu
    }

    pub(super) fn has_own(&self) -> bool {
        self.settings.spec.has_own()
    }

    /// The report of the last sync.
    pub(super) fn report(&self) -> HpaReport {
        HpaReport::of(&self.settings.spec, self.deciders.state())
    }

    /// Each metric beside its target.
    pub(super) fn metrics_beside_targets(&self) -> String {
        metrics_beside_targets(&self.settings.spec, self.deciders.state())
    }

    pub(super) fn deadline(&self) -> Timestamp {
        match self.sync {
            Sync::At(at) => at,
            Sync::Asking { until, .. } => until,
        }
    }

    pub(super) fn pods_changed(&mut self, facts: impl Iterator<Item = PodFact>, now: Timestamp) {
        self.pods.replace(facts, now);
    }

    pub(super) fn note_usage(&mut self, pod: PodId, usage: ResourceUsage, now: Timestamp) {
        self.pods.note_usage(pod, usage, now);
    }

    /// A look of the own metrics, with what the windows of each say.
    pub(super) fn evaluate_own(
        &mut self,
        observations: &[Option<Observation>],
        wanted: PodCount,
        now: Timestamp,
    ) {
        let rise = self.deciders.evaluate_own(&self.settings.spec, observations, wanted, now);
        if let Some(count) = rise {
            self.desired = Some(count);
            self.reasons = self.deciders.rise_reasons().to_vec();
        } else if self.desired == Some(PodCount::ZERO)
            && wanted > PodCount::ZERO
            && self.deciders.may_need_pods()
        {
            // Requests came on the way to zero: the present pods stay until the next sync. Any other count
            // below the present one was decided by a sync, and in shadow stands until the next sync.
            self.desired = Some(wanted);
            self.reasons = self.deciders.hold_until_sync(wanted).to_vec();
        }
    }

    /// Begins a sync if one is due, or ends the wait for answers.
    pub(super) fn begin_sync(&mut self, wanted: PodCount, now: Timestamp) -> Option<SyncStep> {
        match self.sync {
            Sync::At(at) if at <= now => {
                let mut next = at;
                // Those that were missed are not made up for; the phase stays.
                while next <= now {
                    next += self.settings.sync_period;
                }
                let metrics = self.questions(wanted);
                self.target = None;
                // Where the platform knows the pods it is asked for them, even if no metric needs a question.
                if metrics.is_empty() && self.settings.usage == UsageSource::Reports {
                    self.sync = Sync::At(next);
                    return Some(SyncStep::Decide);
                }
                self.rounds += 1;
                self.sync = Sync::Asking { until: now + ANSWERS_WITHIN, next };
                Some(SyncStep::Ask { round: self.rounds, settings: Arc::clone(&self.settings), metrics })
            }
            Sync::Asking { until, next } if until <= now => {
                // Where the period is shorter than the wait the next sync is overdue, and begins at the next
                // call.
                self.sync = Sync::At(next.max(now));
                Some(SyncStep::Decide)
            }
            Sync::At(_) | Sync::Asking { .. } => None,
        }
    }

    /// The places of the metrics that have to be asked for. Each metric counts as failed until its answer
    /// comes: a sync whose wait runs out reports the missing ones so.
    fn questions(&mut self, wanted: PodCount) -> Vec<usize> {
        // Without an own metric zero pods are a pause, or end by what Kubernetes' own rules make of them.
        let needs_pods = wanted == PodCount::ZERO && self.has_own();
        let mut places = Vec::new();
        for (place, metric) in self.settings.spec.metrics.iter().enumerate() {
            let is_asked = self.settings.is_asked_for(metric) && !(needs_pods && metric.is_per_pod());
            if is_asked {
                places.push(place);
            }
            // A pod that appears before the answers do changes nothing: it was not asked.
            self.answers[place] =
                if is_asked { failed(metric, NoProposal::NoAnswer) } else { MetricSamples::NotAsked };
        }
        places
    }

    /// Takes in the answers to a round of questions, each with the place of its metric; whether the sync goes
    /// on. Those of an earlier round, and those to another document's questions, are late.
    pub(super) fn answered(&mut self, round: u64, answers: MetricAnswers, now: Timestamp) -> bool {
        let Sync::Asking { next, .. } = self.sync else { return false };
        if round != self.rounds {
            return false;
        }
        self.target = answers.target;
        for (index, answer) in answers.samples {
            if let Some(known) = self.answers.get_mut(index) {
                *known = answer;
            }
        }
        self.sync = Sync::At(next.max(now));
        true
    }

    /// Decides from the values that all metrics have given. Where pods may stand above `own`, the count that
    /// the class asked for last by itself, they are left out of that.
    pub(super) fn decide(&mut self, wanted: PodCount, own: Option<PodCount>, now: Timestamp) {
        // Taken and not kept: the next sync must not count the pods of this one.
        let mut target = self.target.take().unwrap_or_else(|| TargetPods {
            pods: self.pods.all(&self.settings.requests),
            present: self.pods.present(),
            selection: Selection::Unique,
        });
        let mut samples: Vec<MetricSamples> = self
            .settings
            .spec
            .metrics
            .iter()
            .zip(&self.answers)
            .map(|(metric, answer)| self.samples_of(metric, answer, now))
            .collect();
        self.cpu = cpu_in_use(&target.pods, &samples, &self.settings.spec, now);
        if let Some(own) = own {
            leave_out_early_pods(&mut target, &mut samples, &self.settings.spec, own, now);
        }
        let TargetPods { pods, present, selection } = target;
        let scale = Scale { replicas: wanted, status_replicas: present, selection };
        let observation = MixedObservation { scale, pods: &pods, samples: &mut samples };
        let outcome = self.deciders.sync(&self.settings.spec, observation, now);
        self.desired = Some(outcome.desired);
        self.reasons = self.deciders.state().reasons().to_vec();
        // A pass that ends early has no number, and the count stays: that is what its last step leads to, and
        // where the rules that follow go on.
        if let Some(last) = self.reasons.last_mut().filter(|last| last.after.is_none()) {
            last.after = self.desired;
        }
    }

    /// The warnings of the last sync that the sync before did not have, each with the sentences that say why.
    pub(super) fn new_warnings(&mut self) -> Vec<(HpaWarning, String)> {
        let warnings = self.deciders.state().warnings().to_vec();
        let before = std::mem::replace(&mut self.warnings, warnings);
        // Several metrics may fail in the same way: that is one warning.
        let new: BTreeSet<HpaWarning> =
            self.warnings.iter().copied().filter(|warning| !before.contains(warning)).collect();
        if new.is_empty() {
            return Vec::new();
        }
        let is_why = |reason: &&Reason| matches!(reason.stage, Stage::MetricFailure | Stage::NoData);
        let why: Vec<String> =
            self.reasons.iter().filter(is_why).map(|reason| reason.text.to_string()).collect();
        new.into_iter().map(|warning| (warning, why.join("; "))).collect()
    }

    fn samples_of(&self, metric: &MetricSpec, answer: &MetricSamples, now: Timestamp) -> MetricSamples {
        let MetricSpec::Resource { resource, container, .. } = metric else { return answer.clone() };
        if self.settings.is_asked_for(metric) {
            return answer.clone();
        }
        let has_container =
            |name: &str| self.settings.requests.containers.iter().any(|one| *one.name == *name);
        if container.as_deref().is_some_and(|name| !has_container(name)) {
            return failed(metric, NoProposal::NoContainer);
        }
        match resource {
            ResourceName::Cpu | ResourceName::Memory => {
                MetricSamples::PerPod(self.pods.samples(resource, now))
            }
            ResourceName::Other(_) => failed(metric, NoProposal::NotReported),
        }
    }

    pub(super) fn note_ordered(&mut self, change: CountChange, now: Timestamp) {
        if change.from != change.to {
            let before = self.deciders.state().rescale_memory(now);
            self.deciders.note_rescale(&self.settings.spec, change, now);
            self.last_order = Some(LastOrder { change, before, has_failed: false });
        }
    }

    /// The last order failed, and what follows from a change that was carried out did not happen; or it was
    /// carried out later.
    pub(super) fn note_scale_ended(&mut self, ending: ScaleEnding, now: Timestamp) {
        let Some(order) = &mut self.last_order else { return };
        // A platform that keeps trying reports each failure, but a change can be reverted only once.
        match ending {
            ScaleEnding::Failed if !order.has_failed => {
                order.has_failed = true;
                self.deciders.revert_rescale(order.change, &order.before, now);
            }
            ScaleEnding::WrittenAfterAll if order.has_failed => {
                self.deciders.note_rescale(&self.settings.spec, order.change, now);
                self.last_order = None;
            }
            ScaleEnding::Failed | ScaleEnding::WrittenAfterAll => {}
        }
    }

    pub(super) fn note_foreign_count(&mut self, count: PodCount) {
        // Before the first decision nothing is desired, and a count that was found must not look like a
        // decision.
        if self.desired.is_some() {
            self.desired = Some(count);
            self.reasons.clear();
        }
    }
}

fn failed(metric: &MetricSpec, why: NoProposal) -> MetricSamples {
    MetricSamples::Failed(MetricFailure { reason: ConditionReason::of_unmeasured(metric), why })
}
