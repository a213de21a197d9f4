//! What do activators hear about a revision, and when is that something new?
//!
//! A revision's facts, its pods and the routing in; an [`Assignment`] out. A new version exists only if
//! something in it changed, so a repeat of facts costs no message, and a version that an activator
//! acknowledged says exactly what it acts upon.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use settings::ClusterConfig;
use vocabulary::{
    Assignment, Epoch, KNATIVE_REVISION_KIND, PodAssignment, PodCount, PodName, PodState, ReplicaId,
    RevisionName, Routing, Slice, Standing, Version,
};

use crate::activators::HoldingState;
use crate::events::Urgency;
use crate::facts::{AppOutput, PodFacts, RevisionFacts};
use crate::readiness::{HeardOfPod, hold, pod_state, waiting_for};
use crate::registry::RevisionRecord;
use crate::slices::Share;

/// Numbers each word that must replace an earlier one: greater than anything an earlier owner sent, and than
/// all of our own so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Versions {
    counted: u64,
}

impl Versions {
    pub(crate) fn next(&mut self, epoch: Epoch) -> Version {
        self.counted += 1;
        Version { epoch, counter: self.counted }
    }
}

/// A revision's assignment, without its version, as one that serves it alone would have it; `wanted` is the
/// count that the revision is to have.
pub(crate) fn assignment(record: &RevisionRecord, wanted: PodCount, config: &ClusterConfig) -> Assignment {
    let facts = &record.facts;
    let pods = record.pods_by_name();
    let assigned = pods.iter().filter_map(|(pod, heard)| {
        let assigned = pod_assignment(pod, heard, pod.requests?, facts.container_concurrency);
        Some(PodAssignment { is_plain: is_plain(&facts.name, pod, heard), ..assigned })
    });
    // Whatever stands in an assignment may reach any client. Few texts have the advice, and it is worded for
    // those alone.
    let for_client = |text: String| {
        if text.contains(AppOutput::ADVICE) { AppOutput::advise_client(&text, &facts.name) } else { text }
    };
    let waits_for = waiting_for(wanted, AppOutput::Withheld, pods.iter().copied());
    Assignment {
        revision: facts.name.clone(),
        version: Version::default(),
        hosts: facts.hosts(),
        ports: facts.ports(),
        routing: record.routing(),
        container_concurrency: facts.container_concurrency,
        timeouts: facts.timeouts,
        pods: assigned.collect(),
        hop_keys: facts.hop_keys.clone(),
        waiting_for: for_client(waits_for),
        standing: Standing::Assigned,
        // Another autoscaler that decides in our place may have asked for a pod: then one is on its way.
        hold: hold_of_revision(facts)
            .filter(|_| wanted == PodCount::ZERO && !record.has_ready_pod())
            .or_else(|| hold(pods.iter().copied()).map(for_client)),
        ignored_user_agents: facts.settings.effective_ignored_user_agents(config),
        head_size_limit: facts.settings.effective_head_size_limit(config),
        waiting_page: facts.waiting_page.clone(),
    }
}

/// Why no pod would start for waiting requests: the platform's own hold, or the revision is paused.
fn hold_of_revision(facts: &RevisionFacts) -> Option<String> {
    let paused = (facts.settings.paused == Some(true)).then(|| "paused".to_owned());
    facts.hold.clone().or(paused)
}

/// A pod's limit was fixed when it was made, so its own word on it is better than the revision's present one.
fn pod_assignment(pod: &PodFacts, heard: &HeardOfPod, address: SocketAddr, limit: u32) -> PodAssignment {
    PodAssignment {
        pod: pod.name.clone(),
        address,
        exits: pod.exits.clone(),
        state: pod_state(pod, heard),
        slots: heard.container_concurrency.unwrap_or(limit),
        slice: Slice::Undivided,
        is_plain: false,
    }
}

/// A pod without a link has a queue-proxy of Knative's. In a pod that Knative's controller made its own hello
/// proves that it is ebb's: the setting that says so may have been changed by half.
fn is_plain(revision: &RevisionName, pod: &PodFacts, heard: &HeardOfPod) -> bool {
    let is_knatives = revision.kind() == KNATIVE_REVISION_KIND;
    let has_spoken = heard.container_concurrency.is_some();
    pod.link.is_some_and(|link| !link.channel.is_link()) || (is_knatives && !has_spoken)
}

/// How soon `next` must be heard after `previous`, if it is another one but for its version, which it shares
/// with the previous one.
pub(crate) fn urgency(previous: Option<&Assignment>, next: &Assignment) -> Option<Urgency> {
    let Some(previous) = previous else { return Some(Urgency::AtOnce) };
    if previous == next {
        return None;
    }
    let serves_alike = previous.routing == next.routing && usable(previous).eq(usable(next));
    Some(if serves_alike { Urgency::Soon } else { Urgency::AtOnce })
}

/// The pods that take requests, and how they are told of them: one that knows keys takes a request without
/// one for a client's.
fn usable(assignment: &Assignment) -> impl Iterator<Item = (&PodName, SocketAddr, bool)> {
    let ready = assignment.pods.iter().filter(|pod| pod.state == PodState::Ready);
    ready.map(|pod| (&pod.pod, pod.address, pod.is_plain))
}

/// How soon activators must hear that others than before share the slots of a revision's pods; `None` if the
/// same do, or if the slots are not divided and were not.
pub(crate) fn division_urgency(
    record: &RevisionRecord,
    sharers: &[ReplicaId],
    next: &Assignment,
) -> Option<Urgency> {
    let previous = record.assignment.as_deref();
    let was_divided = previous.is_some_and(|previous| is_divided(previous, &record.sharers));
    let is_news = record.sharers != sharers && (was_divided || is_divided(next, sharers));
    is_news.then_some(Urgency::Soon)
}

/// Whether several activators divide the pods of a revision among them: only where pods have a limit that
/// they could overfill.
fn is_divided(assignment: &Assignment, sharers: &[ReplicaId]) -> bool {
    assignment.container_concurrency > 0
        && sharers.len() > 1
        && assignment.routing == Routing::ThroughActivator
}

/// What one activator is told of pods whose slots `sharers` share. One that has no share may try all pods.
pub(crate) fn for_member(
    whole: &Arc<Assignment>,
    sharers: &[ReplicaId],
    member: ReplicaId,
) -> Arc<Assignment> {
    if !is_divided(whole, sharers) {
        return Arc::clone(whole);
    }
    let index = sharers.iter().position(|&other| other == member);
    let mut order: Vec<usize> = (0..whole.pods.len()).collect();
    if whole.revision.kind() == KNATIVE_REVISION_KIND {
        // Knative's activators beside ours divide the pods in the order of their addresses, as text.
        order.sort_by_cached_key(|&place| whole.pods[place].address.to_string());
    }
    // Over all pods, ready or not: else each one that gets ready would move pods between the slices of all.
    let share = Share { index, activators: sharers.len() }.of(order.len());
    let own: Vec<usize> = share.map(|rank| order[rank]).collect();
    let mut part = Assignment::clone(whole);
    for (index, pod) in part.pods.iter_mut().enumerate() {
        pod.slice = if own.contains(&index) { Slice::Inside } else { Slice::Outside };
    }
    Arc::new(part)
}

/// What one that no longer serves the revision is told: as much as it needs for what it still holds.
pub(crate) fn for_retired(whole: &Assignment) -> Arc<Assignment> {
    Arc::new(Assignment { standing: Standing::Retired, ..whole.clone() })
}

/// What one activator is told of a revision, of whose slots `sharers` have their shares.
pub(crate) fn part(
    whole: &Arc<Assignment>,
    sharers: &[ReplicaId],
    activator: ReplicaId,
    standing: HoldingState,
) -> Arc<Assignment> {
    match standing {
        HoldingState::Assigned => for_member(whole, sharers, activator),
        HoldingState::Retired | HoldingState::Emptied { .. } | HoldingState::Forgetting { .. } => {
            for_retired(whole)
        }
    }
}

#[cfg(test)]
mod tests;
