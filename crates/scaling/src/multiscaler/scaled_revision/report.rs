//! The reports of a revision: its decisions, which of them are published, and its status.

use std::sync::Arc;

use vocabulary::{Routing, Timestamp};

use super::{Commands, DecisionNews, ScaledRevision};
use crate::burst;
use crate::decision::{Decision, Mode, Reason, Stage, StandingText, Trigger};
use crate::multiscaler::journal::{DecisionJournal, QuietNews};
use crate::multiscaler::outcome::{DecisionOutcome, NonzeroCause, why_not_zero};
use crate::multiscaler::{Command, Multiscaler, RevisionStatus};
use crate::scale_to_zero::Plan;

impl ScaledRevision {
    /// The windows are silent: said once, and shown as the present state.
    pub(super) fn note_silence(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        self.note_no_data(now);
        let desired = self.algorithm.desired();
        let text = StandingText::NoData.into();
        let mut reasons = self.journal.empty_list();
        reasons.push(Reason { stage: Stage::NoData, before: desired, after: desired, text });
        let decision = Decision { inputs: None, reasons, wanted: None, ..self.decision(trigger, now) };
        let outcome = DecisionOutcome {
            has_data: false,
            ..self.outcome.unwrap_or(self.outcome(NonzeroCause::Undecided))
        };
        if let Some(decision) = self.record(decision, outcome) {
            commands.push_back(Command::Publish { revision: self.id, decision });
        }
    }

    /// Records a decision, and returns it if its outcome is new.
    pub(super) fn publish(&mut self, trigger: Trigger, plan: &Plan, now: Timestamp) -> Option<Arc<Decision>> {
        let (why, sentence) = why_not_zero(self.wanted, plan, || self.algorithm.load_cause(&self.spec, now));
        self.why_not_zero = sentence;
        let wanted = plan.applied();
        if self.algorithm.desired().is_none() && wanted.is_none() {
            // There is no decision, but class hpa may have other metrics to show.
            self.news = DecisionNews::Changed;
            return None;
        }
        let mut reasons = self.journal.empty_list();
        reasons.extend(self.algorithm.reasons().iter().chain(&plan.reasons));
        let decision = Decision { reasons, wanted, intended: plan.want, ..self.decision(trigger, now) };
        self.record(decision, self.outcome(why))
    }

    /// The answer of the last evaluation with the present state; the caller adds the reasons.
    fn decision(&self, trigger: Trigger, now: Timestamp) -> Decision {
        let room = self.algorithm.excess_burst_capacity();
        Decision {
            at: now,
            trigger,
            inputs: self.algorithm.inputs(),
            reasons: Vec::new(),
            mode: self.algorithm.mode(),
            desired: self.algorithm.desired(),
            wanted: None,
            intended: None,
            excess_burst_capacity: room.unwrap_or_else(|| burst::first_excess_burst_capacity(&self.spec)),
            routing: self.routing(),
            activators: self
                .activators
                .unwrap_or_else(|| burst::activator_count(&self.spec, self.pods.ready_count())),
            why_not_zero: self.why_not_zero,
        }
    }

    fn outcome(&self, why: NonzeroCause) -> DecisionOutcome {
        DecisionOutcome {
            has_data: self.has_data,
            desired: self.algorithm.desired(),
            wanted: self.wanted,
            panicking: matches!(self.algorithm.mode(), Mode::Panic { .. }),
            routing: self.route.current(),
            activators: self.activators,
            activity: self.activity.name(),
            why,
        }
    }

    /// Keeps a decision in the journal, and returns it if its outcome is new.
    fn record(&mut self, mut decision: Decision, outcome: DecisionOutcome) -> Option<Arc<Decision>> {
        if self.outcome == Some(outcome) {
            let at = decision.at;
            let news = self.journal.note_unchanged(decision, Multiscaler::DECISIONS_KEPT);
            // Metrics of class hpa have values that are in no decision.
            let is_quiet = news == QuietNews::LaterAlone && self.algorithm.kpa().is_some();
            self.news = match self.news {
                DecisionNews::Nothing | DecisionNews::LaterAlone { .. } if is_quiet => {
                    DecisionNews::LaterAlone { at }
                }
                DecisionNews::Nothing | DecisionNews::LaterAlone { .. } | DecisionNews::Changed => {
                    DecisionNews::Changed
                }
            };
            return None;
        }
        self.outcome = Some(outcome);
        self.news = DecisionNews::Changed;
        if let Some(reason) = decision.reasons.last() {
            self.last_reason = Some(reason.text);
        }
        // Kept for long, unlike those that change nothing.
        decision.reasons.shrink_to_fit();
        let decision = Arc::new(decision);
        self.journal.note_change(Arc::clone(&decision), Multiscaler::DECISIONS_KEPT);
        Some(decision)
    }

    /// Unknown routes are shown as the safe one.
    fn routing(&self) -> Routing {
        self.route.current().unwrap_or_default()
    }

    pub(in crate::multiscaler) fn journal(&self) -> &DecisionJournal {
        &self.journal
    }

    pub(in crate::multiscaler) fn status(&self, now: Timestamp) -> RevisionStatus {
        let counts = self.pods.counts();
        let averages = self.collectors.observe(self.pods.ready(), now);
        RevisionStatus {
            wanted: self.wanted,
            early_pods: self.early_pods(),
            scorecard: self.scorecard(),
            desired: self.algorithm.desired(),
            ready_pods: counts.ready,
            not_ready_pods: counts.not_ready,
            pending_pods: counts.pending,
            terminating_pods: counts.terminating,
            panicking: matches!(self.algorithm.mode(), Mode::Panic { .. }),
            stable_value: averages.map(|averages| averages.stable),
            panic_value: averages.map(|averages| averages.panic),
            target_per_pod: self.spec.target_per_pod,
            routing: self.routing(),
            waiting: self.collectors.first().waiting(),
            activity: self.activity.name(),
            shadow: self.shadow,
            last_reason: self.last_reason,
            why_not_zero: self.why_not_zero,
        }
    }
}
