//! The series of Prometheus in which the demand of revisions is recorded: autoscalers show it on their pages,
//! and one that knows too little asks a server for it.

use settings::DemandMetric;

/// The name of the series, on pages and in queries.
pub(crate) const DEMAND_SERIES: &str = "autoscaler_revision_demand";

/// The value of its label `metric`, which says what is counted.
pub(crate) fn metric_label(metric: DemandMetric) -> &'static str {
    match metric {
        DemandMetric::Concurrency => "concurrency",
        DemandMetric::Rps => "rps",
        DemandMetric::Cpu => "cpu",
    }
}
