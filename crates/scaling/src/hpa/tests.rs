//! The reference's vectors as tables, and the words that people read.

use std::time::Duration;

use settings::hpa::{
    Behavior, ContainerRequests, HpaSettings, LabelSelector, MetricIdentifier, MetricSpec, ObjectReference,
    PodRequests, PolicyAmount, ResourceName, ResourceRequests, ResourceTarget, RulesOrigin, ScalingPolicy,
    ScalingRules, SelectPolicy, TotalTarget,
};
use vocabulary::{MilliValue, PodCount, PodId, Timestamp, parse_quantity};

use super::*;
use crate::decision::Reason;

mod boundaries;
mod combinations;
mod groups;
mod metrics;
mod mixed;
mod passes;
mod properties;
mod traces;
mod words;

/// Far enough from the axis' beginning for everything that happened before.
const NOW: Timestamp = Timestamp::from_secs(100_000);

/// The tables, whose ids [`super::vectors`] compares with those of the reference.
pub(super) const TABLES: [&str; 10] = [
    metrics::UTILIZATION,
    metrics::AVERAGES,
    metrics::VALUES,
    metrics::TOTALS,
    metrics::NUMERIC_TRAPS,
    boundaries::WITHOUT_BEHAVIOR,
    boundaries::WITH_BEHAVIOR,
    boundaries::STABILIZATION,
    groups::GROUPS,
    passes::PASSES,
];

/// The traces, each under its id.
pub(super) const TRACES: &str = traces::TRACES;

/// The rows of a table, each in its cells.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.split('|').map(str::trim).collect()).collect()
}

fn pods(text: &str) -> PodCount {
    let number = text.parse();
    PodCount::new(number.unwrap_or_else(|_| panic!("{text:?} is no count")))
}

fn ago(seconds: &str) -> Timestamp {
    NOW - Duration::from_secs_f64(seconds.parse().unwrap())
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().unwrap())
}

/// Plain numbers are thousandths already, as in the reference.
fn milli(text: &str) -> MilliValue {
    match text {
        "max" => MilliValue::MAX,
        "half" => MilliValue::new(i64::MAX / 2 + 1),
        _ => text.parse().map_or_else(|_| parse_quantity(text).unwrap(), MilliValue::new),
    }
}

/// What a test says of a spec, over one metric.
fn spec_of(metric: MetricSpec, words: &str) -> HpaSpec {
    let settings = HpaSettings {
        cpu_initialization_period: Duration::from_secs(120),
        initial_readiness_delay: Duration::from_secs(10),
        ..HpaSettings::default()
    };
    let mut spec =
        HpaSpec { min: PodCount::ZERO, max: PodCount::MAX, metrics: vec![metric], behavior: None, settings };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        set(&mut spec, key, value);
    }
    spec
}

fn set(spec: &mut HpaSpec, key: &str, value: &str) {
    match key {
        "min" => return spec.min = pods(value),
        "max" => return spec.max = pods(value),
        "tolerance" => return spec.settings.tolerance = value.parse().unwrap(),
        "stabilization" => return spec.settings.downscale_stabilization = seconds(value),
        "req" | "st" => return,
        _ => {}
    }
    let behavior = spec.behavior.get_or_insert_with(|| Behavior {
        scale_up: ScalingRules::default_up(),
        scale_down: ScalingRules::default_down(),
    });
    if key == "behavior" {
        return;
    }
    let (direction, part) = key.split_once('-').unwrap_or((key, "policy"));
    let rules = match direction {
        "up" => &mut behavior.scale_up,
        "down" => &mut behavior.scale_down,
        unknown => panic!("no setting {unknown}"),
    };
    match part {
        "policy" => {
            if rules.origin == RulesOrigin::Default {
                rules.policies.clear();
            }
            rules.origin = RulesOrigin::Document;
            rules.policies.push(policy(value));
        }
        "window" => rules.stabilization_window = Some(seconds(value)),
        "tolerance" => rules.tolerance = Some(value.parse().unwrap()),
        "select" => {
            rules.select_policy = match value {
                "max" => SelectPolicy::Max,
                "min" => SelectPolicy::Min,
                "disabled" => SelectPolicy::Disabled,
                unknown => panic!("no policy {unknown}"),
            }
        }
        unknown => panic!("no setting {unknown}"),
    }
}

/// `4/60` are four pods, `10%/60` ten percent.
fn policy(text: &str) -> ScalingPolicy {
    let (amount, period) = text.split_once('/').unwrap();
    let amount = match amount.strip_suffix('%') {
        Some(percent) => PolicyAmount::Percent(percent.parse().unwrap()),
        None => PolicyAmount::Pods(amount.parse().unwrap()),
    };
    ScalingPolicy { amount, period: seconds(period) }
}

fn word<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    words
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .find(|(known, _)| *known == key)
        .map(|(_, value)| value)
}

/// A queue's length, whose target makes one pod of each thousandth times thousand: with no tolerance, the
/// count that is asked for.
fn backlog(target: TotalTarget) -> MetricSpec {
    let metric = MetricIdentifier { name: "backlog".into(), selector: LabelSelector::default() };
    MetricSpec::External { metric, target }
}

fn per_thousand() -> MetricSpec {
    backlog(TotalTarget::AverageValue(MilliValue::new(1000)))
}

/// The backlog that [`per_thousand`] answers with this count.
fn asking_for(count: u32) -> MetricSamples {
    MetricSamples::Series(vec![MilliValue::new(i64::from(count) * 1000)])
}

fn cpu(target: ResourceTarget) -> MetricSpec {
    MetricSpec::Resource { resource: ResourceName::Cpu, container: None, target }
}

/// A pod that was started long ago and has long been ready.
fn settled_pod(number: u32) -> HpaPod {
    HpaPod {
        pod: PodId(number),
        phase: HpaPodPhase::Running,
        is_deleted: false,
        started: Some(ago("10000")),
        ready: Some(ReadyCondition { status: ReadyStatus::True, since: ago("9990") }),
        requests: PodRequests::default(),
    }
}

fn requesting(name: &str, cpu: Option<i64>, memory: Option<MilliValue>) -> ContainerRequests {
    let requests = ResourceRequests { cpu: cpu.map(MilliValue::new), memory, others: Vec::new() };
    ContainerRequests { name: name.into(), requests }
}

fn sample(pod: u32, value: MilliValue) -> PodSample {
    PodSample { pod: PodId(pod), value, at: NOW, window: Duration::from_secs(30) }
}

fn scale(replicas: PodCount, status_replicas: PodCount) -> Scale {
    Scale { replicas, status_replicas, selection: Selection::Unique }
}

/// One that took its target to zero itself, if the target is there.
fn state_at(spec: &HpaSpec, replicas: PodCount) -> HpaState {
    let mut state = remembering(Vec::new());
    if replicas == PodCount::ZERO {
        state.note_rescale(spec, CountChange { from: PodCount::ONE, to: PodCount::ZERO }, ago("1000"));
        state.history = history_of(Vec::new());
    }
    state
}

/// A history with these recommendations, without events, whose first recommendation was made long ago.
fn history_of(recommendations: Vec<Recommendation>) -> HpaHistory {
    HpaHistory { recommendations, is_seeded: true, ..HpaHistory::default() }
}

fn remembering(recommendations: Vec<Recommendation>) -> HpaState {
    HpaState { history: history_of(recommendations), ..HpaState::default() }
}

/// Each step goes on from the one before.
fn assert_linked(reasons: &[Reason]) {
    for pair in reasons.windows(2) {
        assert_eq!(pair[0].after, pair[1].before, "{reasons:?}");
    }
}
