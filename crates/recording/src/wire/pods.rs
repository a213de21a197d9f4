//! Facts of pods, to the record and back. Left out: details for people, and the lines that apps printed.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{PodFacts, PodFailure, PodKill};
use scaling::PodPhase;
use vocabulary::{AdoptionId, PodExits, RevisionName, Timestamp};

use super::facts_proto::{PodEndMessage, PodFactsMessage, PodsMessage};
use super::{fields, links};
use crate::frame_fault::FrameFault;
use crate::secrets::SecretHasher;

pub(super) fn pods_out(revision: &RevisionName, pods: &[PodFacts], secrets: &SecretHasher) -> PodsMessage {
    let pods = pods.iter().map(|pod| pod_out(pod, secrets)).collect();
    PodsMessage { revision: revision.as_str().to_owned(), pods }
}

fn pod_out(pod: &PodFacts, secrets: &SecretHasher) -> PodFactsMessage {
    PodFactsMessage {
        name: pod.name.as_str().to_owned(),
        phase: match pod.phase {
            PodPhase::Pending => 1,
            PodPhase::Running => 2,
            PodPhase::Terminating => 3,
        },
        leaving: pod.leaving,
        ends_in: pod.ends_in.map(fields::nanoseconds),
        platform_ready: pod.platform_ready,
        requests: pod.requests.map(|address| address.to_string()).unwrap_or_default(),
        exits: fields::ports_out(&pod.exits.0),
        link: pod.link.as_ref().map(|link| links::address_out(link, secrets)),
        adoption: pod.adoption.map(|adoption| adoption.0),
        outdated: pod.outdated,
        awaits_core: pod.awaits_core,
        trouble: pod.trouble.clone(),
        trouble_without_output: pod.trouble_without_output.clone(),
        hold: pod.hold.clone(),
    }
}

pub(super) fn pods_in(pods: PodsMessage) -> Result<Vec<PodFacts>, FrameFault> {
    pods.pods.into_iter().map(pod_in).collect()
}

fn pod_in(pod: PodFactsMessage) -> Result<PodFacts, FrameFault> {
    let requests = (!pod.requests.is_empty()).then_some(pod.requests);
    Ok(PodFacts {
        name: fields::pod(&pod.name),
        phase: match pod.phase {
            1 => PodPhase::Pending,
            2 => PodPhase::Running,
            3 => PodPhase::Terminating,
            other => return Err(fields::unknown("the phase of a pod", other)),
        },
        leaving: pod.leaving,
        ends_in: pod.ends_in.map(Duration::from_nanos),
        platform_ready: pod.platform_ready,
        requests: requests.map(|text| fields::socket("the address of a pod", &text)).transpose()?,
        exits: PodExits(fields::ports_in("the exits of a pod", pod.exits)?),
        link: pod.link.as_ref().map(links::address_in).transpose()?,
        adoption: pod.adoption.map(AdoptionId),
        outdated: pod.outdated,
        awaits_core: pod.awaits_core,
        trouble: pod.trouble,
        trouble_without_output: pod.trouble_without_output,
        hold: pod.hold,
        details: BTreeMap::new(),
    })
}

pub(super) fn failure_out(revision: &RevisionName, failure: &PodFailure) -> PodEndMessage {
    PodEndMessage {
        revision: revision.as_str().to_owned(),
        pod: failure.pod.as_str().to_owned(),
        at: failure.at.as_nanos(),
        reason: failure.reason.clone(),
    }
}

pub(super) fn failure_in(end: PodEndMessage) -> PodFailure {
    PodFailure {
        pod: fields::pod(&end.pod),
        at: Timestamp::from_nanos(end.at),
        reason: end.reason,
        last_lines: Vec::new(),
    }
}

pub(super) fn kill_out(revision: &RevisionName, kill: &PodKill) -> PodEndMessage {
    PodEndMessage {
        revision: revision.as_str().to_owned(),
        pod: kill.pod.as_str().to_owned(),
        at: kill.at.as_nanos(),
        reason: kill.reason.clone(),
    }
}

pub(super) fn kill_in(end: PodEndMessage) -> PodKill {
    PodKill { pod: fields::pod(&end.pod), at: Timestamp::from_nanos(end.at), reason: end.reason }
}
