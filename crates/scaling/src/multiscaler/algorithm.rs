//! Which class finds a revision's count, and what was its last answer?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use vocabulary::{ExcessBurstCapacity, PodCount, Routing, Timestamp};

use super::beginning::RevisionBeginning;
use super::hpa::HpaScaler;
use super::outcome::{NonzeroCause, load_sentence};
use super::pods::RevisionPods;
use super::{ScaleEnding, routing};
use crate::decider::{Decider, Observation, Verdict};
use crate::decision::{BoundText, Inputs, Mode, Reason, Sentence};
use crate::hpa::{CountChange, routing_without_own};
use crate::scale_to_zero::KeptBy;

/// How often a revision is evaluated when nothing presses (Knative's tick, not configurable there either).
pub(super) const TICK: Duration = Duration::from_secs(2);

/// The classes that are run here.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every revision is of class kpa, and is looked at where it lies"
)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Algorithm {
    /// Requests decide, every two seconds and whenever they surge.
    Kpa(KpaScaler),
    /// Metrics of all kinds decide, at every sync.
    Hpa(Box<HpaScaler>),
}

/// Class kpa of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KpaScaler {
    decider: Decider,
    /// The last evaluation that had data; `None` before the first.
    verdict: Option<Verdict>,
}

impl KpaScaler {
    fn new(spec: &ScalingSpec, count: PodCount, now: Timestamp) -> Self {
        Self { decider: Decider::new(spec, count, now), verdict: None }
    }

    pub(super) fn decide(&mut self, spec: &ScalingSpec, observation: &Observation, now: Timestamp) {
        self.verdict = Some(self.decider.decide(spec, observation, now));
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }
}

/// Why a count of class hpa is not zero while its minimum is above zero.
fn hpa_minimum(spec: &ScalingSpec) -> (NonzeroCause, Sentence) {
    let least = spec.min_scale;
    match spec.floor {
        Some(floor) => {
            let text = BoundText::Floor { least, cause: floor.cause };
            (NonzeroCause::Kept(KeptBy::PlatformFloor), text.into())
        }
        None => (NonzeroCause::Kept(KeptBy::MinScale), BoundText::MinReplicas { least }.into()),
    }
}

impl Algorithm {
    /// The scaler of class kpa, where requests decide.
    pub(super) fn kpa(&self) -> Option<&KpaScaler> {
        match self {
            Self::Kpa(kpa) => Some(kpa),
            Self::Hpa(_) => None,
        }
    }

    pub(super) fn kpa_mut(&mut self) -> Option<&mut KpaScaler> {
        match self {
            Self::Kpa(kpa) => Some(kpa),
            Self::Hpa(_) => None,
        }
    }

    /// The scaler of class hpa, where metrics of all kinds decide.
    pub(super) fn hpa(&self) -> Option<&HpaScaler> {
        match self {
            Self::Kpa(_) => None,
            Self::Hpa(hpa) => Some(hpa),
        }
    }

    pub(super) fn hpa_mut(&mut self) -> Option<&mut HpaScaler> {
        match self {
            Self::Kpa(_) => None,
            Self::Hpa(hpa) => Some(hpa),
        }
    }

    /// Why the load needs pods, as the last answer of the class says it; `None` before the first answer.
    pub(super) fn load_cause(&self, spec: &ScalingSpec, now: Timestamp) -> Option<(NonzeroCause, Sentence)> {
        match self {
            Self::Kpa(kpa) => kpa.verdict().map(|verdict| load_sentence(spec, verdict, now)),
            // Metrics of class hpa say how many; that it is not zero, the minimum says first.
            Self::Hpa(hpa) if spec.min_scale > PodCount::ZERO => hpa.desired().map(|_| hpa_minimum(spec)),
            Self::Hpa(hpa) => hpa.reasons().last().map(|last| (NonzeroCause::Load, last.text)),
        }
    }

    pub(super) fn new(spec: &ScalingSpec, beginning: RevisionBeginning) -> Self {
        let (count, now) = (beginning.held_count(), beginning.now);
        match &spec.hpa {
            None => Self::Kpa(KpaScaler::new(spec, count, now)),
            Some(_) => Self::Hpa(Box::new(HpaScaler::new(spec, beginning))),
        }
    }

    /// Follows changed settings. Another class begins with the count that there is, as after a restart.
    pub(super) fn update(
        &mut self,
        spec: &ScalingSpec,
        wanted: PodCount,
        pods: &RevisionPods,
        now: Timestamp,
    ) {
        match (&mut *self, &spec.hpa) {
            (Self::Kpa(kpa), None) => kpa.decider.update(spec, now),
            (Self::Hpa(hpa), Some(settings)) => hpa.update(spec, settings, wanted, now),
            (Self::Kpa(_), Some(_)) | (Self::Hpa(_), None) => {
                *self = Self::new(spec, RevisionBeginning::found_with(wanted, now));
                // The new class knows no pods, and the next event about pods comes only when one changes.
                self.pods_changed(pods, now);
            }
        }
    }

    /// How many pods are needed, before bounds; `None` before the first valid decision.
    pub(super) fn desired(&self) -> Option<PodCount> {
        match self {
            Self::Kpa(kpa) => kpa.verdict.as_ref().map(|verdict| verdict.desired),
            Self::Hpa(hpa) => hpa.desired(),
        }
    }

    pub(super) fn mode(&self) -> Mode {
        match self {
            Self::Kpa(kpa) => kpa.decider.mode(),
            Self::Hpa(hpa) => hpa.deciders().mode(),
        }
    }

    /// How the last decision came to what is desired.
    pub(super) fn reasons(&self) -> &[Reason] {
        match self {
            Self::Kpa(kpa) => kpa.verdict.as_ref().map_or(&[], Verdict::reasons),
            Self::Hpa(hpa) => hpa.reasons(),
        }
    }

    /// The inputs of the last valid decision, as far as they come from requests.
    pub(super) fn inputs(&self) -> Option<Inputs> {
        match self {
            Self::Kpa(kpa) => kpa.verdict.as_ref().map(|verdict| verdict.inputs),
            Self::Hpa(hpa) => hpa.deciders().inputs(),
        }
    }

    /// The room beyond the target burst capacity; `None` while nothing is known of requests.
    pub(super) fn excess_burst_capacity(&self) -> Option<ExcessBurstCapacity> {
        match self {
            Self::Kpa(kpa) => kpa.verdict.as_ref().map(|verdict| verdict.excess_burst_capacity),
            Self::Hpa(hpa) => hpa.deciders().excess_burst_capacity(),
        }
    }

    /// The route that should hold, were there no dwell; `None` while it is not known.
    pub(super) fn routing(&self, want: Option<PodCount>, ready: PodCount) -> Option<Routing> {
        match self {
            Self::Hpa(hpa) if !hpa.has_own() => Some(match want {
                // The last pod is about to go.
                Some(PodCount::ZERO) => Routing::ThroughActivator,
                Some(_) | None => routing_without_own(ready),
            }),
            Self::Kpa(_) | Self::Hpa(_) => {
                self.excess_burst_capacity().map(|room| routing::without_dwell(want, room))
            }
        }
    }

    /// How often requests are looked at when nothing presses; `None` if they decide nothing.
    pub(super) fn tick(&self) -> Option<Duration> {
        match self {
            Self::Hpa(hpa) if !hpa.has_own() => None,
            Self::Kpa(_) | Self::Hpa(_) => Some(TICK),
        }
    }

    /// Whether requests have a say.
    pub(super) fn counts_requests(&self) -> bool {
        self.tick().is_some()
    }

    /// When metrics are to be asked, or answers are overdue.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Kpa(_) => None,
            Self::Hpa(hpa) => Some(hpa.deadline()),
        }
    }

    pub(super) fn pods_changed(&mut self, pods: &RevisionPods, now: Timestamp) {
        match self {
            Self::Kpa(_) => {}
            Self::Hpa(hpa) => hpa.pods_changed(pods.iter(), now),
        }
    }

    /// The platform was asked for another count.
    pub(super) fn note_ordered(&mut self, change: CountChange, now: Timestamp) {
        match self {
            Self::Kpa(_) => {}
            Self::Hpa(hpa) => hpa.note_ordered(change, now),
        }
    }

    /// An order of a count ended.
    pub(super) fn note_scale_ended(&mut self, ending: ScaleEnding, now: Timestamp) {
        match self {
            // Its next decision goes by the load alone.
            Self::Kpa(_) => {}
            Self::Hpa(hpa) => hpa.note_scale_ended(ending, now),
        }
    }

    /// Another client asked the platform for another count. Class kpa goes by the load alone; to class hpa it
    /// is the count that the next sync goes on from.
    pub(super) fn note_foreign_count(&mut self, count: PodCount) {
        match self {
            Self::Kpa(_) => {}
            Self::Hpa(hpa) => hpa.note_foreign_count(count),
        }
    }
}
