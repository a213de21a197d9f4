//! What do activators hear about a revision, and when is that something new?
//!
//! Pure: a revision's facts, its pods as the platform and their links describe them, and the routing in; an [`Assignment`] out. A new
//! version exists only if something in it changed, so a repeat of facts costs no message, and a version that an activator
//! acknowledged says exactly what it acts upon.

use std::cmp::Ordering;
use std::net::SocketAddr;
use std::sync::Arc;

use platform::{PodFacts, RevisionFacts};
use scaling::PodPhase;
use vocabulary::{
    Assignment, Epoch, Load, PodAssignment, PodCount, PodName, PodState, Routing, Slice, Standing, Version,
};

/// Numbers assignments: greater than anything an earlier autoscaler sent, and than all of our own so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    last: Version,
}

impl Versions {
    pub(crate) fn new(epoch: u64) -> Self {
        Self { last: Version { epoch: Epoch(epoch), counter: 0 } }
    }

    pub(crate) fn next(&mut self) -> Version {
        self.last.counter += 1;
        self.last
    }
}

/// How soon activators must hear of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A pod became usable or stopped being so, or the path changed.
    AtOnce,
    /// Anything else: with the next frame for the revision, at most every 20 ms.
    Soon,
}

/// What a link has told about a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    /// The last state it said, on this link or an earlier one.
    pub(crate) state: Option<PodState>,
    /// Why it is not ready, in its own words.
    pub(crate) detail: String,
    /// Whether the link is up.
    pub(crate) is_linked: bool,
    /// The limit it was started with; 0 means none.
    pub(crate) container_concurrency: Option<u32>,
    /// Its last full second.
    pub(crate) load: Load,
    /// Why no link to it could be had for a minute.
    pub(crate) blocked: Option<String>,
}

/// The state of a pod for activators: its way out first, then its own word, then the platform's. A lost link changes nothing unless
/// the platform has a word.
pub(crate) fn pod_state(facts: &PodFacts, heard: &Heard) -> PodState {
    if facts.leaving || facts.phase == PodPhase::Terminating {
        return PodState::Draining;
    }
    let said = heard.state.unwrap_or(PodState::Unheard);
    if heard.is_linked && said != PodState::Unheard {
        return said;
    }
    match facts.platform_ready {
        Some(true) => PodState::Ready,
        Some(false) => PodState::Unready,
        None => said,
    }
}

/// A revision's assignment, without its version.
pub(crate) fn assignment<'a>(
    facts: &RevisionFacts,
    wanted: PodCount,
    routing: Routing,
    pods: impl Iterator<Item = (&'a PodFacts, &'a Heard)> + Clone,
) -> Assignment {
    let assigned = pods.clone().filter_map(|(pod, heard)| {
        Some(pod_assignment(pod, heard, pod.requests?, facts.container_concurrency))
    });
    Assignment {
        revision: facts.name.clone(),
        version: Version::default(),
        hosts: facts.hosts.clone(),
        routing,
        container_concurrency: facts.container_concurrency,
        timeouts: facts.timeouts,
        pods: assigned.collect(),
        hop_keys: facts.hop_keys.clone(),
        waiting_for: waiting_for(wanted, pods.clone()),
        hold: hold(pods),
        standing: Standing::Assigned,
    }
}

/// Why no request should wait, if the platform says so of every pod that stays and none is usable. A revision without pods holds nobody: the request that
/// makes it start one deserves the attempt.
pub(crate) fn hold<'a>(pods: impl Iterator<Item = (&'a PodFacts, &'a Heard)>) -> Option<String> {
    let mut first = None;
    for (pod, heard) in pods.filter(|(pod, heard)| pod_state(pod, heard) != PodState::Draining) {
        if pod_state(pod, heard) == PodState::Ready {
            return None;
        }
        let why = pod.hold.as_ref()?;
        first.get_or_insert(why);
    }
    first.cloned()
}

/// A pod's limit was fixed when it was made, so its own word on it is better than the revision's present one.
fn pod_assignment(pod: &PodFacts, heard: &Heard, address: SocketAddr, limit: u32) -> PodAssignment {
    PodAssignment {
        pod: pod.name.clone(),
        address,
        state: pod_state(pod, heard),
        slots: heard.container_concurrency.unwrap_or(limit),
        slice: Slice::Undivided,
    }
}

/// What a revision waits for while no pod is usable, for people; empty while one is.
pub(crate) fn waiting_for<'a>(
    wanted: PodCount,
    pods: impl Iterator<Item = (&'a PodFacts, &'a Heard)> + Clone,
) -> String {
    if pods.clone().any(|(pod, heard)| pod_state(pod, heard) == PodState::Ready && pod.requests.is_some()) {
        return String::new();
    }
    let mut troubles = pods.clone().filter_map(|(pod, heard)| Some((pod, pod_trouble(pod, heard)?)));
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

/// Why a pod is in trouble or not ready, for people: the platform's word, then its own, then that of its link.
pub(crate) fn pod_trouble(pod: &PodFacts, heard: &Heard) -> Option<String> {
    let own =
        (!heard.detail.is_empty() && heard.state != Some(PodState::Ready)).then(|| heard.detail.clone());
    let blocked =
        || heard.blocked.as_ref().map(|reason| format!("the autoscaler has no link to it: {reason}"));
    pod.trouble.clone().or(own).or_else(blocked)
}

/// The next assignment after `previous`, if anything changed, and how soon it must be heard.
pub(crate) fn revise(
    previous: Option<&Assignment>,
    mut next: Assignment,
    versions: &mut Versions,
) -> Option<(Arc<Assignment>, Urgency)> {
    let Some(previous) = previous else {
        next.version = versions.next();
        return Some((Arc::new(next), Urgency::AtOnce));
    };
    next.version = previous.version;
    if *previous == next {
        return None;
    }
    let same = previous.routing == next.routing && usable(previous).eq(usable(&next));
    next.version = versions.next();
    Some((Arc::new(next), if same { Urgency::Soon } else { Urgency::AtOnce }))
}

fn usable(assignment: &Assignment) -> impl Iterator<Item = (&PodName, SocketAddr)> {
    (assignment.pods.iter()).filter(|pod| pod.state == PodState::Ready).map(|pod| (&pod.pod, pod.address))
}

/// The `count` pods whose end disturbs least: those that serve nobody first, then the least loaded; names break ties.
pub(crate) fn end_first<'a>(
    pods: impl Iterator<Item = (&'a PodFacts, &'a Heard)>,
    count: usize,
) -> Vec<PodName> {
    let mut candidates: Vec<_> = pods.filter(|(pod, _)| !pod.leaving).collect();
    candidates.sort_by(|(pod, heard), (other_pod, other_heard)| {
        let is_ready = |pod, heard| pod_state(pod, heard) == PodState::Ready;
        is_ready(pod, heard)
            .cmp(&is_ready(other_pod, other_heard))
            .then_with(|| burden(heard).partial_cmp(&burden(other_heard)).unwrap_or(Ordering::Equal))
            .then_with(|| pod.name.cmp(&other_pod.name))
    });
    candidates.into_iter().take(count).map(|(pod, _)| pod.name.clone()).collect()
}

fn burden(heard: &Heard) -> (f64, f64) {
    (heard.load.concurrency.value(), heard.load.request_rate.value())
}

#[cfg(test)]
mod tests;
