//! A revision of class hpa: when its metrics are asked, and what becomes of the answer.

use vocabulary::{PodCount, PodId, ResourceUsage, Timestamp};

use super::{Commands, ScaledRevision};
use crate::decider::Observation;
use crate::decision::Trigger;
use crate::hpa::{HpaReport, MetricAnswers};
use crate::multiscaler::hpa::{HpaScaler, SyncStep};
use crate::multiscaler::{Command, ScaleEnding};
use crate::scale_to_zero::Plan;

impl ScaledRevision {
    pub(in crate::multiscaler) fn usage_reported(
        &mut self,
        pod: PodId,
        usage: ResourceUsage,
        now: Timestamp,
    ) {
        if let Some(hpa) = self.algorithm.hpa_mut() {
            hpa.note_usage(pod, usage, now);
        }
    }

    /// Takes in the answers to a round of questions, and decides; answers to an earlier round are dropped.
    pub(in crate::multiscaler) fn metrics_answered(
        &mut self,
        round: u64,
        answers: MetricAnswers,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        // A sync needs our own metrics too, and their last evaluation may be two seconds old.
        self.evaluate_own(Trigger::Tick, now);
        let Some(hpa) = self.algorithm.hpa_mut() else { return };
        if hpa.answered(round, answers, now) {
            self.sync(now, commands);
        }
    }

    /// Policies look back on changes that were carried out, and only on those.
    pub(in crate::multiscaler) fn scale_ended(&mut self, ending: ScaleEnding, now: Timestamp) {
        self.algorithm.note_scale_ended(ending, now);
    }

    pub(in crate::multiscaler) fn hpa_report(&self) -> Option<HpaReport> {
        self.algorithm.hpa().map(HpaScaler::report)
    }

    pub(in crate::multiscaler) fn metrics_beside_targets(&self) -> Option<String> {
        self.algorithm.hpa().map(HpaScaler::metrics_beside_targets)
    }

    /// A look of the own metrics, and a sync if one is due.
    pub(super) fn evaluate_hpa(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        let has_data = self.evaluate_own(trigger, now);
        let reactive = self.reactive();
        let Some(hpa) = self.algorithm.hpa_mut() else { return };
        match hpa.begin_sync(reactive, now) {
            Some(SyncStep::Decide) => self.sync(now, commands),
            Some(SyncStep::Ask { round, settings, metrics }) => {
                commands.push_back(Command::AskMetrics { revision: self.id, round, settings, metrics });
                // Answers may take seconds; a rise that requests need does not wait for them.
                self.reconcile(trigger, now, commands);
            }
            None if has_data => {
                self.note_data(now);
                self.reconcile(trigger, now, commands);
            }
            None => self.note_silence(trigger, now, commands),
        }
    }

    /// Lets the own metrics look; whether one of them has data, or there is none.
    fn evaluate_own(&mut self, trigger: Trigger, now: Timestamp) -> bool {
        let (seen, wanted) = (self.reactive_ready(), self.reactive());
        let Some(hpa) = self.algorithm.hpa_mut() else { return false };
        if !hpa.has_own() {
            return true;
        }
        let (ready, reachable) = (self.pods.ready(), self.pods.reachable());
        let is_surge = trigger == Trigger::Surge && self.spec.surge_evaluation;
        let observations: Vec<Option<Observation>> = self
            .collectors
            .iter()
            .map(|collector| {
                let averages = collector.observe(ready, now)?;
                let present_count = is_surge.then(|| collector.surge_total(now).unwrap_or(0.0));
                Some(Observation { ready: seen, reachable, wanted, averages, present_count })
            })
            .collect();
        hpa.evaluate_own(&observations, wanted, now);
        observations.iter().any(Option::is_some)
    }

    fn sync(&mut self, now: Timestamp, commands: &mut Commands) {
        let (reactive, own) = (self.reactive(), self.own_pods());
        if let Some(hpa) = self.algorithm.hpa_mut() {
            hpa.decide(reactive, own, now);
            // In shadow another autoscaler answers for the workload, so no Event is issued; `ebb explain`
            // gives the reasons.
            if self.shadow.is_none() {
                let revision = self.id;
                commands.extend(hpa.new_warnings().into_iter().map(|(warning, text)| Command::Warn {
                    revision,
                    warning,
                    text,
                }));
            }
        }
        self.note_cpu_in_use(now);
        self.note_data(now);
        self.reconcile(Trigger::Sync, now, commands);
    }

    /// A revision that is at zero, and is to be, stays there: rules that keep a last pod do not bring a first
    /// one back. A lower bound does, unless the zero of another client is a pause, which a revision with an
    /// own metric does not have.
    pub(super) fn held_at_zero(&self, mut plan: Plan) -> Plan {
        let rests = self.wanted == PodCount::ZERO && self.algorithm.desired() == Some(PodCount::ZERO);
        if rests && (self.spec.min_scale == PodCount::ZERO || !self.algorithm.counts_requests()) {
            plan.apply = false;
            plan.want = Some(PodCount::ZERO);
        }
        plan
    }
}
