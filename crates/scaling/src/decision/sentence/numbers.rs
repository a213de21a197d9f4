//! How numbers stand in sentences: rounded for people, with their units.

use std::time::Duration;

use settings::{DemandMetric, Metric};
use vocabulary::format_duration;

/// A load for people that is not zero, however small it is.
pub(super) fn rounded(value: f64) -> String {
    if value > 0.0 && two_decimals(value) == 0.0 {
        "less than 0.01".to_owned()
    } else {
        two_decimals(value).to_string()
    }
}

/// A span for people: to the second.
pub(super) fn rough(span: Duration) -> String {
    format_duration(Duration::from_secs(span.as_secs()))
}

pub(super) fn unit(metric: Metric, value: f64) -> &'static str {
    match (metric, is_one(value)) {
        (Metric::Concurrency, true) => "request in flight",
        (Metric::Concurrency, false) => "requests in flight",
        (Metric::Rps, true) => "request per second",
        (Metric::Rps, false) => "requests per second",
    }
}

/// The unit of a demand that is foreseen.
pub(super) fn demand_unit(metric: DemandMetric, value: f64) -> &'static str {
    match metric {
        DemandMetric::Concurrency => unit(Metric::Concurrency, value),
        DemandMetric::Rps => unit(Metric::Rps, value),
        DemandMetric::Cpu if is_one(value) => "core in use",
        DemandMetric::Cpu => "cores in use",
    }
}

/// Whether a number that was rounded for people is one.
pub(super) fn is_one(value: f64) -> bool {
    (value - 1.0).abs() < f64::EPSILON
}

/// Two decimals are enough for people.
pub(super) fn two_decimals(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
