//! What the API shows, made of a snapshot. Ages count from the moment at which it is read.

mod decisions;
mod demand;
mod forecast;
mod ledger;
mod pods;
mod series;
mod values;

use std::time::Duration;

use forecasting::Scorecard;
use orchestration::{AppOutput, LinkTally, OtherAutoscaler, RevisionFacts, RevisionView};
use scaling::ShadowStatus;
use scaling::hpa::HpaReport;
use vocabulary::{PodCount, ReplicaName, RevisionName, Timestamp, format_duration};

use crate::api_types::{
    API_VERSION, AskedMetricView, CallerView, HpaConditionView, HpaMetricView, HpaView, LinkTallyView,
    LinksView, OtherAutoscalerView, PlatformTermsView, PredictionView, ProblemList, RevisionDetail,
    RevisionList, RevisionSummary, ShadowDifferenceView, ShadowView,
};
use crate::caller_memory::SeenCaller;
use crate::metric_sources::AskedMetric;
use crate::snapshot::Snapshot;
use decisions::decision_views;
pub(crate) use demand::{DemandRefusal, demand, told_demand};
pub(crate) use forecast::forecast;
pub(crate) use ledger::ledger;
use pods::{ended_pod_view, failure_view, kill_view, pod_view};
pub(crate) use series::{OwnedSeries, series};
use values::{age, age_ms, owner_view, sentence, word};

/// The reason of a count that is left alone by the annotation `ebb.dev/paused`.
const PAUSED: &str = "paused";

/// Names in an answer of those to whom no link is up. A person looks at one of them first.
const NAMES_MAX: usize = 10;

pub(crate) fn list(snapshot: &Snapshot, output: AppOutput, now: Timestamp) -> RevisionList {
    changed(snapshot, None, output, now)
}

/// The same with those revisions alone that are others than in a former snapshot.
pub(crate) fn changed(
    snapshot: &Snapshot,
    former: Option<&Snapshot>,
    output: AppOutput,
    now: Timestamp,
) -> RevisionList {
    let views = snapshot.control.changed_views(former.map(|former| &former.control), now);
    list_of(snapshot, views, output)
}

/// The same with those revisions alone that have changed since a point in time.
pub(crate) fn changed_since(
    snapshot: &Snapshot,
    then: Timestamp,
    output: AppOutput,
    now: Timestamp,
) -> RevisionList {
    list_of(snapshot, snapshot.control.views_since(then, now), output)
}

fn list_of<'a>(
    snapshot: &Snapshot,
    views: impl Iterator<Item = RevisionView<'a>>,
    output: AppOutput,
) -> RevisionList {
    let Snapshot { owner, control, .. } = snapshot;
    let links = vec![LinksView {
        autoscaler: owner.as_str().to_owned(),
        to_activators: link_tally_view(control.links_to_activators().clone()),
        to_pods: link_tally_view(control.links_to_pods()),
    }];
    RevisionList {
        version: API_VERSION,
        snapshot: snapshot.number(),
        revisions: views.map(|view| summary(&view, owner, output)).collect(),
        problems: control.problems().to_vec(),
        unanswered: Vec::new(),
        links,
    }
}

fn link_tally_view(tally: LinkTally) -> LinkTallyView {
    let LinkTally { expected, mut down } = tally;
    let up = expected - down.len();
    down.truncate(NAMES_MAX);
    LinkTallyView { expected, up, down }
}

pub(crate) fn detail(
    snapshot: &Snapshot,
    name: &RevisionName,
    output: AppOutput,
    now: Timestamp,
) -> Option<RevisionDetail> {
    let view = snapshot.control.view(name, now)?;
    let asked = snapshot.asked.get(name).into_iter().flat_map(|asked| asked.iter());
    Some(RevisionDetail {
        version: API_VERSION,
        summary: summary(&view, &snapshot.owner, output),
        hosts: view.facts().hosts(),
        container_concurrency: view.facts().container_concurrency,
        min_scale: view.spec().min_by_settings(),
        max_scale: view.spec().max_scale,
        platform: platform_view(view.facts()),
        hpa: view.hpa_report().map(|report| hpa_view(report, now)),
        asked: asked.map(asked_view).collect(),
        callers: caller_views(snapshot, name, view.spec().stable_window, now),
        pods: view
            .pods(output)
            .iter()
            .map(|pod| pod_view(pod, view.pod_life(&pod.facts.name), now))
            .collect(),
        ended_pods: view.ended_pods().map(|pod| ended_pod_view(pod, now)).collect(),
        decisions: decision_views(&view),
        last_failure: view.last_failure().map(|failure| failure_view(failure, output, now)),
        last_kill: view.last_kill().map(|kill| kill_view(kill, now)),
        problems: snapshot.control.problems().to_vec(),
    })
}

/// Those who called within the window, or within the last minute, in which people look.
fn caller_views(
    snapshot: &Snapshot,
    name: &RevisionName,
    window: Duration,
    now: Timestamp,
) -> Vec<CallerView> {
    let within = window.max(Duration::from_secs(60));
    let callers = snapshot.callers.get(name).into_iter().flat_map(|callers| callers.iter());
    let lately = callers.filter(|seen| now.saturating_since(seen.at) <= within);
    lately
        .map(|SeenCaller { caller, at }| CallerView {
            user_agent: caller.user_agent.to_string(),
            address: caller.address,
            age_ms: age_ms(*at, now),
        })
        .collect()
}

pub(crate) fn problems(snapshot: &Snapshot) -> ProblemList {
    ProblemList { version: API_VERSION, problems: snapshot.control.problems().to_vec() }
}

fn summary(view: &RevisionView<'_>, owner: &ReplicaName, output: AppOutput) -> RevisionSummary {
    let (facts, status) = (view.facts(), view.status);
    RevisionSummary {
        name: facts.name.clone(),
        template: facts.template.clone(),
        url: facts.url.clone(),
        wanted: status.wanted,
        early_pods: status.early_pods,
        prediction: status.scorecard.as_ref().map(prediction_view),
        desired: status.desired,
        ready_pods: status.ready_pods,
        not_ready_pods: status.not_ready_pods,
        pending_pods: status.pending_pods,
        awaiting_core_pods: view.awaiting_core_pods(),
        terminating_pods: status.terminating_pods,
        mode: if status.panicking { "panic" } else { "stable" }.to_owned(),
        class: if view.spec().hpa.is_some() { "hpa" } else { "kpa" }.to_owned(),
        metrics: view.metrics_beside_targets().map(str::to_owned),
        other_autoscaler: facts.other_autoscaler.as_ref().map(other_autoscaler_view),
        shadow: status.shadow.map(|shadow| shadow_view(&shadow, view.now())),
        left_alone: left_alone(facts),
        metric: word(&view.spec().metric),
        stable_value: status.stable_value,
        panic_value: status.panic_value,
        target_per_pod: status.target_per_pod,
        routing: status.routing,
        waiting: status.waiting,
        activity: status.activity.to_owned(),
        last_reason: sentence(status.last_reason).unwrap_or_default(),
        why_not_zero: why_not_zero(view),
        why_not_ready: view.why_not_ready(output),
        links: Some(link_tally_view(view.links())),
        owner: owner_view(view, owner),
    }
}

/// Why the count is left alone although the revision is not in shadow by a person's wish.
fn left_alone(facts: &RevisionFacts) -> Option<String> {
    if facts.settings.paused == Some(true) {
        return Some(PAUSED.to_owned());
    }
    facts.hold.clone().filter(|_| !facts.may_write)
}

fn prediction_view(card: &Scorecard) -> PredictionView {
    PredictionView {
        rule: card.rule.rule().to_string(),
        late_request_seconds: card.late_with,
        late_without_request_seconds: card.late_without,
        extra_pod_seconds: card.extra_pod_seconds,
        used_pod_seconds: card.used_pod_seconds,
        budget_left_pod_seconds: card.budget_left_pod_seconds,
    }
}

/// The rule that keeps pods, and the oldest request that waits for one: no rule explains that better.
fn why_not_zero(view: &RevisionView<'_>) -> Option<String> {
    // What kept a pod once says nothing when there is none.
    let text = sentence(view.status.why_not_zero).filter(|_| view.status.wanted > PodCount::ZERO)?;
    let waited = view.oldest_wait().map(|waited| Duration::from_millis(age(waited)));
    Some(match waited {
        Some(waited) => format!("{text}; the oldest waiting request has waited {}", format_duration(waited)),
        None => text,
    })
}

fn platform_view(facts: &RevisionFacts) -> PlatformTermsView {
    let RevisionFacts { may_write, reachable, floor, floor_cause, hold, .. } = facts;
    PlatformTermsView {
        may_write: *may_write,
        reachable: *reachable,
        floor: *floor,
        floor_cause: (*floor > PodCount::ZERO).then(|| word(floor_cause)),
        hold: hold.clone(),
    }
}

fn shadow_view(shadow: &ShadowStatus, now: Timestamp) -> ShadowView {
    let last = shadow.last.map(|last| ShadowDifferenceView {
        age_ms: age_ms(last.at, now),
        ours: last.ours,
        theirs: last.theirs,
        why: sentence(last.why).unwrap_or_default(),
    });
    ShadowView {
        compared_ms: age_ms(shadow.since, now),
        compared: shadow.compared,
        differed: shadow.differed,
        differs_ms: shadow.differs_since.map(|since| age_ms(since, now)),
        last_difference: last,
    }
}

fn other_autoscaler_view(other: &OtherAutoscaler) -> OtherAutoscalerView {
    let OtherAutoscaler { name, desired, current, metrics, why } = other.clone();
    OtherAutoscalerView { name, desired, current, metrics, why }
}

fn hpa_view(report: &HpaReport, now: Timestamp) -> HpaView {
    let conditions = report.conditions.iter().map(|(kind, condition)| HpaConditionView {
        kind: kind.to_owned(),
        status: condition.reason.is_true(),
        reason: condition.reason.word().to_owned(),
        age_ms: age_ms(condition.since, now),
    });
    let metrics = report.metrics.iter().map(|metric| HpaMetricView {
        metric: metric.name.clone(),
        value: metric.current.clone(),
        target: metric.target.clone(),
        // No number stands for what is divided by nothing.
        ratio: metric.ratio.filter(|ratio| ratio.is_finite()),
        count: metric.count,
        failure: metric.failure.map(|why| why.to_string()),
    });
    HpaView {
        current: report.current,
        desired: report.desired,
        last_scale_ms: report.last_scale.map(|at| age_ms(at, now)),
        conditions: conditions.collect(),
        metrics: metrics.collect(),
    }
}

fn asked_view(asked: &AskedMetric) -> AskedMetricView {
    AskedMetricView { metric: asked.metric.clone(), query: asked.query.clone(), answer: asked.answer.clone() }
}
