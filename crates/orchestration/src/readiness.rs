//! Is a pod ready? The one answer, for decisions, assignments and people alike.
//!
//! Its way out comes first, then its own word on its link, then the platform's. A lost link changes nothing:
//! the pod serves on. But a pod whose link stood and where no process listens now is being restarted: it is
//! not ready until it says so again, or, after a while, until the platform does.

use std::time::Duration;

use scaling::PodPhase;
use serde::{Deserialize, Serialize};
use vocabulary::{AdoptedConnections, LateBytes, Load, PodCount, PodState, Timestamp, Version};

use crate::facts::{AppOutput, PodFacts};
use crate::host::HostSigns;

/// How long after its refusal a pod must speak for itself, before the platform's word counts again.
pub(crate) const REFUSAL_COUNTS: Duration = Duration::from_secs(5);

/// What is said of a pod whose host is lost.
const LOST: &str = "its link is silent and its port takes no connection, as if its node were dead; until it is heard again no connection is led to it while another pod serves";

/// What a link has told about a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeardOfPod {
    /// The last state it said, on this link or an earlier one.
    pub(crate) state: Option<PodState>,
    /// Why it is not ready, in its own words.
    pub(crate) detail: String,
    pub(crate) connection: LinkCondition,
    /// The limit it was started with; 0 means none.
    pub(crate) container_concurrency: Option<u32>,
    /// The load of the pod's last full second.
    pub(crate) load: Load,
    /// Why no link to it could be had for a minute.
    pub(crate) blocked: Option<String>,
    /// The settings that it has in force.
    pub(crate) settings: Option<Version>,
    /// What its app sent behind whole responses, as it was last said.
    pub(crate) late_bytes: Option<HeardLateBytes>,
    /// What is left of the connections from before an adoption; `None` while nothing was said of them.
    pub(crate) adopted: Option<AdoptedConnections>,
    /// What its link tells of whether the pod's host lives.
    pub(crate) host: HostSigns,
}

/// Bytes that an app sent behind whole responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeardLateBytes {
    /// The connections on which they came.
    pub(crate) connections: u32,
    /// When its connections are used for further requests again.
    pub(crate) reuse_at: Timestamp,
}

impl HeardLateBytes {
    pub(crate) fn new(late: LateBytes, now: Timestamp) -> Self {
        Self { connections: late.connections, reuse_at: now + late.reuse_in }
    }

    /// What is left of them; `None` once connections are used again.
    pub(crate) fn at(self, now: Timestamp) -> Option<LateBytes> {
        let Self { connections, reuse_at } = self;
        let reuse_in = reuse_at.checked_since(now).filter(|left| !left.is_zero())?;
        Some(LateBytes { connections, reuse_in })
    }
}

/// How a pod's link is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LinkCondition {
    /// There is none, and that says nothing.
    #[default]
    Down,
    /// The link stands, and the pod's hello has come.
    Up,
    /// The port where the link stood is closed.
    Refused,
    /// That port has been closed for [`REFUSAL_COUNTS`] or longer.
    RefusedLong,
}

/// What a pod is to activators.
pub(crate) fn pod_state(facts: &PodFacts, heard: &HeardOfPod) -> PodState {
    if facts.leaving || facts.phase == PodPhase::Terminating {
        return PodState::Draining;
    }
    let said = heard.state.unwrap_or(PodState::Unheard);
    match (heard.connection, facts.platform_ready) {
        (LinkCondition::Up, _) if said != PodState::Unheard => said,
        (LinkCondition::Refused, _)
        | (LinkCondition::RefusedLong, None)
        | (LinkCondition::Up | LinkCondition::Down | LinkCondition::RefusedLong, Some(false)) => {
            PodState::Unready
        }
        // Not what the pod said last: without a link that is old, and a platform that probes knows better.
        (LinkCondition::Up | LinkCondition::Down | LinkCondition::RefusedLong, Some(true)) => PodState::Ready,
        (LinkCondition::Up | LinkCondition::Down, None) => said,
    }
}

/// What a revision waits for while no pod is usable, for people; empty while one is.
pub(crate) fn waiting_for<'a>(
    wanted: PodCount,
    output: AppOutput,
    pods: impl Iterator<Item = (&'a PodFacts, &'a HeardOfPod)> + Clone,
) -> String {
    if pods.clone().any(|(pod, heard)| pod_state(pod, heard) == PodState::Ready && pod.requests.is_some()) {
        return String::new();
    }
    let mut troubles = pods.clone().filter_map(|(pod, heard)| Some((pod, pod_trouble(pod, heard, output)?)));
    if let Some((pod, trouble)) = troubles.next() {
        return format!("pod {}: {trouble}", pod.name);
    }
    let coming = pods.filter(|(pod, heard)| pod_state(pod, heard) != PodState::Draining).count();
    match (coming, wanted) {
        (0, PodCount::ZERO) => "the autoscaler to ask for a pod".to_owned(),
        (0, _) => "the platform to start a pod".to_owned(),
        (1, _) => "its pod to get ready".to_owned(),
        (pods, _) => format!("one of its {pods} pods to get ready"),
    }
}

/// Why no request should wait, if the platform says so of every pod that stays and none is usable. A revision
/// without pods holds no request: the request that makes it start a pod deserves the attempt.
pub(crate) fn hold<'a>(pods: impl Iterator<Item = (&'a PodFacts, &'a HeardOfPod)>) -> Option<String> {
    let mut first = None;
    for (pod, heard) in pods.filter(|(pod, heard)| pod_state(pod, heard) != PodState::Draining) {
        if pod_state(pod, heard) == PodState::Ready {
            return None;
        }
        // One pod that may still get ready is worth waiting for, whatever is said of the others.
        let why = pod.hold.as_ref()?;
        first.get_or_insert(why);
    }
    first.cloned()
}

/// Why a pod is in trouble or not ready, for people: the platform's word, then its own, then that of its
/// link.
pub(crate) fn pod_trouble(pod: &PodFacts, heard: &HeardOfPod, output: AppOutput) -> Option<String> {
    let own =
        (!heard.detail.is_empty() && heard.state != Some(PodState::Ready)).then(|| heard.detail.clone());
    platform_trouble(pod, output).or(own).or_else(|| link_trouble(heard))
}

/// The same without the own word of a pod that starts: every app refuses its first probes.
pub(crate) fn trouble_beside_start(pod: &PodFacts, heard: &HeardOfPod, output: AppOutput) -> Option<String> {
    match heard.state {
        Some(PodState::Starting) => platform_trouble(pod, output).or_else(|| link_trouble(heard)),
        Some(PodState::Unheard | PodState::Ready | PodState::Unready | PodState::Draining) | None => {
            pod_trouble(pod, heard, output)
        }
    }
}

fn platform_trouble(pod: &PodFacts, output: AppOutput) -> Option<String> {
    let platforms = match output {
        AppOutput::Shown => pod.trouble.as_ref(),
        AppOutput::Withheld => pod.trouble_without_output.as_ref().or(pod.trouble.as_ref()),
    };
    platforms.cloned()
}

fn link_trouble(heard: &HeardOfPod) -> Option<String> {
    let blocked =
        || heard.blocked.as_ref().map(|reason| format!("the autoscaler has no link to it: {reason}"));
    heard.host.is_lost().then(|| LOST.to_owned()).or_else(blocked)
}

#[cfg(test)]
pub(crate) mod tests;
