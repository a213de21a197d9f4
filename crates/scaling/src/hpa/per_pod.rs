//! How many pods a metric asks for that is measured in the pods themselves.
//!
//! The arithmetic follows Kubernetes in whole numbers and doubles step by step: percentages and averages are
//! cut to whole numbers before they are compared, ratios are taken before they are multiplied. Pods without a
//! sample, and pods that are just starting while the others have too much to do, are taken as the number that
//! makes the change smaller; if that turns its direction, nothing changes.

use settings::hpa::{HpaSettings, ResourceName};
use vocabulary::{MilliValue, PodCount, Timestamp};

use super::pods::{HpaPod, PodGroup};
use super::proposal::{CurrentValue, NoProposal, PodsLookedAt, Proposal, ProposalRule};
use super::samples::PodSample;
use super::tolerance::Tolerances;

/// One metric over the pods of a target.
pub(super) struct PerPodMetric<'a> {
    pub(super) pods: &'a [HpaPod],
    pub(super) samples: &'a [PodSample],
    pub(super) resource: Option<&'a ResourceName>,
    pub(super) container: Option<&'a str>,
    pub(super) target: PerPodTarget,
    pub(super) current: PodCount,
    pub(super) tolerances: Tolerances,
    pub(super) settings: &'a HpaSettings,
    pub(super) now: Timestamp,
}

/// The value that each pod is meant to have.
#[derive(Clone, Copy)]
pub(super) enum PerPodTarget {
    /// Percent of what is requested.
    Utilization(u32),
    /// An amount per pod on average, in thousandths of the metric's unit.
    Average(MilliValue),
}

/// Some pods, with what they use and request.
#[derive(Clone, Copy, Default)]
struct Sum {
    pods: u32,
    value: i128,
    request: i128,
}

impl Sum {
    fn add(&mut self, value: i64, request: i64) {
        self.pods = self.pods.saturating_add(1);
        self.value += i128::from(value);
        self.request += i128::from(request);
    }

    fn with(self, other: Self) -> Self {
        Self {
            pods: self.pods.saturating_add(other.pods),
            value: self.value + other.value,
            request: self.request + other.request,
        }
    }
}

/// The sums over the pods of each group.
#[derive(Default)]
struct Groups {
    ready: Sum,
    /// Their value is that of idle pods, zero.
    unready: Sum,
    /// Their value is what they count as when the others have too little to do.
    missing: Sum,
    ignored: u32,
    /// Samples of pods that the target does not have.
    unknown: Sum,
    /// A pod says nothing of what it requests.
    is_request_lacking: bool,
}

impl PerPodMetric<'_> {
    pub(super) fn propose(&self) -> Result<Proposal, NoProposal> {
        let groups = self.groups()?;
        let measured = self.measured(&groups);
        let (current_value, ratio) = self.read(measured);
        let looked_at = groups.looked_at();
        // Unready pods count as idle, to damp a rise; in a fall that would take away more instead of less.
        let unready_count = groups.unready.pods > 0 && ratio > 1.0;
        let proposal =
            |count, ratio, rule| Proposal { count, ratio, current: current_value, looked_at, rule };
        if !unready_count && groups.missing.pods == 0 {
            if self.tolerances.hold(ratio) {
                return Ok(proposal(self.current, ratio, ProposalRule::WithinTolerance));
            }
            // As in Kubernetes nothing guards against a turn here: times fewer ready pods than the current
            // count, a ratio above 1 may still lower it.
            let count = PodCount::ceil_from(ratio * f64::from(groups.ready.pods));
            return Ok(proposal(count, ratio, ProposalRule::Ratio));
        }
        let mut assumed = measured;
        // At exactly 1 no direction is the cautious one, and what is missing stays out.
        if ratio < 1.0 {
            assumed = assumed.with(groups.missing);
        } else if ratio > 1.0 {
            assumed = assumed.with(Sum { value: 0, ..groups.missing });
        }
        if unready_count {
            assumed = assumed.with(groups.unready);
        }
        let (_, cautious) = self.read(assumed);
        let counted = f64::from(assumed.pods.saturating_add(self.unknown_beside(&groups)));
        let count = PodCount::ceil_from(cautious * counted);
        let is_turned = (ratio < 1.0 && cautious > 1.0) || (ratio > 1.0 && cautious < 1.0);
        let is_against = (cautious < 1.0 && count > self.current) || (cautious > 1.0 && count < self.current);
        let rule = if self.tolerances.hold(cautious) {
            ProposalRule::CautiouslyWithinTolerance { ratio: cautious }
        } else if is_turned || is_against {
            ProposalRule::Turned { ratio: cautious }
        } else {
            return Ok(proposal(count, ratio, ProposalRule::CautiousRatio { ratio: cautious }));
        };
        Ok(proposal(self.current, ratio, rule))
    }

    /// Both lists are in the order of the pods' ids, so that one walk finds every pod's sample.
    fn groups(&self) -> Result<Groups, NoProposal> {
        if self.pods.is_empty() {
            return Err(NoProposal::NoPods);
        }
        let mut groups = Groups::default();
        let mut samples = self.samples.iter().peekable();
        for pod in self.pods {
            while let Some(unknown) = samples.next_if(|sample| sample.pod < pod.pod) {
                groups.unknown.add(unknown.value.value(), 0);
            }
            self.sort_in(pod, samples.next_if(|sample| sample.pod == pod.pod), &mut groups);
        }
        for unknown in samples {
            groups.unknown.add(unknown.value.value(), 0);
        }
        if groups.ready.pods == 0 && groups.unknown.pods == 0 {
            return Err(NoProposal::NoSamples);
        }
        match self.target {
            PerPodTarget::Utilization(_) if groups.is_request_lacking => Err(NoProposal::NoRequest),
            PerPodTarget::Utilization(_) if groups.ready.request == 0 => Err(NoProposal::NoOverlap),
            PerPodTarget::Utilization(_) | PerPodTarget::Average(_) => Ok(groups),
        }
    }

    fn sort_in(&self, pod: &HpaPod, sample: Option<&PodSample>, groups: &mut Groups) {
        let group = pod.group(self.resource, sample, self.settings, self.now);
        let mut request = MilliValue::ZERO;
        if let (PerPodTarget::Utilization(_), Some(resource)) = (self.target, self.resource) {
            // Asked of every pod, even of those that do not count otherwise.
            match pod.requests.of(resource, self.container) {
                Some(amount) => request = amount,
                None => groups.is_request_lacking = true,
            }
        }
        match group {
            PodGroup::Ready => {
                groups.ready.add(sample.map_or(0, |sample| sample.value.value()), request.value());
            }
            PodGroup::Unready => groups.unready.add(0, request.value()),
            PodGroup::Missing => {
                groups.missing.add(self.assumed_of_missing(request).value(), request.value());
            }
            PodGroup::Ignored => groups.ignored = groups.ignored.saturating_add(1),
        }
    }

    /// What a pod counts as that nothing is known of, when the others have too little to do: on target, or on
    /// its request if that is more.
    fn assumed_of_missing(&self, request: MilliValue) -> MilliValue {
        match self.target {
            PerPodTarget::Utilization(percent) => {
                MilliValue::saturated_from(i128::from(request.value()) * i128::from(percent.max(100)) / 100)
            }
            PerPodTarget::Average(target) => target,
        }
    }

    /// Samples of unknown pods count in averages, but not in a share of requests.
    fn measured(&self, groups: &Groups) -> Sum {
        match self.target {
            PerPodTarget::Utilization(_) => groups.ready,
            PerPodTarget::Average(_) => groups.ready.with(groups.unknown),
        }
    }

    /// How many samples of unknown pods the sum over all known ones lacks: Kubernetes multiplies by them all
    /// the same.
    fn unknown_beside(&self, groups: &Groups) -> u32 {
        match self.target {
            PerPodTarget::Utilization(_) => groups.unknown.pods,
            PerPodTarget::Average(_) => 0,
        }
    }

    /// What is reported, and its ratio to the target. There is at least one pod in the sum, and something is
    /// requested.
    fn read(&self, sum: Sum) -> (CurrentValue, f64) {
        let average = MilliValue::saturated_from(sum.value / i128::from(sum.pods.max(1)));
        match self.target {
            PerPodTarget::Utilization(target) => {
                let percent =
                    (sum.value * 100 / sum.request.max(1)).clamp(i128::from(i32::MIN), i128::from(i32::MAX));
                let percent = i32::try_from(percent).expect("it was clamped to this range");
                (CurrentValue::Utilization { percent, average }, f64::from(percent) / f64::from(target))
            }
            PerPodTarget::Average(target) => {
                (CurrentValue::AverageValue(average), average.as_f64() / target.as_f64())
            }
        }
    }
}

impl Groups {
    fn looked_at(&self) -> PodsLookedAt {
        PodsLookedAt {
            ready: PodCount::new(self.ready.pods),
            unready: PodCount::new(self.unready.pods),
            missing: PodCount::new(self.missing.pods),
            ignored: PodCount::new(self.ignored),
        }
    }
}
