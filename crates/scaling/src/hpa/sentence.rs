//! The sentences of an evaluation: numbers until a sentence is read, then words (as
//! [`crate::decision::Sentence`]).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::hpa::{PolicyAmount, SelectPolicy};
use vocabulary::{PodCount, format_duration};

use super::label::MetricLabel;
use super::proposal::{CurrentValue, NoProposal, PodsLookedAt, ProposalRule};

/// One step of an evaluation in words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum HpaSentence {
    /// The value of a metric beside its target, both in the measure's unit: percent, or thousandths.
    Measured { label: MetricLabel, measure: Measure },
    /// The pods that counted for a metric.
    LookedAt { label: MetricLabel, pods: PodsLookedAt },
    /// The ratio of a metric with what was assumed of the pods that did not count.
    Assumed { label: MetricLabel, ratio: f64 },
    /// The count that a metric asks for, and the rule that led to it.
    Proposed { label: MetricLabel, count: PodCount, how: CountOrigin },
    /// A metric failed, for this reason.
    Failed { label: MetricLabel, why: NoProposal },
    /// Some metrics failed, so no pod may be taken away.
    Partial { failed: u32, of: u32 },
    /// Bounds and pauses that ask no metric.
    Unmeasured(UnmeasuredText),
    /// A window, a policy or a bound changed the recommendation.
    Limited(LimitText),
    /// The rules for documents that mix our own measurements with others.
    Mixed(MixedText),
}

/// A value beside its target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measure {
    pub(crate) value: f64,
    pub(crate) target: f64,
    pub(crate) unit: ValueUnit,
}

/// The form of a value and of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ValueUnit {
    Percent,
    Average,
    Total,
}

/// How a metric came to its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CountOrigin {
    Ratio,
    WithinTolerance,
    Turned,
    Decider,
}

/// Why a pass came to its count without a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum UnmeasuredText {
    Paused,
    AboveMaximum { max: PodCount },
    BelowMinimum { min: PodCount },
    NoSelector,
    SharedPods,
    RaisedFromZero { min: PodCount },
}

/// Sentences of windows, policies and bounds, which change a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum LimitText {
    Peak { count: PodCount, window: Duration },
    Envelope { lowest: PodCount, highest: PodCount },
    UpPolicy { amount: PolicyAmount, period: Duration, start: i32, bound: PodCount },
    DownPolicy { amount: PolicyAmount, period: Duration, start: i32, bound: PodCount },
    UpBound { select: SelectPolicy, bound: PodCount },
    DownBound { select: SelectPolicy, bound: PodCount },
    Doubling { limit: PodCount },
    Max { max: PodCount },
    Min { min: PodCount },
}

/// Sentences of the mixed rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum MixedText {
    /// Own measurements ask for more pods.
    OwnNeed { count: PodCount },
    /// Nothing falls while one of our deciders panics.
    Panic { present: PodCount },
    /// Requests end a way to zero.
    NotToZero { present: PodCount },
    /// One pod of a per-pod metric is as good as none.
    OneIsNone,
    /// Requests end the rest at zero pods.
    Wake { count: PodCount },
}

impl Measure {
    pub(super) fn of(current: CurrentValue, target: f64) -> Self {
        let thousandths = |value: f64, unit| Self { value: value / 1000.0, target: target / 1000.0, unit };
        match current {
            CurrentValue::Utilization { percent, .. } => {
                Self { value: f64::from(percent), target, unit: ValueUnit::Percent }
            }
            CurrentValue::AverageValue(value) => thousandths(value.as_f64(), ValueUnit::Average),
            CurrentValue::Value(value) => thousandths(value.as_f64(), ValueUnit::Total),
        }
    }
}

impl From<ProposalRule> for CountOrigin {
    fn from(rule: ProposalRule) -> Self {
        match rule {
            ProposalRule::WithinTolerance | ProposalRule::CautiouslyWithinTolerance { .. } => {
                Self::WithinTolerance
            }
            ProposalRule::Ratio | ProposalRule::CautiousRatio { .. } => Self::Ratio,
            ProposalRule::Turned { .. } => Self::Turned,
            ProposalRule::Decider => Self::Decider,
        }
    }
}

impl fmt::Display for HpaSentence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured { label, measure } => write!(to, "{label} {measure}"),
            Self::LookedAt { label, pods } => write!(to, "{label} {pods}"),
            Self::Assumed { label, ratio } => {
                write!(
                    to,
                    "{label} is {} times its target with the values assumed for these pods",
                    three_decimals(*ratio)
                )
            }
            Self::Proposed { label, count, how } => write!(to, "{label} {}", how.words(*count)),
            Self::Failed { label, why } => write!(to, "{label} failed: {why}"),
            Self::Partial { failed, of } => {
                write!(to, "{failed} of {of} metrics failed, so no pod is taken away")
            }
            Self::Unmeasured(said) => said.fmt(to),
            Self::Limited(said) => said.fmt(to),
            Self::Mixed(said) => said.fmt(to),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, target) = (three_decimals(self.value), three_decimals(self.target));
        match self.unit {
            ValueUnit::Percent => write!(to, "is {value}% of what is requested, target {target}%")?,
            ValueUnit::Average => write!(to, "is {value} per pod, target {target}")?,
            ValueUnit::Total => write!(to, "is {value}, target {target}")?,
        }
        write!(to, ": {} times", three_decimals(self.value / self.target))
    }
}

/// "counts 3 pods; left out: 1 not ready yet, 2 without a sample".
impl fmt::Display for PodsLookedAt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ready, unready, missing, ignored } = *self;
        write!(to, "counts {ready} pod{}", if ready == PodCount::ONE { "" } else { "s" })?;
        let mut before = "; left out: ";
        for (count, group) in
            [(unready, "not ready yet"), (missing, "without a sample"), (ignored, "ending or failed")]
        {
            if count > PodCount::ZERO {
                write!(to, "{before}{count} {group}")?;
                before = ", ";
            }
        }
        Ok(())
    }
}

impl CountOrigin {
    fn words(self, count: PodCount) -> String {
        match self {
            Self::Ratio => format!("asks for {count}"),
            Self::WithinTolerance => format!("is close enough to its target: the count stays at {count}"),
            Self::Turned => {
                format!(
                    "would turn round with the values assumed for pods that did not count: the count stays at {count}"
                )
            }
            Self::Decider => format!("asks for {count}, by its own windows"),
        }
    }
}

impl fmt::Display for NoProposal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::NoPods => "the target has no pods",
            Self::NoSamples => "no pod that counts has a sample",
            Self::NoRequest => "a container of a pod has no request for the resource",
            Self::NoOverlap => "all samples are of pods that the target does not have",
            Self::NoSeries => "the source of the metric gave no series, or several where one is needed",
            Self::NotMeasured => "no value was measured",
            Self::Refused => "the source of the metric gave no value, and \"asked\" shows its answer",
            Self::NoAnswer => "the source of the metric did not answer in time",
            Self::NoReporter => "no pod and no activator reports requests",
            Self::NoContainer => "the pods have no container of that name",
            Self::NotReported => "pods report their use of cpu and memory only",
        })
    }
}

impl fmt::Display for UnmeasuredText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Paused => to.write_str("another client set the count to 0, so the count stays at 0"),
            Self::AboveMaximum { max } => write!(to, "more than the maximum of {max}"),
            Self::BelowMinimum { min } => write!(to, "fewer than the minimum of {min}"),
            Self::NoSelector => to.write_str("the target has no readable selector of its pods"),
            Self::SharedPods => {
                to.write_str("another autoscaler selects some of the same pods, so the count stays")
            }
            Self::RaisedFromZero { min } => {
                write!(to, "raised from zero to the minimum of {min}")
            }
        }
    }
}

impl fmt::Display for LimitText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Peak { count, window } => {
                write!(to, "{count} is the largest recommendation of the last {}", format_duration(window))
            }
            Self::Envelope { lowest, highest } => {
                write!(to, "recommendations within the windows lie between {lowest} and {highest}")
            }
            Self::UpPolicy { amount, period, start, bound } => {
                let period = format_duration(period);
                write!(to, "{amount} more in {period}, from {start} on: at most {bound}")
            }
            Self::DownPolicy { amount, period, start, bound } => {
                let period = format_duration(period);
                write!(to, "{amount} fewer in {period}, from {start} on: at least {bound}")
            }
            Self::UpBound { select, bound } => write!(to, "{}: at most {bound}", rule(select)),
            Self::DownBound { select, bound } => write!(to, "{}: at least {bound}", rule(select)),
            Self::Doubling { limit } => write!(to, "no more than a doubling, or 4: at most {limit}"),
            Self::Max { max } => write!(to, "never above the maximum of {max}"),
            Self::Min { min } => write!(to, "never below the minimum of {min}"),
        }
    }
}

impl fmt::Display for MixedText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OwnNeed { count } => write!(to, "requests need {count} at once"),
            Self::Panic { present } => write!(to, "requests surge, so the count stays at {present} at least"),
            Self::NotToZero { present } => {
                write!(to, "requests may need pods, so the count stays at {present} until the next sync")
            }
            Self::OneIsNone => {
                to.write_str("there are no requests, and nothing else asks for more than one pod")
            }
            Self::Wake { count } => write!(to, "requests wake the revision: {count}"),
        }
    }
}

/// The policy that rules, for people.
fn rule(select: SelectPolicy) -> &'static str {
    match select {
        SelectPolicy::Max => "the policy with the largest change rules",
        SelectPolicy::Min => "the policy with the smallest change rules (selectPolicy Min)",
        SelectPolicy::Disabled => "this direction is turned off (selectPolicy Disabled)",
    }
}

/// A number as people read it: rounded to three decimals.
fn three_decimals(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
