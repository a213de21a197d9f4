//! How many pods a metric asks for that is not the pods' own: of an object, or from outside the cluster.

use settings::hpa::TotalTarget;
use vocabulary::{MilliValue, PodCount};

use super::pods::HpaPod;
use super::proposal::{CurrentValue, NoProposal, PodsLookedAt, Proposal, ProposalRule};
use super::tolerance::Tolerances;

/// One metric that is a total.
pub(super) struct TotalMetric<'a> {
    pub(super) usage: MilliValue,
    pub(super) pods: &'a [HpaPod],
    /// The count that the target was last asked for.
    pub(super) current: PodCount,
    /// The number of pods that the target has (`status.replicas`).
    pub(super) present: PodCount,
    pub(super) tolerances: Tolerances,
}

impl TotalMetric<'_> {
    pub(super) fn propose(&self, target: TotalTarget) -> Result<Proposal, NoProposal> {
        match target {
            TotalTarget::Value(target) => self.by_value(target),
            TotalTarget::AverageValue(target) => Ok(self.by_average(target)),
        }
    }

    fn by_value(&self, target: MilliValue) -> Result<Proposal, NoProposal> {
        let ratio = self.usage.as_f64() / target.as_f64();
        let current = CurrentValue::Value(self.usage);
        let proposal = |count, looked_at, rule| Proposal { count, ratio, current, looked_at, rule };
        let none = PodsLookedAt::default();
        // Without pods there is nothing to multiply, and the ratio itself is the count, as in Kubernetes.
        if self.current == PodCount::ZERO {
            return Ok(proposal(PodCount::ceil_from(ratio), none, ProposalRule::Ratio));
        }
        if self.tolerances.hold(ratio) {
            return Ok(proposal(self.current, none, ProposalRule::WithinTolerance));
        }
        if self.pods.is_empty() {
            return Err(NoProposal::NoPods);
        }
        let ready = self.ready_pods();
        let count = PodCount::ceil_from(ratio * ready.as_f64());
        Ok(proposal(count, PodsLookedAt { ready, ..none }, ProposalRule::Ratio))
    }

    fn ready_pods(&self) -> PodCount {
        PodCount::of(self.pods.iter().filter(|pod| pod.is_running_and_ready()).count())
    }

    /// Without pods the ratio is infinite, or of nothing to nothing no number: both are outside of any
    /// tolerance.
    fn by_average(&self, target: MilliValue) -> Proposal {
        let ratio = self.usage.as_f64() / (target.as_f64() * self.present.as_f64());
        let average = if self.present == PodCount::ZERO {
            MilliValue::ZERO
        } else {
            MilliValue::ceil_from(self.usage.as_f64() / self.present.as_f64())
        };
        let (count, rule) = if self.tolerances.hold(ratio) {
            (self.present, ProposalRule::WithinTolerance)
        } else {
            (PodCount::ceil_from(self.usage.as_f64() / target.as_f64()), ProposalRule::Ratio)
        };
        let (current, looked_at) = (CurrentValue::AverageValue(average), PodsLookedAt::default());
        Proposal { count, ratio, current, looked_at, rule }
    }
}
