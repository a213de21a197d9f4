//! The pods of a target, and which of them count for a metric.

use serde::{Deserialize, Serialize};
use settings::hpa::{HpaSettings, PodRequests, ResourceName};
use vocabulary::{PodId, Timestamp};

use super::samples::PodSample;

/// The pods that the target's selector matches, each once, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HpaPods(Vec<HpaPod>);

impl HpaPods {
    /// Pods in any order; of several pods with one id the last is kept.
    pub fn new(mut pods: Vec<HpaPod>) -> Self {
        pods.sort_by_key(|pod| pod.pod);
        // The later one is dropped, so its content goes to the earlier one's place.
        pods.dedup_by(|later, earlier| {
            let is_same = later.pod == earlier.pod;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        Self(pods)
    }

    /// Each pod, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &HpaPod> {
        self.0.iter()
    }

    pub(crate) fn as_slice(&self) -> &[HpaPod] {
        &self.0
    }
}

/// One pod, as the platform describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaPod {
    /// The id by which samples are matched to the pod.
    pub pod: PodId,
    /// How far its life has come.
    pub phase: HpaPodPhase,
    /// Whether it was told to end.
    pub is_deleted: bool,
    /// When it was started; `None` if it was not.
    pub started: Option<Timestamp>,
    /// The condition `Ready`; `None` where the platform has none.
    pub ready: Option<ReadyCondition>,
    /// The resources that the pod requests; targets in percent refer to them.
    pub requests: PodRequests,
}

/// The phases of a Kubernetes pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HpaPodPhase {
    /// Not all containers run yet.
    Pending,
    /// All containers were created, and at least one runs.
    Running,
    /// All containers have ended with success.
    Succeeded,
    /// All containers have ended, at least one of them with a failure.
    Failed,
    /// The node of the pod is not heard, so its state is unknown.
    Unknown,
}

/// The condition `Ready` of a pod, with the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyCondition {
    /// The value of the condition.
    pub status: ReadyStatus,
    /// The time of the last change of the value.
    pub since: Timestamp,
}

/// The three values of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyStatus {
    /// The pod is ready for requests.
    True,
    /// The pod is not ready for requests.
    False,
    /// The readiness is unknown; counts as ready, as in Kubernetes.
    Unknown,
}

/// Which pods count for a metric measured in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodGroup {
    /// On its way out or failed: as if it were not there.
    Ignored,
    /// Not there yet: what it uses says nothing about load.
    Unready,
    /// Nothing is known of it.
    Missing,
    /// The pod has a sample that counts.
    Ready,
}

impl HpaPod {
    /// For the `sample` of a resource, or of a metric of another kind.
    pub(super) fn group(
        &self,
        resource: Option<&ResourceName>,
        sample: Option<&PodSample>,
        settings: &HpaSettings,
        now: Timestamp,
    ) -> PodGroup {
        // Kubernetes' order: a pending pod is unready even if it has a sample, and one that runs without a
        // sample is missing even if it is not ready.
        if self.is_deleted || self.phase == HpaPodPhase::Failed {
            return PodGroup::Ignored;
        }
        if self.phase == HpaPodPhase::Pending {
            return PodGroup::Unready;
        }
        match sample {
            None => PodGroup::Missing,
            Some(sample)
                if resource == Some(&ResourceName::Cpu) && !self.is_settled(sample, settings, now) =>
            {
                PodGroup::Unready
            }
            Some(_) => PodGroup::Ready,
        }
    }

    /// Whether its CPU use says something about load: pods burn CPU to start. A pod that was ready and no
    /// longer is still counts.
    fn is_settled(&self, sample: &PodSample, settings: &HpaSettings, now: Timestamp) -> bool {
        let (Some(ready), Some(started)) = (self.ready, self.started) else { return false };
        // Young, it counts only if the whole window of its sample lies after it got ready: what came before
        // was its start.
        if started + settings.cpu_initialization_period > now {
            return ready.status != ReadyStatus::False && sample.at >= ready.since + sample.window;
        }
        ready.status != ReadyStatus::False || started + settings.initial_readiness_delay <= ready.since
    }

    /// Whether a total is multiplied by it. Even one that is on its way out, which is Kubernetes' way.
    pub(super) fn is_running_and_ready(&self) -> bool {
        self.phase == HpaPodPhase::Running
            && self.ready.is_some_and(|ready| ready.status == ReadyStatus::True)
    }
}
