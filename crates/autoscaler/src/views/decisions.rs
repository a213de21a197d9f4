//! Decisions as the API shows them: inputs, steps and results.

use orchestration::RevisionView;
use scaling::{Decision, Inputs, Mode, Reason};
use vocabulary::Timestamp;

use super::values::{age_ms, sentence, word};
use crate::api_types::{DecisionView, InputsView, ReasonView};

/// The latest decision is as old as its last repetition: nothing else is new in that.
pub(super) fn decision_views(view: &RevisionView<'_>) -> Vec<DecisionView> {
    let mut decisions: Vec<_> =
        view.decisions().map(|decision| decision_view(decision, view.now())).collect();
    if let (Some(latest), Some(at)) = (decisions.last_mut(), view.confirmed_at()) {
        latest.age_ms = latest.age_ms.min(age_ms(at, view.now()));
    }
    decisions
}

fn decision_view(decision: &Decision, now: Timestamp) -> DecisionView {
    DecisionView {
        age_ms: age_ms(decision.at, now),
        trigger: word(&decision.trigger),
        inputs: decision.inputs.map(inputs_view),
        reasons: decision.reasons.iter().map(reason_view).collect(),
        mode: match decision.mode {
            Mode::Stable => "stable",
            Mode::Panic { .. } => "panic",
        }
        .to_owned(),
        desired: decision.desired,
        wanted: decision.wanted,
        excess_burst_capacity: decision.excess_burst_capacity.value(),
        routing: decision.routing,
        activators: decision.activators,
        why_not_zero: sentence(decision.why_not_zero),
    }
}

fn inputs_view(inputs: Inputs) -> InputsView {
    InputsView {
        ready_pods: inputs.ready_pods,
        unheard_pods: inputs.unheard_pods,
        stable_value: inputs.stable_value,
        panic_value: inputs.panic_value,
        target_per_pod: inputs.target_per_pod,
        total_per_pod: inputs.total_per_pod,
        present_count: inputs.present_count,
    }
}

fn reason_view(reason: &Reason) -> ReasonView {
    ReasonView {
        stage: word(&reason.stage),
        before: reason.before,
        after: reason.after,
        text: reason.text.to_string(),
    }
}
