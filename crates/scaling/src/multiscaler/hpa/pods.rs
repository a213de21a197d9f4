//! The pods of a revision for class hpa: since when they run and are ready, and their use of CPU and memory.
//!
//! The times are those at which we heard of it. After a restart they begin anew, so for a while CPU counts
//! only from the first whole window on: the cautious side.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::hpa::{PodRequests, ResourceName};
use vocabulary::{PodCount, PodId, ResourceUsage, Timestamp};

use crate::hpa::{HpaPod, HpaPodPhase, HpaPods, PodSample, PodSamples, ReadyCondition, ReadyStatus};
use crate::multiscaler::{PodFact, PodPhase};

/// A pod reports every second. One that has not for this long has no sample: what it used then says nothing
/// of now.
const USAGE_IS_NEWS: Duration = Duration::from_secs(15);

/// The pods of one revision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::multiscaler) struct HpaPodBook {
    pods: BTreeMap<PodId, ObservedPodLife>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ObservedPodLife {
    phase: PodPhase,
    started: Option<Timestamp>,
    ready: ReadyCondition,
    usage: Option<(ResourceUsage, Timestamp)>,
}

impl HpaPodBook {
    /// All pods as they now are.
    pub(super) fn replace(&mut self, facts: impl Iterator<Item = PodFact>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.pods);
        for fact in facts {
            let status = if fact.is_ready { ReadyStatus::True } else { ReadyStatus::False };
            // All pods are told at each change of any: `since` moves only for one whose own readiness has
            // changed.
            let known = before.remove(&fact.pod);
            let since = known.filter(|life| life.ready.status == status).map_or(now, |life| life.ready.since);
            let started = known.and_then(|life| life.started);
            let life = ObservedPodLife {
                phase: fact.phase,
                started: started.or((fact.phase != PodPhase::Pending).then_some(now)),
                ready: ReadyCondition { status, since },
                usage: known.and_then(|life| life.usage),
            };
            self.pods.insert(fact.pod, life);
        }
    }

    pub(super) fn note_usage(&mut self, pod: PodId, usage: ResourceUsage, now: Timestamp) {
        if let Some(life) = self.pods.get_mut(&pod) {
            life.usage = Some((usage, now));
        }
    }

    /// The number of pods that were not told to end (`status.replicas`).
    pub(super) fn present(&self) -> PodCount {
        PodCount::of(self.pods.values().filter(|life| life.phase != PodPhase::Terminating).count())
    }

    /// All pods, as the algorithm takes them.
    pub(super) fn all(&self, requests: &PodRequests) -> HpaPods {
        let pod = |(&pod, life): (&PodId, &ObservedPodLife)| HpaPod {
            pod,
            phase: match life.phase {
                PodPhase::Pending => HpaPodPhase::Pending,
                // To Kubernetes a pod that ends still runs, and is marked as deleted.
                PodPhase::Running | PodPhase::Terminating => HpaPodPhase::Running,
            },
            is_deleted: life.phase == PodPhase::Terminating,
            started: life.started,
            ready: Some(life.ready),
            requests: requests.clone(),
        };
        HpaPods::new(self.pods.iter().map(pod).collect())
    }

    /// The use of a resource by each pod that reported it lately.
    pub(super) fn samples(&self, resource: &ResourceName, now: Timestamp) -> PodSamples {
        let sample = |(&pod, life): (&PodId, &ObservedPodLife)| {
            let (usage, at) = life.usage.filter(|(_, at)| now.saturating_since(*at) < USAGE_IS_NEWS)?;
            let value = match resource {
                ResourceName::Cpu => usage.cpu,
                ResourceName::Memory => usage.memory,
                ResourceName::Other(_) => return None,
            };
            Some(PodSample { pod, value, at, window: usage.window })
        };
        PodSamples::new(self.pods.iter().filter_map(sample).collect())
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::MilliValue;

    use super::*;

    fn fact(pod: u32, phase: PodPhase, is_ready: bool) -> PodFact {
        PodFact { pod: PodId(pod), phase, is_ready, is_reachable: true, is_outdated: false }
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    #[test]
    fn times_are_those_of_the_changes() {
        let mut book = HpaPodBook::default();
        book.replace([fact(1, PodPhase::Pending, false)].into_iter(), at(1));
        book.replace([fact(1, PodPhase::Running, false)].into_iter(), at(2));
        book.replace([fact(1, PodPhase::Running, true)].into_iter(), at(3));
        book.replace(
            [fact(1, PodPhase::Running, true), fact(2, PodPhase::Terminating, true)].into_iter(),
            at(4),
        );
        let pods = book.all(&PodRequests::default());
        let [one, two] = pods.as_slice() else { panic!("two pods: {pods:?}") };
        assert_eq!((one.started, one.ready.unwrap().since), (Some(at(2)), at(3)));
        assert_eq!((two.is_deleted, two.started), (true, Some(at(4))));
        assert_eq!(book.present(), PodCount::ONE);
    }

    #[test]
    fn usage_older_than_fifteen_seconds_is_no_sample() {
        let mut book = HpaPodBook::default();
        book.replace([fact(1, PodPhase::Running, true)].into_iter(), at(1));
        let window = Duration::from_secs(15);
        let usage = ResourceUsage { cpu: MilliValue::new(250), memory: MilliValue::new(7), window };
        book.note_usage(PodId(1), usage, at(2));
        book.note_usage(PodId(9), usage, at(2));
        let expected = PodSample { pod: PodId(1), value: MilliValue::new(250), at: at(2), window };
        assert_eq!(book.samples(&ResourceName::Cpu, at(16)), PodSamples::new(vec![expected]));
        assert_eq!(book.samples(&ResourceName::Cpu, at(17)), PodSamples::default());
    }
}
