//! The count that all metrics together ask for.
//!
//! The largest proposal wins. A metric that fails proposes no count. But while one fails no pod is taken
//! away: the failing metric might be the one that needs the present pods.

use settings::hpa::{HpaSpec, MetricGoal, MetricSpec, ResourceTarget, TotalTarget};
use vocabulary::{MilliValue, PodCount, Timestamp};

use super::conditions::ConditionReason;
use super::label::MetricLabel;
use super::observation::HpaObservation;
use super::per_pod::{PerPodMetric, PerPodTarget};
use super::proposal::{CurrentValue, NoProposal, PodsLookedAt, Proposal, ProposalRule};
use super::samples::MetricSamples;
use super::sentence::{HpaSentence, Measure};
use super::state::MetricStatus;
use super::steps::Steps;
use super::tolerance::Tolerances;
use super::totals::TotalMetric;
use crate::decision::Stage;

/// The demand of all metrics of a pass together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MetricDemand {
    /// The largest proposal; `None` if no metric has one.
    pub(super) raw: Option<PodCount>,
    /// The place in the spec of the metric with the largest proposal.
    pub(super) leader: Option<usize>,
    /// The number of metrics that failed.
    pub(super) failed: u32,
    /// The reason under which the first failed metric is reported.
    pub(super) first_failure: Option<ConditionReason>,
}

impl MetricDemand {
    /// The recommended count, or `None` if the pass ends here: no metric has a value, or one failed and the
    /// others ask for fewer pods.
    pub(super) fn recommendation(&self, current: PodCount) -> Option<PodCount> {
        self.raw.filter(|&raw| self.failed == 0 || raw >= current)
    }
}

/// Evaluates every metric, and notes the result of each.
pub(super) fn measure(
    spec: &HpaSpec,
    observation: &HpaObservation<'_>,
    now: Timestamp,
    statuses: &mut Vec<MetricStatus>,
    steps: &mut Steps,
) -> MetricDemand {
    let mut measured = MetricDemand { raw: None, leader: None, failed: 0, first_failure: None };
    let tolerances = Tolerances::of(spec);
    for (index, metric) in spec.metrics.iter().enumerate() {
        let samples = observation.samples.get(index);
        let pass = Pass { spec, observation, tolerances, now };
        let answer = match samples {
            Some(MetricSamples::NotAsked) => {
                // Neither a proposal nor a failure: where no pod could have answered there is nothing to
                // complain of.
                statuses.push(MetricStatus::NotAsked);
                continue;
            }
            Some(samples) => pass.propose(metric, samples),
            None => Err(NoProposal::NotMeasured),
        };
        match answer {
            Ok(proposal) => {
                describe(metric, &proposal, measured.raw, steps);
                // Of several that ask for as many the first leads, as in Kubernetes.
                if measured.raw.is_none_or(|most| proposal.count > most) {
                    measured.raw = Some(proposal.count);
                    measured.leader = Some(index);
                }
                statuses.push(MetricStatus::Proposed(proposal));
            }
            Err(why) => {
                steps.note(
                    Stage::MetricFailure,
                    HpaSentence::Failed { label: MetricLabel::new(metric.name()), why },
                );
                let reason = failure_reason(metric, samples);
                measured.failed = measured.failed.saturating_add(1);
                measured.first_failure.get_or_insert(reason);
                statuses.push(MetricStatus::Failed { reason, why });
            }
        }
    }
    measured
}

/// What every metric of a pass is read with.
struct Pass<'a> {
    spec: &'a HpaSpec,
    observation: &'a HpaObservation<'a>,
    tolerances: Tolerances,
    now: Timestamp,
}

impl Pass<'_> {
    fn propose(&self, metric: &MetricSpec, samples: &MetricSamples) -> Result<Proposal, NoProposal> {
        match (metric, samples) {
            (MetricSpec::Resource { .. } | MetricSpec::Pods { .. }, MetricSamples::PerPod(samples)) => {
                self.per_pod(metric, samples.as_slice())
            }
            (MetricSpec::Object { target, .. }, MetricSamples::Series(series)) => match series.as_slice() {
                [usage] => self.total(*usage, *target),
                [] | [_, _, ..] => Err(NoProposal::NoSeries),
            },
            (MetricSpec::External { target, .. }, MetricSamples::Series(series)) => {
                if series.is_empty() {
                    return Err(NoProposal::NoSeries);
                }
                let sum = series.iter().map(|value| i128::from(value.value())).sum();
                self.total(MilliValue::saturated_from(sum), *target)
            }
            (MetricSpec::Own { target, .. }, MetricSamples::Decided { count, average }) => Ok(Proposal {
                count: *count,
                ratio: average.as_f64() / target.as_f64(),
                current: CurrentValue::AverageValue(*average),
                looked_at: PodsLookedAt::default(),
                rule: ProposalRule::Decider,
            }),
            (_, MetricSamples::Failed(failure)) => Err(failure.why),
            (
                MetricSpec::Resource { .. }
                | MetricSpec::Pods { .. }
                | MetricSpec::Own { .. }
                | MetricSpec::Object { .. }
                | MetricSpec::External { .. },
                _,
            ) => Err(NoProposal::NotMeasured),
        }
    }

    fn per_pod(
        &self,
        metric: &MetricSpec,
        samples: &[super::samples::PodSample],
    ) -> Result<Proposal, NoProposal> {
        let (resource, container, target) = match metric {
            MetricSpec::Resource { resource, container, target } => {
                let target = match *target {
                    ResourceTarget::Utilization(percent) => PerPodTarget::Utilization(percent),
                    ResourceTarget::AverageValue(average) => PerPodTarget::Average(average),
                };
                (Some(resource), container.as_deref(), target)
            }
            MetricSpec::Pods { target, .. } | MetricSpec::Own { target, .. } => {
                (None, None, PerPodTarget::Average(*target))
            }
            MetricSpec::Object { .. } | MetricSpec::External { .. } => return Err(NoProposal::NotMeasured),
        };
        PerPodMetric {
            pods: self.observation.pods.as_slice(),
            samples,
            resource,
            container,
            target,
            current: self.observation.scale.replicas,
            tolerances: self.tolerances,
            settings: &self.spec.settings,
            now: self.now,
        }
        .propose()
    }

    fn total(&self, usage: MilliValue, target: TotalTarget) -> Result<Proposal, NoProposal> {
        let scale = self.observation.scale;
        TotalMetric {
            usage,
            pods: self.observation.pods.as_slice(),
            current: scale.replicas,
            present: scale.status_replicas,
            tolerances: self.tolerances,
        }
        .propose(target)
    }
}

/// Notes the value, the pods that counted, the assumptions and the proposal; the number is the largest
/// proposal so far.
fn describe(metric: &MetricSpec, proposal: &Proposal, most: Option<PodCount>, steps: &mut Steps) {
    let label = MetricLabel::new(metric.name());
    let measure = Measure::of(proposal.current, target_of(metric));
    steps.note(Stage::Metric, HpaSentence::Measured { label, measure });
    let pods = proposal.looked_at;
    if pods != PodsLookedAt::default() {
        steps.note(Stage::Metric, HpaSentence::LookedAt { label, pods });
    }
    if let Some(ratio) = proposal.rule.cautious_ratio() {
        steps.note(Stage::Metric, HpaSentence::Assumed { label, ratio });
    }
    let text = HpaSentence::Proposed { label, count: proposal.count, how: proposal.rule.into() };
    steps.lead_to(most.unwrap_or_default().max(proposal.count), Stage::Metric, text);
}

/// The target of a metric in its own unit: percent or thousandths.
fn target_of(metric: &MetricSpec) -> f64 {
    match metric.goal() {
        MetricGoal::Percent(percent) => f64::from(percent),
        MetricGoal::Amount(amount) => amount.as_f64(),
    }
}

/// The reason that came with the failure, else that of the metric's kind.
fn failure_reason(metric: &MetricSpec, samples: Option<&MetricSamples>) -> ConditionReason {
    if let Some(MetricSamples::Failed(failure)) = samples {
        return failure.reason;
    }
    ConditionReason::of_unmeasured(metric)
}
