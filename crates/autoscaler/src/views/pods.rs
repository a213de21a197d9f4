//! The pods of a revision as the API shows them, those that ended and those that failed among them.

use orchestration::{AppOutput, EndedPod, PodFailure, PodKill, PodSnapshot, RecentPod};
use scaling::PodPhase;
use vocabulary::{LateBytes, PodState, Timestamp};

use super::values::age_ms;
use crate::api_types::{EndedPodView, FailureView, KillView, LateBytesView, PodView};

pub(super) fn pod_view(pod: &PodSnapshot<'_>, life: Option<RecentPod>, now: Timestamp) -> PodView {
    let facts = pod.facts;
    let ago = |at: Option<Timestamp>| at.map(|at| age_ms(at, now));
    PodView {
        name: facts.name.clone(),
        phase: phase(facts.phase).to_owned(),
        // It has no process that could be heard.
        state: if facts.awaits_core { PodState::Starting } else { pod.state },
        leaving: facts.leaving,
        outdated: facts.outdated,
        linked: pod.is_linked,
        in_flight: pod.in_flight,
        queued: pod.queued,
        late_bytes: pod.late_bytes.map(late_bytes_view),
        heard_ms_ago: pod.heard_at.map(|at| age_ms(at, now)),
        asked_ms_ago: ago(life.and_then(|life| life.start.asked_at)),
        known_ms_ago: ago(life.map(|life| life.start.known_at)),
        running_ms_ago: ago(life.and_then(|life| life.start.running_at)),
        ready_ms_ago: ago(life.and_then(|life| life.start.ready_at)),
        ending_ms_ago: ago(life.and_then(|life| life.ending_at)),
        requests: facts.requests,
        link: facts.link.map(|link| link.socket),
        awaits_core: facts.awaits_core,
        trouble: pod.trouble.clone(),
        details: facts.details.clone(),
    }
}

pub(super) fn ended_pod_view(pod: &EndedPod, now: Timestamp) -> EndedPodView {
    let EndedPod { name, life, gone_at, why } = pod;
    let RecentPod { start, ending_at, .. } = life;
    let ago = |at: Option<Timestamp>| at.map(|at| age_ms(at, now));
    EndedPodView {
        name: name.clone(),
        asked_ms_ago: ago(start.asked_at),
        known_ms_ago: age_ms(start.known_at, now),
        running_ms_ago: ago(start.running_at),
        ready_ms_ago: ago(start.ready_at),
        ending_ms_ago: ago(*ending_at),
        gone_ms_ago: age_ms(*gone_at, now),
        why: why.clone(),
    }
}

pub(super) fn failure_view(failure: &PodFailure, output: AppOutput, now: Timestamp) -> FailureView {
    let is_withheld = output == AppOutput::Withheld && !failure.last_lines.is_empty();
    FailureView {
        pod: failure.pod.clone(),
        age_ms: age_ms(failure.at, now),
        reason: failure.reason.clone(),
        last_lines: if is_withheld { Vec::new() } else { failure.last_lines.clone() },
        withheld: is_withheld.then(|| AppOutput::ADVICE.to_owned()),
    }
}

pub(super) fn kill_view(kill: &PodKill, now: Timestamp) -> KillView {
    let PodKill { pod, at, reason } = kill;
    KillView { pod: pod.clone(), age_ms: age_ms(*at, now), reason: reason.clone() }
}

fn late_bytes_view(late: LateBytes) -> LateBytesView {
    LateBytesView {
        connections: late.connections,
        reuse_in_ms: u64::try_from(late.reuse_in.as_millis()).unwrap_or(u64::MAX),
    }
}

fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "pending",
        PodPhase::Running => "running",
        PodPhase::Terminating => "terminating",
    }
}
