//! What the API shows, made of what the loop knows.

use platform::PodFailure;
use scaling::{Decision, Inputs, Mode, Multiscaler, PodPhase, Reason, RevisionStatus, Sentence};
use serde::Serialize;
use vocabulary::{PodCount, RevisionId, Timestamp};

use crate::api_types::{
    API_VERSION, DecisionView, FailureView, InputsView, PodView, ProblemList, ReasonView, RevisionDetail,
    RevisionList, RevisionSummary,
};
use crate::assigner;
use crate::registry::{Pod, Registry, Revision};

pub(crate) fn list(
    registry: &Registry,
    multiscaler: &Multiscaler,
    problems: &[String],
    now: Timestamp,
) -> RevisionList {
    let summaries = registry
        .revisions
        .iter()
        .filter_map(|(&id, revision)| Some(summary(revision, &multiscaler.status(id, now)?)));
    let mut revisions: Vec<RevisionSummary> = summaries.collect();
    revisions.sort_by(|one, other| one.name.cmp(&other.name));
    RevisionList { version: API_VERSION, revisions, problems: problems.to_vec() }
}

pub(crate) fn detail(
    id: RevisionId,
    registry: &Registry,
    multiscaler: &Multiscaler,
    now: Timestamp,
) -> Option<RevisionDetail> {
    let revision = registry.revisions.get(&id)?;
    let mut pods: Vec<PodView> = revision.pods.values().map(|pod| pod_view(pod, now)).collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    Some(RevisionDetail {
        version: API_VERSION,
        summary: summary(revision, &multiscaler.status(id, now)?),
        hosts: revision.facts.hosts.clone(),
        container_concurrency: revision.facts.container_concurrency,
        min_scale: revision.spec.min_scale,
        max_scale: revision.spec.max_scale,
        pods,
        decisions: multiscaler.decisions(id).map(|decision| decision_view(decision, now)).collect(),
        last_failure: revision.last_failure.as_ref().map(|failure| failure_view(failure, now)),
        problems: Vec::new(),
    })
}

pub(crate) fn with_problems(detail: RevisionDetail, problems: &[String]) -> RevisionDetail {
    RevisionDetail { problems: problems.to_vec(), ..detail }
}

pub(crate) fn problems(problems: &[String]) -> ProblemList {
    ProblemList { version: API_VERSION, problems: problems.to_vec() }
}

fn summary(revision: &Revision, status: &RevisionStatus) -> RevisionSummary {
    RevisionSummary {
        name: revision.facts.name.clone(),
        template: revision.facts.template.clone(),
        url: revision.facts.url.clone(),
        wanted: status.wanted,
        desired: status.desired,
        ready_pods: status.ready_pods,
        not_ready_pods: status.not_ready_pods,
        pending_pods: status.pending_pods,
        terminating_pods: status.terminating_pods,
        mode: if status.panicking { "panic" } else { "stable" }.to_owned(),
        metric: word(&revision.spec.metric),
        stable_value: status.stable_value,
        panic_value: status.panic_value,
        target_per_pod: status.target_per_pod,
        routing: status.routing,
        waiting: status.waiting,
        activity: status.activity.to_owned(),
        last_reason: sentence(status.last_reason).unwrap_or_default(),
        // What kept a pod once says nothing when there is none.
        why_not_zero: sentence(status.why_not_zero).filter(|_| status.wanted > PodCount::ZERO),
        why_not_ready: why_not_ready(revision),
    }
}

/// Trouble of any pod is worth a word even while others serve; beyond that, what the revision waits for if a pod is wanted.
fn why_not_ready(revision: &Revision) -> Option<String> {
    let pods = revision.pods_by_name();
    let trouble = pods
        .iter()
        .find_map(|(pod, heard)| Some(format!("pod {}: {}", pod.name, assigner::pod_trouble(pod, heard)?)));
    let waits = || {
        let text = assigner::waiting_for(revision.wanted, pods.iter().copied());
        (revision.wanted > PodCount::ZERO && !text.is_empty()).then(|| format!("waits for {text}"))
    };
    trouble.or_else(waits)
}

fn pod_view(pod: &Pod, now: Timestamp) -> PodView {
    let Pod { facts, heard, heard_at, .. } = pod;
    PodView {
        name: facts.name.clone(),
        phase: phase(facts.phase).to_owned(),
        state: assigner::pod_state(facts, heard),
        leaving: facts.leaving,
        outdated: facts.outdated,
        linked: heard.is_linked,
        in_flight: heard.load.concurrency.value(),
        queued: heard.load.queued,
        heard_ms_ago: heard_at.map(|at| age_ms(at, now)),
        requests: facts.requests,
        link: facts.link.map(|link| link.socket),
        trouble: assigner::pod_trouble(facts, heard),
        details: facts.details.clone(),
    }
}

fn failure_view(failure: &PodFailure, now: Timestamp) -> FailureView {
    FailureView {
        pod: failure.pod.clone(),
        age_ms: age_ms(failure.at, now),
        reason: failure.reason.clone(),
        last_lines: failure.last_lines.clone(),
    }
}

fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "pending",
        PodPhase::Running => "running",
        PodPhase::Terminating => "terminating",
    }
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

fn sentence(said: Option<Sentence>) -> Option<String> {
    said.map(|sentence| sentence.to_string())
}

/// The name that serde knows a plain enum's value by.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

fn age_ms(at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.saturating_since(at).as_millis()).unwrap_or(u64::MAX)
}
