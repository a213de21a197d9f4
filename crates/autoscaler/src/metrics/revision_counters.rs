//! The counters of each revision, read from snapshots when a page is written.
//!
//! They are sums of its history since this process measures it, so the ledger and a query to Prometheus tell
//! the same. A revision that goes to another owner begins anew there, as a counter does after a restart.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;
use scaling::{ColdStarts, LifeTotals, PodSeconds};

use super::shown_autoscalers::{ShownAutoscalers, revisions};

/// The values of a counter, each with the value of its own label.
type CounterValues = fn(&LifeTotals) -> [(&'static str, u64); 4];

/// Counts of each revision, told apart by a label.
struct RevisionCounter {
    autoscalers: ShownAutoscalers,
    label: &'static str,
    values: CounterValues,
}

/// Adds all counters of revisions to a page.
pub(super) fn register(autoscalers: &ShownAutoscalers, registry: &mut Registry) {
    let counter = |label: &'static str, values: CounterValues| RevisionCounter {
        autoscalers: autoscalers.clone(),
        label,
        values,
    };
    registry.register(
        "autoscaler_pod_seconds",
        "Seconds of pods, by the state in which they were",
        counter("state", pod_seconds),
    );
    registry.register(
        "autoscaler_cold_starts",
        "Starts of pods, by their cause",
        counter("cause", cold_starts),
    );
}

fn pod_seconds(totals: &LifeTotals) -> [(&'static str, u64); 4] {
    let PodSeconds { starting, busy, idle, ending } = totals.pod_seconds;
    [("starting", starting), ("busy", busy), ("idle", idle), ("ending", ending)]
}

fn cold_starts(totals: &LifeTotals) -> [(&'static str, u64); 4] {
    let ColdStarts { from_zero, growth, rollout, failed_pod } = totals.cold_starts;
    [("from_zero", from_zero), ("growth", growth), ("rollout", rollout), ("failed_pod", failed_pod)]
}

impl EncodeMetric for RevisionCounter {
    /// A revision that was never used has no series.
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for revision in revisions(&self.autoscalers.snapshots()) {
            let Some(history) = &revision.decided.history else { continue };
            let RevisionLabels { namespace, revision: name } = RevisionLabels::from(revision.name);
            for (word, value) in (self.values)(&history.totals(revision.published_at)) {
                let labels = [("namespace", &*namespace), ("revision", &*name), (self.label, word)];
                encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }

    fn is_empty(&self) -> bool {
        revisions(&self.autoscalers.snapshots()).all(|revision| revision.decided.history.is_none())
    }
}

impl fmt::Debug for RevisionCounter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RevisionCounter").field("label", &self.label).finish_non_exhaustive()
    }
}
